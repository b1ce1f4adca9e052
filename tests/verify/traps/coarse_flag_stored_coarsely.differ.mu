# program: coarse_flag.sd
# The exponential has two bits of mantissa left.
ugraph stored of coarse_flag {
  kernel a grid(n) warps(4) {
    e[h] = exp(X) : reg f32
    store e -> T : f8e5m2[n, h]
  }
  kernel b grid(n) warps(4) {
    o[h] = T * select(M > 0.5, 1, 2) : reg f32
    store o -> O
  }
}
