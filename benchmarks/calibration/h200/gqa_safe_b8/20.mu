# program: ../../../programs/gqa_safe.sd b=8
# measured_us: 84.276
ugraph gqa_safe of gqa_safe {
  kernel k0 grid(g, q.o) warps(16) {
    split q = q.o * q.i(32)
    split k = k.o * k.i(128)
    qs[q.i, e] = Q : shared f16
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o stages(4) bulk {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      t3[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16) warps(e/4, q.i/2, k.i/2)
      t7[q.i] = max[k.o, k.i](t3 * t5) : reg f32
      s[q.i, k.i] = t3 * t5 : reg f32
      t16[q.i, k.i] = exp(s - t7) : shared f16
      t20[q.i, f] = sum[k.o, k.i](t16 * vs) : reg f32 mma(m16n8k16) warps(k.i/8, q.i/2) rescale t7
      t23[q.i] = sum[k.o, k.i](t16) : reg f32 rescale t7
    }
    o[q.i, f] = t20 / t23 : reg f32
    store o -> O
  }
}
