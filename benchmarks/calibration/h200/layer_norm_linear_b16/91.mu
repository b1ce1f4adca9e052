# program: ../../../programs/layer_norm_linear.sd b=16
# measured_us: 12.183
ugraph layer_norm_linear of layer_norm_linear {
  tensor p_t2: f32[b]
  tensor p_t9: f32[b]
  kernel k0 grid(b) warps(4) {
    xs[h] = x : reg bf16
    t2[] = sum[h](xs) : reg f32
    store t2 -> p_t2
    u[h] = xs - t2 / size(h) : reg f32
    t9[] = sum[h](u * u) : reg f32
    store t9 -> p_t9
  }
  kernel k1 grid(b.o, d.o) warps(8) {
    split b = b.o * b.i(8)
    split h = h.o * h.i(512)
    split d = d.o * d.i(96)
    cs[d.i] = c : reg bf16
    p_t9s[b.i] = p_t9 : reg f32
    p_t2s[b.i] = p_t2 : reg f32
    t11[b.i] = rsqrt(p_t9s / size(h) + 1e-5) : reg f32
    loop h.o stages(2) bulk {
      xs[b.i, h.i] = x : reg bf16
      gs[h.i] = g : reg bf16
      ss[h.i] = s : reg bf16
      ws[d.i, h.i] = w : shared bf16
      n[b.i, h.i] = (xs - p_t2s / size(h)) * t11 * gs + ss : shared bf16
      t21[b.i, d.i] = sum[h.o, h.i](n * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    }
    y_2[b.i, d.i] = t21 + cs : reg f32
    store y_2 -> y
  }
}
