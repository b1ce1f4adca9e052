# program: extent_one.sd
# The bias is added once a part.
ugraph parts of extent_one {
  kernel a grid(n, k.s) warps(2) {
    split k = k.s(3) * k.o * k.i(4)
    loop k.o {
      y1[d] = sum[u, k.o, k.i](x * w) : reg f32
      m1[u] = max[k.o, k.i](x) : reg f32
    }
    store y1 -> py : f32[k.s, n, d]
    store m1 -> pm : f32[k.s, n, u]
  }
  kernel j grid(n) warps(2) via last_block {
    yy[d] = sum[k.s](py + b[0, d]) : reg f32
    bb[d] = sum[u](b) : reg f32
    z[d] = yy + 0 * bb : reg f32
    mm[u] = max[k.s](pm) : reg f32
    store z -> y
    store mm -> m
  }
}
