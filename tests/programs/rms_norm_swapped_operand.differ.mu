# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
# The square sum is of the weight instead of the input.
ugraph rms_norm_swapped of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    loop h.o stages(2) {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      ss[d.i] = sum[h.o, h.i](ws * ws) : reg f32
      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32
    }
    o[n, d.i] = acc * rsqrt(ss / size(h) + 1e-6) : reg f32
    store o -> O
  }
}
# expect: different
