# program: sliding.sd
# The window of another literal.
ugraph wider of sliding {
  kernel k0 grid(q.o) warps(4) {
    split q = q.o * q.i(64)
    split k = k.o * k.i(64)
    loop k.o trim(64 * k.o <= 64 * q.o + 63, 64 * q.o - 64 * k.o < 1024 + 63) {
      t[q.i, k.i] = sum[e](Q * K) : reg f32
      s[q.i, k.i] = select(64 * k.o + k.i <= 64 * q.o + q.i, select(64 * k.o + k.i > 64 * q.o + q.i - 1088, t, -inf), -inf) : reg f32
      m[q.i] = max[k.o, k.i](s) : reg f32
      p[q.i, k.i] = exp(s - select(m == -inf, 0, m)) : reg f32
      o[q.i, f] = sum[k.o, k.i](p * V) : reg f32 rescale m
      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m
    }
    y[q.i, f] = o / l : reg f32
    store y -> O
  }
}
