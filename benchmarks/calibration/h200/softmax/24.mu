# program: ../../../programs/softmax.sd
# measured_us: 16.833000
ugraph softmax of softmax {
  kernel k0 grid(n.o) warps(8) {
    split n = n.o * n.i(2)
    xs[n.i, k] = X : reg f16
    t1[n.i] = max[k](xs) : reg f32
    t11[n.i] = sum[k](exp(xs - t1)) : reg f32
    t12[n.i] = 1 / t11 : reg f32
    t14[n.i, k] = exp(xs - t1) * t12 : reg f32
    store t14 -> O
  }
}
