# program: library_product.sd
ugraph transposed of library_product {
  kernel g library(gemm) {
    c[n, d] = sum[h](X[d, h] * W[h, n]) : reg f32
    store c -> t : f32[n, d]
  }
  kernel e grid(n) warps(4) {
    o[d] = t * sigmoid(t) : reg f32
    store o -> C
  }
}
