# program: ../../../programs/softmax.sd
# measured_us: 16.574000
ugraph softmax of softmax {
  kernel k0 grid(n) warps(4) {
    xs[k] = X : reg f16
    t1[] = max[k](xs) : reg f32
    t11[] = sum[k](exp(xs - t1)) : reg f32
    t12[] = 1 / t11 : reg f32
    t14[k] = exp(xs - t1) * t12 : reg f32
    store t14 -> O
  }
}
