# program: online.sd
# Split over the keys, each part with its own running maximum; the parts are joined by a second kernel.
ugraph online of online {
  kernel part grid(q.o, k.s) warps(4) {
    split q = q.o * q.i(2)
    split k = k.s(2) * k.o * k.i(3)
    loop k.o {
      ks[k.i, e] = K : shared f16
      s[q.i, k.i] = sum[e](Q * ks) : reg f32
      m[q.i] = max[k.o, k.i](s) : reg f32
      p[q.i, k.i] = exp(s - m) : reg f32
      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m
      o[q.i, f] = sum[k.o, k.i](p * V) : reg f32 rescale m
    }
    store m -> part_m : f32[k.s, q]
    store l -> part_l : f32[k.s, q]
    store o -> part_o : f32[k.s, q, f]
  }
  kernel join grid(q) warps(4) {
    M[] = max[k.s](part_m) : reg f32
    L[] = sum[k.s](part_l * exp(part_m - M)) : reg f32
    O'[f] = sum[k.s](part_o * exp(part_m - M)) : reg f32
    out[f] = O' / L : reg f32
    store out -> O
  }
}
