# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    loop h.o {
      xs[n, h.i] = select(n < 3000000000, X, 0) : shared f16
    }
  }
}
# expect: 7:29: error: this index may reach 3e+09 and kernels compute indices in 32 bits, up to 2147418111
