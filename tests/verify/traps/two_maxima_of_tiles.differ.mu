# program: two_maxima.sd
# It subtracts the maximum of the tile and rescales by the running one.
ugraph tiles of two_maxima {
  kernel k0 grid(q) warps(4) {
    split k = k.o * k.i(6)
    loop k.o {
      s[k.i] = sum[e](Q * K) : reg f32
      mt[] = max[k.i](s) : reg f32
      m[] = max[k.o](mt) : reg f32
      p[k.i] = exp(s - mt) : reg f32
      l[] = sum[k.o, k.i](p) : reg f32 rescale m
      o[f] = sum[k.o, k.i](p * V) : reg f32 rescale m
    }
    out[f] = o / l : reg f32
    store out -> O
    store m -> M
  }
}
