# program: ../../../programs/gqa_safe.sd b=1
# measured_us: 26.475
ugraph gqa_safe of gqa_safe {
  tensor p_s: f32[g, q, k]
  kernel k0 grid(g, q.o, k.o) warps(8) {
    split q = q.o * q.i(128)
    split k = k.o * k.i(64)
    qs[q.i, e] = Q : shared f16
    ks[k.i, e] = K : shared f16
    t3[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m64n8k16) warps(q.i/8)
    s[q.i, k.i] = t3 * rsqrt(size(e)) : reg f32
    store s -> p_s
  }
  kernel k1 grid(g, q.o, f.o) warps(16) {
    split q = q.o * q.i(32)
    split f = f.o * f.i(32)
    split k = k.o * k.i(512)
    loop k.o {
      p_ss[q.i, k.i] = p_s : reg f32
      m[q.i] = max[k.o, k.i](p_ss) : reg f32
    }
    loop k.o stages(4) bulk {
      p_ss2[q.i, k.i] = p_s : reg f32
      vs[k.i, f.i] = V : shared f16
      p[q.i, k.i] = exp(p_ss2 - m) : shared f16
      t20[q.i, f.i] = sum[k.o, k.i](p * vs) : reg f32 mma(m16n8k16) warps(k.i/16)
      t23[q.i] = sum[k.o, k.i](p) : reg f32
    }
    o[q.i, f.i] = t20 / t23 : reg f32
    store o -> O
  }
}
