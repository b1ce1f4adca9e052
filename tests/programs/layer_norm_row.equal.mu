# program: ../../benchmarks/programs/layer_norm.sd n=3 h=40
# A row a block, held in registers; the last warp's share is ragged.
ugraph layer_norm_row of layer_norm {
  kernel k0 grid(n) warps(4) {
    xs[h] = X : reg f16 warps(h/4)
    total[] = sum[h](xs) : reg f32
    c[h] = xs - total / size(h) : reg f32 warps(h/4)
    square[] = sum[h](c * c) : reg f32
    y[h] = c * rsqrt(square / size(h) + 1e-5) * w + b : reg f32 warps(h/4)
    store y -> O
  }
}
# expect: equal
