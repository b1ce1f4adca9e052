# program: ../../../programs/gqa_safe.sd b=1
# measured_us: 37.817
ugraph gqa_safe of gqa_safe {
  kernel k0 grid(g, q.o) warps(16) {
    split q = q.o * q.i(16)
    split k = k.o * k.i(512)
    qs[q.i, e] = Q : shared f16
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      t3[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16) warps(k.i/16)
      t7[q.i] = max[k.o, k.i](t3 * t5) : reg f32
      s[q.i, k.i] = t3 * t5 : reg f32
      t16[q.i, k.i] = exp(s - t7) : shared f16
      t20[q.i, f] = sum[k.o, k.i](t16 * vs) : reg f32 mma(m16n8k16) warps(k.i/16) rescale t7
    }
    loop k.o {
      ks2[k.i, e] = K : shared f16
      t3_2[q.i, k.i] = sum[e](qs * ks2) : reg f32 mma(m16n8k16) warps(k.i/16)
      s_2[q.i, k.i] = t3_2 * t5 : reg f32
      t23[q.i] = sum[k.o, k.i](exp(s_2 - t7)) : reg f32
    }
    o[q.i, f] = t20 / t23 : reg f32
    store o -> O
  }
}
