# program: attack_ragged.sd
# Zeros in the last tile stand for elements: (0 - m)^2 is not 0.
ugraph ragged of attack_ragged {
  kernel k0 grid(n) warps(4) {
    split h = h.o * h.i(4)
    loop h.o {
      s[] = sum[h.o, h.i](X) : reg f32
    }
    loop h.o {
      v[] = sum[h.o, h.i](select(h < 10, X - s / size(h), s / size(h)) * (X - s / size(h))) : reg f32
    }
    y[] = v / size(h) + 2 * (s / size(h)) * (s / size(h)) / size(h) : reg f32
    store y -> Y
  }
}
