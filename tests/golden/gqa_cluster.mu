# program: ../../benchmarks/programs/gqa_safe.sd b=1
ugraph gqa_cluster_golden of gqa_safe {
  kernel part grid(g, q.o, k.s) warps(4) {
    split q = q.o * q.i(64)
    split k = k.s(4) * k.o * k.i(64)
    qs[q.i, e] = Q : shared f16
    loop k.o stages(2) bulk {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      s[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m64n8k16) warps(q.i/4)
      m[q.i] = max[k.o, k.i](s * rsqrt(size(e))) : reg f32
      p[q.i, k.i] = exp(s * rsqrt(size(e)) - m) : reg f16
      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m
      o[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 mma(m64n8k16) warps(q.i/4) rescale m
    }
    store m -> part_m : f32[k.s, g, q]
    store l -> part_l : f32[k.s, g, q]
    store o -> part_o : f32[k.s, g, q, f]
  }
  kernel join grid(g, q.o, q.c) warps(4) via cluster {
    split q = q.o * q.c(4) * q.i(16)
    ms[k.s, q.i] = part_m : reg f32
    top[q.i] = max[k.s](ms) : reg f32
    w[k.s, q.i] = exp(ms - top) : shared f32
    total[q.i] = sum[k.s](w * part_l) : reg f32
    sum_o[q.i, f] = sum[k.s](w * part_o) : reg f32
    out[q.i, f] = sum_o / total : reg f32
    store out -> O
  }
}
