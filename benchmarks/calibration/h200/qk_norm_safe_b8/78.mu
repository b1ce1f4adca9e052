# program: ../../../programs/qk_norm_safe.sd b=8
# measured_us: 32.809999
ugraph qk_norm_safe of qk_norm_safe {
  axis k.s = k.s of k0
  tensor p_t21: f32[k.s, g, q]
  tensor p_t46: f32[k.s, g, q, f]
  tensor p_t56: f32[k.s, g, q]
  kernel k0 grid(g, q.o, k.s) warps(8) {
    split q = q.o * q.i(128)
    split k = k.s * k.o(11) * k.i(32)
    qs[q.i, e] = Q : shared f16
    t8[q.i] = sum[e](qs * qs) : reg f32
    t10[q.i] = rsqrt(t8 / size(e)) : reg f32
    t18[] = rsqrt(size(e)) : reg f32
    loop k.o stages(3) bulk {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      t15[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m64n8k16) warps(q.i/8)
      vsr[k.i, f] = vs : reg f16
      t2[k.i] = sum[f](vsr * vsr) : reg f32
      vn[f, k.i] = rsqrt(t2 / size(f)) * vsr : shared f16
      t20[q.i] = max[k.o, k.i](t10 * t15 * t18) : reg f32
      s[q.i, k.i] = t10 * t15 * t18 : reg f32
      t31[q.i, k.i] = exp(s - t20) : reg f16
      t46[q.i, f] = sum[k.o, k.i](vn * t31) : reg f32 mma(m64n8k16, swap) warps(q.i/8) rescale t20
      t56[q.i] = sum[k.o, k.i](t31) : reg f32 rescale t20
    }
    store t20 -> p_t21
    store t46 -> p_t46
    store t56 -> p_t56
  }
  kernel k1 grid(g, q.o) warps(16) {
    split q = q.o * q.i(16)
    p_t21s[k.s, q.i] = p_t21 : reg f32
    p_t46s[k.s, q.i, f] = p_t46 : reg f32
    p_t56s[k.s, q.i] = p_t56 : reg f32
    m[q.i] = max[k.s](p_t21s) : reg f32
    t28[q.i, k.s] = exp(p_t21s - m) : reg f32
    t52[q.i, f] = sum[k.s](t28 * p_t46s) : reg f32
    t59[q.i] = sum[k.s](t28 * p_t56s) : reg f32
    o[q.i, f] = t52 / t59 : reg f32
    store o -> O
  }
}
