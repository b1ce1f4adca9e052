# program: ../../../programs/layer_norm.sd
# measured_us: 18.124999
ugraph layer_norm of layer_norm {
  kernel k0 grid(n) warps(8) {
    xs[h] = X : reg f16
    t2[] = sum[h](xs) : reg f32
    c_2[h] = xs - t2 / size(h) : reg f32
    t9[] = sum[h](c_2 * c_2) : reg f32
    t11[] = rsqrt(t9 / size(h) + 1e-5) : reg f32
    ws[h] = w : reg f16
    bs[h] = b : reg f16
    o[h] = c_2 * t11 * ws + bs : reg f32
    store o -> O
  }
}
