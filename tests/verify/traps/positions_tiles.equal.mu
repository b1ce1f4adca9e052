# program: positions.sd
ugraph tiles of positions {
  kernel k0 grid(q.o, k.o) warps(4) {
    split q = q.o * q.i(64)
    split k = k.o * k.i(64)
    t[q.i, k.i] = sum[e](A * B) : reg f32
    s[q.i, k.i] = select(64 * k.o + k.i <= 64 * q.o + q.i, t - 0.25 * (index(64 * q.o + q.i) - index(64 * k.o + k.i)), 0) : reg f32
    store s -> S
  }
}
