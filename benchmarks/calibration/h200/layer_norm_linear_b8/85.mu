# program: ../../../programs/layer_norm_linear.sd b=8
# measured_us: 7.898
ugraph layer_norm_linear of layer_norm_linear {
  kernel k0 grid(d.o) warps(8) {
    split d = d.o * d.i(40)
    ws[d.i, h] = w : shared bf16
    xs[b, h] = x : reg bf16
    gs[h] = g : reg bf16
    ss[h] = s : reg bf16
    cs[d.i] = c : reg bf16
    t2[b] = sum[h](xs) : reg f32
    u_2[b, h] = xs - t2 / size(h) : reg f32
    t9[b] = sum[h](u_2 * u_2) : reg f32
    t11[b] = rsqrt(t9 / size(h) + 1e-5) : reg f32
    n[b, h] = u_2 * t11 * gs + ss : shared bf16
    t21[b, d.i] = sum[h](n * ws) : reg f32 mma(m16n8k16, swap) warps(h/8)
    y_2[b, d.i] = t21 + cs : reg f32
    store y_2 -> y
  }
}
