# program: ../../benchmarks/programs/gqa_safe.sd g=2 q=6 e=4 k=24
# One loop over the keys with a running maximum, both accumulators rescaled.
ugraph attention of gqa_safe {
  kernel k0 grid(g, q.o) warps(4) {
    split q = q.o * q.i(4)
    split k = k.o * k.i(5)
    qs[q.i, e] = Q : shared f16
    loop k.o stages(2) {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      dot[q.i, k.i] = sum[e](qs * ks) : reg f32
      s[q.i, k.i] = dot * rsqrt(size(e)) : reg f32
      m[q.i] = max[k.o, k.i](s) : reg f32
      p[q.i, k.i] = exp(s - m) : reg f32
      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m
      o[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 rescale m
    }
    out[q.i, f] = o / l : reg f32
    store out -> O
  }
}
# expect: equal
