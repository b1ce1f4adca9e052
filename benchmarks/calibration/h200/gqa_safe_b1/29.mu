# program: ../../../programs/gqa_safe.sd b=1
# measured_us: 20.135
ugraph gqa_safe of gqa_safe {
  kernel k0 grid(g, q.o, f.o) warps(16) {
    split q = q.o * q.i(16)
    split f = f.o * f.i(32)
    split k = k.o * k.i(1024)
    qs[q.i, e] = Q : shared f16
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o {
      ks[k.i, e] = K : shared f16
      vs[k.i, f.i] = V : shared f16
      t3[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16) warps(k.i/16)
      t7[q.i] = max[k.o, k.i](t3 * t5) : reg f32
      s[q.i, k.i] = t3 * t5 : reg f32
      t16[q.i, k.i] = exp(s - t7) : shared f16
      t20[q.i, f.i] = sum[k.o, k.i](t16 * vs) : reg f32 mma(m16n8k16) warps(k.i/16) rescale t7
      t23[q.i] = sum[k.o, k.i](t16) : reg f32 rescale t7
    }
    o[q.i, f.i] = t20 / t23 : reg f32
    store o -> O
  }
}
