# program: shifted_reads.sd
ugraph seven of shifted_reads {
  kernel k0 grid(n, l.o) warps(4) {
    split l = l.o * l.i(8)
    y[l.i, c] = sum[kk](X[n, 7 * l.o + l.i + kk] * W) : reg f32
    store y -> Y
  }
}
