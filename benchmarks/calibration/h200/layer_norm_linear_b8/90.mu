# program: ../../../programs/layer_norm_linear.sd b=8
# measured_us: 9.840
ugraph layer_norm_linear of layer_norm_linear {
  tensor p_t15: f32[b, h]
  kernel k0 grid(b) warps(4) {
    xs[h] = x : reg bf16
    gs[h] = g : reg bf16
    t2[] = sum[h](xs) : reg f32
    u_2[h] = xs - t2 / size(h) : reg f32
    t9[] = sum[h](u_2 * u_2) : reg f32
    t11[] = rsqrt(t9 / size(h) + 1e-5) : reg f32
    t15[h] = u_2 * t11 * gs : reg f32
    store t15 -> p_t15
  }
  kernel k1 grid(d.o) warps(8) {
    split h = h.o * h.i(512)
    split d = d.o * d.i(48)
    cs[d.i] = c : reg bf16
    loop h.o stages(4) bulk {
      p_t15s[b, h.i] = p_t15 : reg f32
      ss[h.i] = s : reg bf16
      ws[d.i, h.i] = w : shared bf16
      n[b, h.i] = p_t15s + ss : shared bf16
      t21[b, d.i] = sum[h.o, h.i](n * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    }
    y_2[b, d.i] = t21 + cs : reg f32
    store y_2 -> y
  }
}
