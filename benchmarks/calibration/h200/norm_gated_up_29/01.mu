# program: ../../../programs/own/norm_gated_up.sd n=29 h=1544 d=4095
# measured_us: 26.258909
ugraph norm_gated_up of norm_gated_up {
  tensor p_t15: f32[n, h]
  kernel k0 grid(n) warps(16) {
    xs[h] = X : reg f16
    ws[h] = w : reg f16
    t2[] = sum[h](xs) : reg f32
    c_2[h] = xs - t2 / size(h) : reg f32
    t9[] = sum[h](c_2 * c_2) : reg f32
    t11[] = rsqrt(t9 / size(h) + 1e-5) : reg f32
    t15[h] = c_2 * t11 * ws : reg f32
    store t15 -> p_t15
  }
  kernel k1 grid(d.o) warps(8) {
    split h = h.o * h.i(256)
    split d = d.o * d.i(32)
    loop h.o stages(4) bulk {
      p_t15s[n, h.i] = p_t15 : shared f32
      bs[h.i] = b : reg f16
      wgs[h.i, d.i] = WG : shared f16
      wus[h.i, d.i] = WU : shared f16
      x[n, h.i] = p_t15s + bs : shared f16
      t21[n, d.i] = sum[h.o, h.i](x * wgs) : reg f32 mma(m16n8k16) warps(h.i/8)
      t26[n, d.i] = sum[h.o, h.i](x * wus) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    o[n, d.i] = sigmoid(t21) * t26 : reg f32
    store o -> O
  }
}
