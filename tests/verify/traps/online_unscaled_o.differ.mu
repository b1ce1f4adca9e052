# program: online.sd
# The accumulator o forgets the running maximum.
ugraph online of online {
  kernel k0 grid(q.o) warps(4) {
    split q = q.o * q.i(2)
    split k = k.o * k.i(4)
    loop k.o {
      ks[k.i, e] = K : shared f16
      s[q.i, k.i] = sum[e](Q * ks) : reg f32
      m[q.i] = max[k.o, k.i](s) : reg f32
      p[q.i, k.i] = exp(s - m) : reg f32
      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m
      o[q.i, f] = sum[k.o, k.i](p * V) : reg f32
    }
    out[q.i, f] = o / l : reg f32
    store out -> O
  }
}
