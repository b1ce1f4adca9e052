# program: ../../../programs/softmax.sd
# measured_us: 17.067
ugraph softmax of softmax {
  kernel k0 grid(n) warps(4) {
    xs[k] = X : reg f16
    t1_2[] = max[k](xs) : reg f32
    t1_3[] = t1_2 : reg f32
    t8_2[k] = exp(xs - t1_2) : reg f32
    t9[] = sum[k](t8_2) : reg f32
    t11[] = t9 * exp(t1_2 - t1_3) : reg f32
    t12[] = 1 / t11 : reg f32
    t14[k] = t8_2 * (t12 * exp(t1_2 - t1_3)) : reg f32
    store t14 -> O
  }
}
