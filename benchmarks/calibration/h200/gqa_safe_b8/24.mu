# program: ../../../programs/gqa_safe.sd b=8
# measured_us: 36.078
ugraph gqa_safe of gqa_safe {
  tensor p_t20: f32[g, q, f]
  tensor p_t23: f32[g, q]
  kernel k0 grid(g, q.o) warps(8) {
    split q = q.o * q.i(32)
    split k = k.o * k.i(512)
    qs[q.i, e] = Q : shared f16
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      t3[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16) warps(q.i/2, k.i/4)
      t7[q.i] = max[k.o, k.i](t3 * t5) : reg f32
      s[q.i, k.i] = t3 * t5 : reg f32
      t16[q.i, k.i] = exp(s - t7) : shared f16
      t20[q.i, f] = sum[k.o, k.i](t16 * vs) : reg f32 mma(m16n8k16) warps(k.i/8) rescale t7
      t23[q.i] = sum[k.o, k.i](t16) : reg f32 rescale t7
    }
    store t20 -> p_t20
    store t23 -> p_t23
  }
  kernel k1 grid(g.o, q.o) warps(1) {
    split g = g.o * g.i(2)
    split q = q.o * q.i(4)
    p_t20s[g.i, q.i, f] = p_t20 : reg f32
    p_t23s[g.i, q.i] = p_t23 : reg f32
    o[g.i, q.i, f] = p_t20s / p_t23s : reg f32
    store o -> O
  }
}
