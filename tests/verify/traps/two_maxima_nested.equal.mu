# program: two_maxima.sd
# The product is summed in a loop of its own, inside of the one over the keys.
ugraph nested of two_maxima {
  kernel k0 grid(q) warps(4) {
    split k = k.o * k.i(6)
    split e = e.o * e.i(5)
    loop k.o {
      loop e.o {
        s[k.i] = sum[e.o, e.i](Q * K) : reg f32
      }
      m[] = max[k.o, k.i](s) : reg f32
      p[k.i] = exp(s - m) : reg f32
      l[] = sum[k.o, k.i](p) : reg f32 rescale m
      o[f] = sum[k.o, k.i](p * V) : reg f32 rescale m
    }
    out[f] = o / l : reg f32
    store out -> O
    store m -> M
  }
}
