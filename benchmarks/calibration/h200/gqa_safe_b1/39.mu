# program: ../../../programs/gqa_safe.sd b=1
# measured_us: 30.559
ugraph gqa_safe of gqa_safe {
  tensor p_s: f32[g, q, k]
  tensor p_m: f32[g, q]
  kernel k0 grid(g, q.o) warps(8) {
    split q = q.o * q.i(8)
    split k = k.o * k.i(128)
    qs[q.i, e] = Q : shared f16
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o stages(5) bulk {
      ks[k.i, e] = K : shared f16
      t3[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16, swap) warps(e/4, k.i/2)
      s[q.i, k.i] = t3 * t5 : reg f32
      store s -> p_s
      m[q.i] = max[k.o, k.i](t3 * t5) : reg f32
    }
    store m -> p_m
  }
  kernel k1 grid(g, q.o, f.o) warps(16) {
    split q = q.o * q.i(16)
    split f = f.o * f.i(32)
    split k = k.o * k.i(512)
    p_ms[q.i] = p_m : reg f32
    loop k.o stages(4) bulk {
      p_ss[q.i, k.i] = p_s : reg f32
      vs[k.i, f.i] = V : shared f16
      p[q.i, k.i] = exp(p_ss - p_ms) : shared f16
      t20[q.i, f.i] = sum[k.o, k.i](p * vs) : reg f32 mma(m16n8k16) warps(k.i/16)
      t23[q.i] = sum[k.o, k.i](p) : reg f32
    }
    o[q.i, f.i] = t20 / t23 : reg f32
    store o -> O
  }
}
