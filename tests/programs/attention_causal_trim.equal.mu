# program: ../../benchmarks/programs/attention_prefill_causal.sd g=1 q=8 e=4
# Tiles of keys above the diagonal are skipped.
ugraph attention_causal of attention_prefill_causal {
  kernel k0 grid(g, q.o) warps(4) {
    split q = q.o * q.i(4)
    split k = k.o * k.i(2)
    qs[q.i, e] = Q : shared bf16
    loop k.o trim(2 * k.o <= 4 * q.o + 3) {
      ks[k.i, e] = K : shared bf16
      vs[k.i, f] = V : shared bf16
      dot[q.i, k.i] = sum[e](qs * ks) : reg f32
      s[q.i, k.i] = select(k <= q, dot * rsqrt(size(e)), -inf) : reg f32
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
