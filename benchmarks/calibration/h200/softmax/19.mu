# program: ../../../programs/softmax.sd
# measured_us: 16.543999
ugraph softmax of softmax {
  kernel k0 grid(n) warps(4) {
    xs[k] = X : reg f16
    t1_2[] = max[k](xs) : reg f32
    t2[] = t1_2 : reg f32
    t11[] = sum[k](exp(xs - t2)) : reg f32
    t12[] = 1 / t11 : reg f32
    t14[k] = exp(xs - t1_2) * (t12 * exp(t1_2 - t2)) : reg f32
    store t14 -> O
  }
}
