# program: ../../../programs/rms_norm_qkv.sd b=8
# measured_us: 30.090
ugraph rms_norm_qkv of rms_norm_qkv {
  axis h.s = h.s of k0
  tensor p_t4: f32[h.s, n]
  tensor p_t19: f32[h.s, n, d]
  kernel k0 grid(h.s, d.o) warps(8) {
    split h = h.s(6) * h.o(3) * h.i(256)
    split d = d.o * d.i(128)
    loop h.o stages(3) bulk {
      xs[n, h.i] = X : shared bf16
      gs[h.i] = g : reg bf16
      ws[h.i, d.i] = W : reg bf16
      t4[n] = sum[h.o, h.i](xs * xs) : reg f32
      t14[h.i, d.i] = gs * ws : shared bf16
      t19[n, d.i] = sum[h.o, h.i](t14 * xs) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    store t4 -> p_t4
    store t19 -> p_t19
  }
  kernel k1 grid(d.o) warps(8) {
    split d = d.o * d.i(40)
    p_t4s[h.s, n] = p_t4 : reg f32
    p_t19s[h.s, n, d.i] = p_t19 : reg f32
    t5[n] = sum[h.s](p_t4s) : reg f32
    t21[n, d.i] = sum[h.s](p_t19s) : reg f32
    o[n, d.i] = rsqrt(t5 / size(h) + 1e-6) * t21 : reg f32
    store o -> O
  }
}
