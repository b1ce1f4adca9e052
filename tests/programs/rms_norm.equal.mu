# program: ../../benchmarks/programs/rms_norm.sd b=2 h=64 d=80
# Grid over d, loop over h: square sum and product accumulate together, the division follows.
ugraph rms_norm_fused of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(32)
    loop h.o stages(3) {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      ss[n] = sum[h.o, h.i](xs * xs) : reg f32
      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16, swap) warps(d.i/2, h.i/2)
    }
    o[n, d.i] = acc * rsqrt(ss / size(h) + 1e-6) : reg f32
    store o -> O
  }
}
# expect: equal
