# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    loop h.o {
      xs[n, h.i] = X : shared f16
      ss[n] = sum[h.i](xs * xs) : reg f32
    }
    r[n] = rsqrt(ss) : reg f32
  }
}
# expect: 10:5: error: kernel 'k0': computation 'r': reads computation 'ss' after the loop over factor 'h.o', over which it does not accumulate
