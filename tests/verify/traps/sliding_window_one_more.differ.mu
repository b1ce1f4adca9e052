# program: sliding_window.sd
ugraph one_more of sliding_window {
  kernel k0 grid(h, q.o) warps(8) {
    split q = q.o * q.i(8)
    qs[q.i, e] = Q : shared bf16
    ks[k, e] = K : shared bf16
    dot[q.i, k] = sum[e](qs * ks) : reg f32
    s[q.i, k] = select(k <= 8 * q.o + q.i, select(8 * q.o + q.i < k + 38, dot * 0.125, -inf), -inf) : reg f32
    m[q.i] = max[k](s) : reg f32
    p[q.i, k] = exp(s - m) : reg f32
    o[q.i, f] = sum[k](p * V) : reg f32
    l[q.i] = sum[k](p) : reg f32
    out[q.i, f] = o / l : reg f32
    store out -> O
  }
}
