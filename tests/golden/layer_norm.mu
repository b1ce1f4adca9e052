# program: ../../benchmarks/programs/layer_norm.sd
ugraph layer_norm_golden of layer_norm {
  kernel k0 grid(n) warps(8) {
    xs[h] = X : reg f16
    s[] = sum[h](xs) : reg f32
    c[h] = xs - s / size(h) : reg f32
    v[] = sum[h](c * c) : reg f32
    o[h] = c * rsqrt(v / size(h) + 1e-5) * w + b : reg f32
    store o -> O
  }
}
