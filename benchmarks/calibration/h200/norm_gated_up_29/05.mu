# program: ../../../programs/own/norm_gated_up.sd n=29 h=1544 d=4095
# measured_us: 32.568727
ugraph norm_gated_up of norm_gated_up {
  tensor p_t12: f32[n, h]
  kernel k0 grid(n) warps(16) {
    xs[h] = X : reg f16
    t2[] = sum[h](xs) : reg f32
    c_2[h] = xs - t2 / size(h) : reg f32
    t9[] = sum[h](c_2 * c_2) : reg f32
    t11[] = rsqrt(t9 / size(h) + 1e-5) : reg f32
    t12[h] = c_2 * t11 : reg f32
    store t12 -> p_t12
  }
  kernel k1 grid(d.o) warps(8) {
    split h = h.o * h.i(512)
    split d = d.o * d.i(32)
    loop h.o stages(2) bulk {
      p_t12s[n, h.i] = p_t12 : shared f32
      ws[h.i] = w : reg f16
      bs[h.i] = b : reg f16
      wgs[h.i, d.i] = WG : shared f16
      wus[h.i, d.i] = WU : shared f16
      x[n, h.i] = p_t12s * ws + bs : shared f16
      t21[n, d.i] = sum[h.o, h.i](x * wgs) : reg f32 mma(m16n8k16) warps(h.i/8)
      t26[n, d.i] = sum[h.o, h.i](x * wus) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    o[n, d.i] = sigmoid(t21) * t26 : reg f32
    store o -> O
  }
}
