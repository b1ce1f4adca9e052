# program: ../../benchmarks/programs/rms_norm.sd b=8
ugraph rms_norm_golden of rms_norm {
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(128)
    split d = d.o * d.i(48)
    loop h.o stages(4) {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      ss[n] = sum[h.o, h.i](xs * xs) : reg f32
      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    }
    o[n, d.i] = acc * rsqrt(ss / size(h) + 1e-6) : reg f32
    store o -> O
  }
}
