# program: epsilon.sd
# The mean and the epsilon are kept in f16, which has one digit left there.
ugraph epsilon of epsilon {
  kernel k0 grid(n) warps(4) {
    xs[h] = X : shared f16
    s[] = sum[h](xs * xs) : reg f32
    v[] = s / size(h) + 1e-6 : shared f16
    y[h] = xs * rsqrt(v) : reg f32
    store y -> Y
  }
}
