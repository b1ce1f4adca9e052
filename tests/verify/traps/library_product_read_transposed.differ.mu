# program: library_product.sd
ugraph read of library_product {
  kernel g library(gemm) {
    c[n, d] = sum[h](X * W) : reg f32
    store c -> t : f32[n, d]
  }
  kernel e grid(n) warps(4) {
    o[d] = t[d, n] * sigmoid(t[d, n]) : reg f32
    store o -> C
  }
}
