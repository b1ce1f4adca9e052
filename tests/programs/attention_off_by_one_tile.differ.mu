# program: ../../benchmarks/programs/gqa_safe.sd g=1 q=4 e=4 k=24
# The loop leaves out the last tile of keys.
ugraph attention_short of gqa_safe {
  kernel k0 grid(g) warps(4) {
    split k = k.o * k.i(6)
    qs[q, e] = Q : shared f16
    loop k.o trim(k.o < 3) {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      dot[q, k.i] = sum[e](qs * ks) : reg f32
      s[q, k.i] = dot * rsqrt(size(e)) : reg f32
      m[q] = max[k.o, k.i](s) : reg f32
      p[q, k.i] = exp(s - m) : reg f32
      l[q] = sum[k.o, k.i](p) : reg f32 rescale m
      o[q, f] = sum[k.o, k.i](p * vs) : reg f32 rescale m
    }
    out[q, f] = o / l : reg f32
    store out -> O
  }
}
# expect: different
