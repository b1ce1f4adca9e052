# program: library_product.sd
ugraph stored of library_product {
  kernel g library(gemm) {
    c[n, d] = sum[h](X * W) : reg f32
    store c -> t[d, n] : f32[n, d]
  }
  kernel e grid(n) warps(4) {
    o[d] = t * sigmoid(t) : reg f32
    store o -> C
  }
}
