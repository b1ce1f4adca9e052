# program: ../../../benchmarks/programs/qk_norm.sd
# What the search picks for an H200.
ugraph qk_norm of qk_norm {
  axis k.s = k.s of k0
  tensor p_t28: f32[k.s, g, q]
  tensor p_t53: f32[k.s, g, q, f]
  tensor p_t63: f32[k.s, g, q]
  kernel k0 grid(g, k.s) warps(8) {
    split q = q.o * q.i(32)
    split k = k.s * k.i(256)
    vs[k.i, f] = V : reg f16
    ks[k.i, e] = K : shared f16
    t2[k.i] = sum[f](vs * vs) : reg f32
    vn[f, k.i] = rsqrt(t2 / size(f)) * vs : shared f16
    loop q.o {
      qs[q.i, e] = Q : reg f16
      t8[q.i] = sum[e](qs * qs) : reg f32
      qn[q.i, e] = rsqrt(t8 / size(e)) * qs : shared f16
      s[q.i, k.i] = sum[e](qn * ks) : reg f32 mma(m16n8k16) warps(q.i/2, k.i/4)
      t28[q.i] = max[k.i](s) : reg f32
      store t28 -> p_t28
      t36[q.i, k.i] = exp(s - t28) : shared f16
      t53[q.i, f] = sum[k.i](vn * t36) : reg f32 mma(m16n8k16) warps(k.i/8)
      store t53 -> p_t53
      t63[q.i] = sum[k.i](t36) : reg f32
      store t63 -> p_t63
    }
  }
  kernel k1 grid(g, q.o, f.o) warps(16) {
    split q = q.o * q.i(16)
    split f = f.o * f.i(32)
    p_t28s[k.s, q.i] = p_t28 : reg f32
    p_t53s[k.s, q.i, f.i] = p_t53 : shared f32
    p_t63s[k.s, q.i] = p_t63 : reg f32
    t29[q.i] = max[k.s](p_t28s) : reg f32
    t38[q.i, k.s] = exp(p_t28s - t29) : shared f32
    t59[q.i, f.i] = sum[k.s](t38 * p_t53s) : reg f32
    t66[q.i] = sum[k.s](t38 * p_t63s) : reg f32
    o[q.i, f.i] = t59 / t66 : reg f32
    store o -> O
  }
}
# expect: equal
