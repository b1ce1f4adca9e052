# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    loop h.o {
      xs[n, h.i] = X : shared f16
      ss[n] = sum[h.o, h.i](xs * xs) : reg f16
    }
  }
}
# expect: 8:7: error: kernel 'k0': computation 'ss': an accumulator is f32, not f16
