# program: convolution.sd
ugraph tiles of convolution {
  kernel k0 grid(n, l.o) warps(4) {
    split l = l.o * l.i(16)
    split ci = ci.o * ci.i(16)
    loop ci.o {
      w[kk, ci.i, co] = W : shared f16
      y[l.i, co] = sum[ci.o, ci.i, kk](X[n, 16 * l.o + l.i + kk, 16 * ci.o + ci.i] * w) : reg f32
    }
    store y -> Y
  }
}
