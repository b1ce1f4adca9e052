# program: ../../../programs/rms_norm.sd b=8
# measured_us: 23.423111
ugraph rms_norm of rms_norm {
  axis h.s = h.s of k0
  tensor p_t4: f32[h.s, n]
  tensor p_t14: f32[h.s, n, d]
  kernel k0 grid(h.s, d.o) warps(2) {
    split h = h.s * h.o(32) * h.i(32)
    split d = d.o * d.i(192)
    loop h.o stages(7) bulk {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      t4[n] = sum[h.o, h.i](xs * xs) : reg f32
      t14[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(d.i/2)
    }
    store t4 -> p_t4
    store t14 -> p_t14
  }
  kernel k1 grid(n.o, d.o) warps(16) {
    split n = n.o * n.i(8)
    split d = d.o * d.i(96)
    p_t4s[h.s, n.i] = p_t4 : reg f32
    p_t14s[h.s, n.i, d.i] = p_t14 : reg f32
    t5[n.i] = sum[h.s](p_t4s) : reg f32
    t16[n.i, d.i] = sum[h.s](p_t14s) : reg f32
    o[n.i, d.i] = rsqrt(t5 / size(h) + 1e-6) * t16 : reg f32
    store o -> O
  }
}
