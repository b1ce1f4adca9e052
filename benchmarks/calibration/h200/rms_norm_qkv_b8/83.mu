# program: ../../../programs/rms_norm_qkv.sd b=8
# measured_us: 13.335
ugraph rms_norm_qkv of rms_norm_qkv {
  axis h.s = h.s of k0
  tensor p_t4: f32[h.s, n]
  tensor p_t19: f32[h.s, n, d]
  kernel k0 grid(h.s, d.o) warps(8) {
    split h = h.s * h.i(224)
    split d = d.o * d.i(48)
    ws[h.i, d.i] = W : shared bf16
    xs[n, h.i] = X : reg bf16
    gs[h.i] = g : reg bf16
    t4[n] = sum[h.i](xs * xs) : reg f32
    t9[n, h.i] = xs * gs : shared bf16
    t19[n, d.i] = sum[h.i](t9 * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    store t4 -> p_t4
    store t19 -> p_t19
  }
  kernel k1 grid(n.o, d.o) warps(16) {
    split n = n.o * n.i(2)
    split d = d.o * d.i(144)
    p_t4s[h.s, n.i] = p_t4 : reg f32
    p_t19s[h.s, n.i, d.i] = p_t19 : reg f32
    t5[n.i] = sum[h.s](p_t4s) : reg f32
    t21[n.i, d.i] = sum[h.s](p_t19s) : reg f32
    o[n.i, d.i] = rsqrt(t5 / size(h) + 1e-6) * t21 : reg f32
    store o -> O
  }
}
