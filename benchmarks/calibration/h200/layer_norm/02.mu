# program: ../../../programs/layer_norm.sd
# measured_us: 16.989000
ugraph layer_norm of layer_norm {
  kernel k0 grid(n) warps(4) {
    xs[h] = X : reg f16
    ws[h] = w : reg f16
    bs[h] = b : reg f16
    t0[] = sum[h](xs) : reg f32
    c[h] = xs - t0 / size(h) : reg f32
    t2[] = sum[h](c * c) : reg f32
    O_2[h] = c * rsqrt(t2 / size(h) + 1e-5) * ws + bs : reg f32
    store O_2 -> O
  }
}
