# program: ../../../programs/rms_norm_qkv.sd b=8
# measured_us: 14.218
ugraph rms_norm_qkv of rms_norm_qkv {
  axis h.s = h.s of k0
  tensor p_t4: f32[h.s, n]
  tensor p_t19: f32[h.s, n, d]
  kernel k0 grid(h.s, d.o) warps(8) {
    split h = h.s * h.o(7) * h.i(256)
    split d = d.o * d.i(40)
    loop h.o stages(5) bulk {
      xs[n, h.i] = X : reg bf16
      gs[h.i] = g : reg bf16
      ws[h.i, d.i] = W : shared bf16
      t4[n] = sum[h.o, h.i](xs * xs) : reg f32
      t9[n, h.i] = xs * gs : shared bf16
      t19[n, d.i] = sum[h.o, h.i](t9 * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    }
    store t4 -> p_t4
    store t19 -> p_t19
  }
  kernel k1 grid(n, d.o) warps(1) {
    split d = d.o * d.i(144)
    p_t4s[h.s] = p_t4 : reg f32
    p_t19s[h.s, d.i] = p_t19 : reg f32
    t5[] = sum[h.s](p_t4s) : reg f32
    r[] = rsqrt(t5 / size(h) + 1e-6) : reg f32
    o[d.i] = sum[h.s](r * p_t19s) : reg f32
    store o -> O
  }
}
