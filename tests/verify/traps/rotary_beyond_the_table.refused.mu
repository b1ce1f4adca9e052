# program: rotary.sd
# Rows of the table that are not there.
ugraph two of rotary {
  kernel a grid(s.o, g) warps(4) {
    split s = s.o * s.i(16)
    y[s.i, d] = sum[h](X * W) : reg f32
    store y -> T : f32[s, g, d]
  }
  kernel b grid(s.o, g) warps(4) {
    split s = s.o * s.i(16)
    o[s.i, d] = select(d < 40, T * C[16 * s.o + s.i, d] - T[16 * s.o + s.i, g, d + size(e)] * S[16 * s.o + s.i, d], T * C[16 * s.o + s.i, d - size(e)] + T[16 * s.o + s.i, g, d - size(e)] * S[16 * s.o + s.i, d - size(e)]) : reg f32
    store o -> O
  }
}
