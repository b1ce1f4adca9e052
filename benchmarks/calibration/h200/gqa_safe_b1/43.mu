# program: ../../../programs/gqa_safe.sd b=1
# measured_us: 33.849
ugraph gqa_safe of gqa_safe {
  kernel k0 grid(g, q.o) warps(16) {
    split q = q.o * q.i(16)
    split k = k.o * k.i(512)
    qs[q.i, e] = Q : shared f16
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o {
      ks[k.i, e] = K : shared f16
      t3_2[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16) warps(k.i/16)
      m[q.i] = max[k.o, k.i](t3_2 * t5) : reg f32
    }
    loop k.o {
      ks2[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      t3[q.i, k.i] = sum[e](qs * ks2) : reg f32 mma(m16n8k16) warps(k.i/16)
      s[q.i, k.i] = t3 * t5 : reg f32
      p[q.i, k.i] = exp(s - m) : shared f16
      t20[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 mma(m16n8k16) warps(k.i/16)
      t23[q.i] = sum[k.o, k.i](p) : reg f32
    }
    o[q.i, f] = t20 / t23 : reg f32
    store o -> O
  }
}
