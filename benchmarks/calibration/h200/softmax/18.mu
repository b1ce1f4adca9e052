# program: ../../../programs/softmax.sd
# measured_us: 16.539000
ugraph softmax of softmax {
  kernel k0 grid(n) warps(4) {
    xs[k] = X : reg f16
    t2[] = max[k](xs) : reg f32
    t4_2[k] = exp(xs - t2) : reg f32
    t11[] = sum[k](t4_2) : reg f32
    t12[] = 1 / t11 : reg f32
    t14[k] = t4_2 * t12 : reg f32
    store t14 -> O
  }
}
