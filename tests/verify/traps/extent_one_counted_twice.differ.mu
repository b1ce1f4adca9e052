# program: extent_one.sd
ugraph counted of extent_one {
  kernel a grid(n) warps(2) {
    split k = k.o * k.i(4)
    split u = u.o * u.i(2)
    loop k.o {
      y1[d] = sum[u.o, u.i, k.o, k.i](x * w) : reg f32
      m1[u.o, u.i] = max[k.o, k.i](x) : reg f32
    }
    z[d] = y1 + b[0, d] * 2 : reg f32
    store z -> y
    store m1 -> m
  }
}
