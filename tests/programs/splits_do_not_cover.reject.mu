# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(d) warps(4) {
    split h = h.o(1) * h.i(16)
    xs[n, h.i] = X : shared f16
  }
}
# expect: 4:11: error: the factors of 'h' make 16, its extent is 32
