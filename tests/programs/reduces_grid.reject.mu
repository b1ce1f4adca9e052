# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(h.o) warps(4) {
    split h = h.o * h.i(16)
    xs[n, h.i] = X : shared f16
    ss[n] = sum[h.o, h.i](xs * xs) : reg f32
  }
}
# expect: 6:5: error: kernel 'k0': computation 'ss': it reduces the grid factor 'h.o'
