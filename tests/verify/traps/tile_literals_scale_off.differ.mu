# program: tile_literals.sd
ugraph other_scale of tile_literals {
  kernel k0 grid(g, q.o) warps(4) {
    split q = q.o * q.i(4)
    split k = k.o * k.i(32)
    qs[q.i, e] = Q : shared f16
    loop k.o stages(2) {
      ks[k.i, e] = K : shared f16
      vs[k.i, f] = V : shared f16
      dot[q.i, k.i] = sum[e](qs * ks) : reg f32
      s[q.i, k.i] = dot * 0.12500001 : reg f32
      m[q.i] = max[k.o, k.i](s) : reg f32
      p[q.i, k.i] = exp(s - m) : reg f32
      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m
      o[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 rescale m
    }
    out[q.i, f] = o / l : reg f32
    store out -> O
  }
}
