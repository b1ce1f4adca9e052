# program: mask_value.sd
ugraph too_far of mask_value {
  kernel k0 grid(q.o) warps(4) {
    split q = q.o * q.i(2)
    split k = k.o * k.i(4)
    loop k.o trim(4 * k.o <= 2 * q.o + 11) {
      x[q.i, k.i] = select(4 * k.o + k.i <= 2 * q.o + q.i + 12, s, -inf) : reg f32
      m[q.i] = max[k.o, k.i](x) : reg f32
      p[q.i, k.i] = exp(x - m) : reg f32
      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m
      o[q.i, f] = sum[k.o, k.i](p * V) : reg f32 rescale m
    }
    out[q.i, f] = o / l : reg f32
    store out -> O
  }
}
