# program: two_maxima.sd
# The maximum of partial products.
ugraph exchanged of two_maxima {
  kernel k0 grid(q) warps(4) {
    split k = k.o * k.i(6)
    split e = e.o * e.i(5)
    loop e.o {
      loop k.o {
        s[k.i] = sum[e.i](Q * K) : reg f32
        m[] = max[e.o, k.o, k.i](s) : reg f32
        p[k.i] = exp(s - m) : reg f32
        l[] = sum[e.o, k.o, k.i](p) : reg f32 rescale m
        o[f] = sum[e.o, k.o, k.i](p * V) : reg f32 rescale m
      }
    }
    out[f] = o / l : reg f32
    store out -> O
    store m -> M
  }
}
