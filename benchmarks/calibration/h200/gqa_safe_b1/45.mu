# program: ../../../programs/gqa_safe.sd b=1
# measured_us: 44.144
ugraph gqa_safe of gqa_safe {
  kernel k0 grid(g, q.o, f.o) warps(16) {
    split q = q.o * q.i(16)
    split f = f.o * f.i(32)
    split k = k.o * k.i(512)
    qs[q.i, e] = Q : shared f16
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o {
      ks[k.i, e] = K : shared f16
      vs[k.i, f.i] = V : shared f16
      t3[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16) warps(k.i/16)
      t7[q.i] = max[k.i](t3 * t5) : reg f32
      t7_2[q.i] = max[k.o](t7) : reg f32
      s[q.i, k.i] = t3 * t5 : reg f32
      t16[q.i, k.i] = exp(s - t7) : shared f16
      t18[q.i, f.i] = sum[k.i](t16 * vs) : reg f32 mma(m16n8k16) warps(k.i/16)
      t20[q.i, f.i] = sum[k.o](t18 * exp(t7 - t7_2)) : reg f32 rescale t7_2
    }
    loop k.o {
      ks2[k.i, e] = K : shared f16
      t3_2[q.i, k.i] = sum[e](qs * ks2) : reg f32 mma(m16n8k16) warps(k.i/16)
      t7_3[q.i] = max[k.i](t3_2 * t5) : reg f32
      s_2[q.i, k.i] = t3_2 * t5 : reg f32
      t16_2[q.i, k.i] = exp(s_2 - t7_3) : reg f32
      t21[q.i] = sum[k.i](t16_2) : reg f32
      t23[q.i] = sum[k.o](exp(t7_3 - t7_2) * t21) : reg f32
    }
    o[q.i, f.i] = t20 / t23 : reg f32
    store o -> O
  }
}
