# program: product.sd
# The parts of a split sum are stored in bf16.
ugraph product of product {
  kernel part grid(n, k.s) warps(4) {
    split k = k.s(4) * k.i(16)
    y[d] = sum[k.i](X * W) : reg f32
    store y -> parts : bf16[k.s, n, d]
  }
  kernel join grid(n) warps(4) {
    y[d] = sum[k.s](parts) : reg f32
    store y -> Y
  }
}
