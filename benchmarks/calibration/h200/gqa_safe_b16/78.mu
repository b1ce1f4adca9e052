# program: ../../../programs/gqa_safe.sd b=16
# measured_us: 30.855000
ugraph gqa_safe of gqa_safe {
  axis k.s = k.s of k0
  tensor p_t8: f32[k.s, g, q]
  tensor p_t28: f32[k.s, g, q, f]
  tensor p_t37: f32[k.s, g, q]
  kernel k0 grid(g, q.o, k.s) warps(8) {
    split q = q.o * q.i(128)
    split k = k.s * k.o(8) * k.i(128)
    qs[q.i, e] = Q : shared f16
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o stages(2) bulk {
      ks[k.i, e] = K : shared f16
      t3[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m64n8k16) warps(q.i/8)
      t8[q.i] = max[k.o, k.i](t3 * t5) : reg f32
    }
    store t8 -> p_t8
    loop k.o stages(2) bulk {
      ks2[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      t3_2[q.i, k.i] = sum[e](qs * ks2) : reg f32 mma(m64n8k16) warps(q.i/8)
      s[q.i, k.i] = t3_2 * t5 : reg f32
      t17[q.i, k.i] = exp(s - t8) : reg f16
      t28[q.i, f] = sum[k.o, k.i](t17 * vs) : reg f32 mma(m64n8k16) warps(q.i/8)
      t37[q.i] = sum[k.o, k.i](t17) : reg f32
    }
    store t28 -> p_t28
    store t37 -> p_t37
  }
  kernel k1 grid(g, q.o) warps(4) {
    split q = q.o * q.i(16)
    p_t8s[k.s, q.i] = p_t8 : reg f32
    p_t28s[k.s, q.i, f] = p_t28 : reg f32
    p_t37s[k.s, q.i] = p_t37 : reg f32
    m[q.i] = max[k.s](p_t8s) : reg f32
    t15[q.i, k.s] = exp(p_t8s - m) : reg f32
    t33[q.i, f] = sum[k.s](t15 * p_t28s) : reg f32
    t40[q.i] = sum[k.s](t15 * p_t37s) : reg f32
    o[q.i, f] = t33 / t40 : reg f32
    store o -> O
  }
}
