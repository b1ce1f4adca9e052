# program: attack_ragged.sd
ugraph ragged of attack_ragged {
  kernel k0 grid(n.o) warps(4) {
    split n = n.o * n.i(4)
    split h = h.o * h.i(4)
    loop h.o {
      s[n.i] = sum[h.o, h.i](X) : reg f32
    }
    loop h.o {
      d[n.i, h.i] = X - s / size(h) : reg f32
      v[n.i] = sum[h.o, h.i](d * d) : reg f32
    }
    y[n.i] = v / size(h) : reg f32
    store y -> Y
  }
}
