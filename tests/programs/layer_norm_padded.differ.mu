# program: ../../benchmarks/programs/layer_norm.sd n=3 h=40
# The mean is divided by the padded extent.
ugraph layer_norm_padded of layer_norm {
  kernel k0 grid(n) warps(4) {
    xs[h] = X : reg f16
    total[] = sum[h](xs) : reg f32
    c[h] = xs - total / (size(h) + 8) : reg f32
    square[] = sum[h](c * c) : reg f32
    y[h] = c * rsqrt(square / size(h) + 1e-5) * w + b : reg f32
    store y -> O
  }
}
# expect: different
