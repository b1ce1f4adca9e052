# program: ../../../benchmarks/programs/softmax.sd
# What the search picks for an H200.
ugraph softmax of softmax {
  kernel k0 grid(n) warps(8) {
    xs[k] = X : reg f16
    t2[] = max[k](xs) : reg f32
    t8_2[k] = exp(xs - t2) : reg f32
    t11[] = sum[k](t8_2) : reg f32
    t12[] = 1 / t11 : reg f32
    t14[k] = t8_2 * t12 : reg f32
    store t14 -> O
  }
}
# expect: equal
