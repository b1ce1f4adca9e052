# program: ../../../programs/softmax.sd
# measured_us: 16.588000
ugraph softmax of softmax {
  kernel k0 grid(n) warps(4) {
    xs[k] = X : reg f16
    t1_3[] = max[k](xs) : reg f32
    t2[] = t1_3 : reg f32
    t6[] = exp(t1_3 - t2) : reg f32
    t8_2[k] = exp(xs - t1_3) : reg f32
    t9[] = sum[k](t8_2) : reg f32
    t11[] = t6 * t9 : reg f32
    t12[] = 1 / t11 : reg f32
    t14[k] = t8_2 * (t12 * t6) : reg f32
    store t14 -> O
  }
}
