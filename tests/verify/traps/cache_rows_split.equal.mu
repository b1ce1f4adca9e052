# program: cache_rows.sd
ugraph causal of causal {
  axis k.s = k.s of k0
  tensor p_t13: f32[k.s, g, q]
  tensor p_t29: f32[k.s, g, q]
  tensor p_t46: f32[k.s, g, q, f]
  kernel k0 grid(g, q.o, k.s) warps(16) {
    split q = q.o * q.i(4)
    split k = k.s * k.i(32)
    qs[q.i, e] = Q : shared f16
    k[e, k.i] = select(32 * k.s + k.i < 240, K1[g, 32 * k.s + k.i, e], K2[g, 32 * k.s + k.i - 240, e]) : shared f32
    t8[q.i, k.i] = sum[e](k * qs) : reg f32
    s[q.i, k.i] = select(32 * k.s + k.i <= 4 * q.o + q.i + 240, t8 * 0.125, -inf) : reg f32
    t13[q.i] = max[k.i](s) : reg f32
    store t13 -> p_t13
    t20[q.i, k.i] = exp(s - select(t13 == -inf, 0, t13)) : reg f32
    t29[q.i] = sum[k.i](t20) : reg f32
    v[f, k.i] = select(32 * k.s + k.i < 240, V1[g, 32 * k.s + k.i, f], V2[g, 32 * k.s + k.i - 240, f]) : reg f32
    t46[q.i, f] = sum[k.i](v * t20) : reg f32
    store t29 -> p_t29
    store t46 -> p_t46
  }
  kernel k1 grid(g, q, f.o) warps(4) {
    split f = f.o * f.i(32)
    p_t13s[k.s] = p_t13 : reg f32
    p_t29s[k.s] = p_t29 : reg f32
    p_t46s[k.s, f.i] = p_t46 : reg f32
    t14[] = max[k.s](p_t13s) : reg f32
    t18[k.s] = exp(p_t13s - t14) : reg f32
    t33[] = sum[k.s](t18 * p_t29s) : reg f32
    t34[] = 1 / t33 : reg f32
    t49[f.i, k.s] = t18 * p_t46s : reg f32
    t55[f.i] = sum[k.s](t34 * t49) : reg f32
    store t55 -> O
  }
}
