# program: ../../../benchmarks/programs/attention_prefill_causal.sd
# What the search picks for an H200.
ugraph attention_prefill_causal of attention_prefill_causal {
  kernel k0 grid(g, q.o) warps(8) {
    split q = q.o * q.i(128)
    split k = k.o * k.i(64)
    qs[q.i, e] = Q : shared bf16
    t5[] = rsqrt(size(e)) : reg f32
    loop k.o stages(3) trim(64 * k.o <= 128 * q.o + 127) {
      ks[k.i, e] = K : shared bf16
      vs[k.i, f] = V : shared bf16
      t3[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16) warps(q.i/8)
      s[q.i, k.i] = select(64 * k.o + k.i <= 128 * q.o + q.i, t3 * t5, -inf) : reg f32
      t9[q.i] = max[k.o, k.i](s) : reg f32
      t13[q.i, k.i] = exp(s - select(t9 == -inf, 0, t9)) : reg bf16
      t22[q.i, f] = sum[k.o, k.i](t13 * vs) : reg f32 mma(m16n8k16) warps(q.i/8) rescale t9
      t25[q.i] = sum[k.o, k.i](t13) : reg f32 rescale t9
    }
    o[q.i, f] = t22 / t25 : reg f32
    store o -> O
  }
}
# expect: equal
