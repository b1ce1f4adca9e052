# program: ../../../benchmarks/programs/gqa.sd
# What the search picks for an H200.
ugraph gqa of gqa {
  axis k.s = k.s of k0
  tensor p_t15: f32[k.s, g, q]
  tensor p_t34: f32[k.s, g, q, f]
  tensor p_t43: f32[k.s, g, q]
  kernel k0 grid(g, q.o, k.s) warps(8) {
    split q = q.o * q.i(128)
    split k = k.s * k.o(16) * k.i(32)
    qs[q.i, e] = Q : shared f16
    loop k.o stages(7) {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      s[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16) warps(q.i/8)
      t14[q.i] = max[k.o, k.i](s) : reg f32
      t20[q.i, k.i] = exp(s - t14) : reg f16
      t34[q.i, f] = sum[k.o, k.i](t20 * vs) : reg f32 mma(m16n8k16) warps(q.i/8) rescale t14
      t43[q.i] = sum[k.o, k.i](t20) : reg f32 rescale t14
    }
    store t14 -> p_t15
    store t34 -> p_t34
    store t43 -> p_t43
  }
  kernel k1 grid(g, q.o, f.o) warps(8) {
    split q = q.o * q.i(16)
    split f = f.o * f.i(32)
    p_t15s[k.s, q.i] = p_t15 : reg f32
    p_t34s[k.s, q.i, f.i] = p_t34 : shared f32
    p_t43s[k.s, q.i] = p_t43 : reg f32
    t16[q.i] = max[k.s](p_t15s) : reg f32
    t25[q.i, k.s] = exp(p_t15s - t16) : shared f32
    t39[q.i, f.i] = sum[k.s](t25 * p_t34s) : reg f32
    t46[q.i] = sum[k.s](t25 * p_t43s) : reg f32
    o[q.i, f.i] = t39 / t46 : reg f32
    store o -> O
  }
}
# expect: equal
