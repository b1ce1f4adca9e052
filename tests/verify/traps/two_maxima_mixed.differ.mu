# program: two_maxima.sd
# The second loop subtracts the maximum of the first and rescales by its own.
ugraph mixed of two_maxima {
  kernel k0 grid(q) warps(4) {
    split k = k.o * k.i(6)
    loop k.o {
      s[k.i] = sum[e](Q * K) : reg f32
      m[] = max[k.o, k.i](s) : reg f32
      p[k.i] = exp(s - m) : reg f32
      l[] = sum[k.o, k.i](p) : reg f32 rescale m
    }
    loop k.o {
      s2[k.i] = sum[e](Q * K) : reg f32
      m2[] = max[k.o, k.i](s2) : reg f32
      p2[k.i] = exp(s2 - m) : reg f32
      o[f] = sum[k.o, k.i](p2 * V) : reg f32 rescale m2
    }
    out[f] = o / l : reg f32
    store out -> O
    store m -> M
  }
}
