# program: two_products.sd
ugraph into of two_products {
  kernel a grid(n) warps(2) {
    split h = h.o * h.i(4)
    loop h.o {
      a[d] = sum[h.o, h.i](x * w) : reg f32
      c[d] = sum[h.o, h.i](x * v * 0.5) : reg f32 into a
    }
    store a -> y
  }
}
