# program: library_product.sd
ugraph order of library_product {
  kernel g library(gemm) {
    c[n, d] = sum[h](W[h, d] * X[n, h]) : reg f32
    store c -> t : f32[n, d]
  }
  kernel e grid(n) warps(4) {
    o[d] = t * sigmoid(t) : reg f32
    store o -> C
  }
}
