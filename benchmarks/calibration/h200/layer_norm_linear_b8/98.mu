# program: ../../../programs/layer_norm_linear.sd b=8
# measured_us: 8.285
ugraph layer_norm_linear of layer_norm_linear {
  tensor p_t21: f32[b, d]
  kernel k0 grid(d.o) warps(8) {
    split d = d.o * d.i(48)
    xs[b, h] = x : reg bf16
    gs[h] = g : reg bf16
    ss[h] = s : reg bf16
    ws[d.i, h] = w : shared bf16
    t2[b] = sum[h](xs) : reg f32
    u_2[b, h] = xs - t2 / size(h) : reg f32
    t9[b] = sum[h](u_2 * u_2) : reg f32
    t11[b] = rsqrt(t9 / size(h) + 1e-5) : reg f32
    n[b, h] = u_2 * t11 * gs + ss : shared bf16
    t21[b, d.i] = sum[h](n * ws) : reg f32 mma(m16n8k16, swap) warps(h/8)
    store t21 -> p_t21
  }
  kernel k1 grid(d.o) warps(2) {
    split d = d.o * d.i(40)
    cs[d.i] = c : reg bf16
    p_t21s[b, d.i] = p_t21 : reg f32
    y_2[b, d.i] = p_t21s + cs : reg f32
    store y_2 -> y
  }
}
