# program: ../../benchmarks/programs/softmax.sd
ugraph softmax_golden of softmax {
  kernel k0 grid(n) warps(8) {
    xs[k] = X : reg f16
    m[] = max[k](xs) : reg f32
    p[k] = exp(xs - m) : reg f32
    l[] = sum[k](p) : reg f32
    o[k] = p / l : reg f32
    store o -> O
  }
}
