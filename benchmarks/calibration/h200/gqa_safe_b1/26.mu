# program: ../../../programs/gqa_safe.sd b=1
# measured_us: 22.169
ugraph gqa_safe of gqa_safe {
  tensor p_t3: f32[g, q, k]
  kernel k0 grid(g, k.o) warps(16) {
    split k = k.o * k.i(64)
    qs[q, e] = Q : shared f16
    ks[k.i, e] = K : shared f16
    t3[q, k.i] = sum[e](qs * ks) : reg f32 mma(m64n8k16) warps(q/16)
    store t3 -> p_t3
  }
  kernel k1 grid(g, q.o, f.o) warps(8) {
    split q = q.o * q.i(16)
    split f = f.o * f.i(32)
    split k = k.o * k.i(512)
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o {
      p_t3s[q.i, k.i] = p_t3 : reg f32
      m[q.i] = max[k.o, k.i](t5 * p_t3s) : reg f32
    }
    loop k.o stages(4) bulk {
      p_t3s2[q.i, k.i] = p_t3 : reg f32
      vs[k.i, f.i] = V : shared f16
      s[q.i, k.i] = t5 * p_t3s2 : reg f32
      p[q.i, k.i] = exp(s - m) : shared f16
      t20[q.i, f.i] = sum[k.o, k.i](p * vs) : reg f32 mma(m16n8k16) warps(k.i/8)
      t23[q.i] = sum[k.o, k.i](p) : reg f32
    }
    o[q.i, f.i] = t20 / t23 : reg f32
    store o -> O
  }
}
