# program: ../../benchmarks/programs/gqa_safe.sd g=2 q=6 e=8 k=40
# Parts of the keys, each divided by its own sum before they are joined.
ugraph gqa_safe_parts of gqa_safe {
  kernel part grid(g, q.o, k.s) warps(4) {
    split q = q.o * q.i(4)
    split k = k.s(2) * k.o * k.i(6)
    qs[q.i, e] = Q : shared f16
    loop k.o stages(2) {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      s[q.i, k.i] = sum[e](qs * ks) : reg f32
      m[q.i] = max[k.o, k.i](s * rsqrt(size(e))) : reg f32
      p[q.i, k.i] = exp(s * rsqrt(size(e)) - m) : reg f32
      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m
      o[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 rescale m
    }
    d[q.i, f] = o / l : reg f32
    store m -> part_m : f32
    store l -> part_l : f32
    store d -> part_o : f32[k.s, g, q, f]
  }
  kernel join grid(g, q) warps(1) {
    ms[k.s] = part_m : reg f32
    top[] = max[k.s](ms) : reg f32
    w[k.s] = part_l * exp(ms - top) : reg f32
    total[] = sum[k.s](w) : reg f32
    sum_o[f] = sum[k.s](w * part_o) : reg f32
    out[f] = sum_o / total : reg f32
    store out -> O
  }
}
# expect: equal
