# program: product.sd
# Each product is rounded before it is added, by where it is stored.
ugraph product of product {
  kernel k0 grid(n) warps(4) {
    p[k, d] = X * W : shared f16
    y[d] = sum[k](p) : reg f32
    store y -> Y
  }
}
