# program: ../../../programs/softmax.sd
# measured_us: 16.816000
ugraph softmax of softmax {
  kernel k0 grid(n.o) warps(8) {
    split n = n.o * n.i(2)
    xs[n.i, k] = X : reg f16
    t1_2[n.i] = max[k](xs) : reg f32
    t2[n.i] = t1_2 : reg f32
    t11[n.i] = sum[k](exp(xs - t2)) : reg f32
    t12[n.i] = 1 / t11 : reg f32
    t14[n.i, k] = exp(xs - t1_2) * (t12 * exp(t1_2 - t2)) : reg f32
    store t14 -> O
  }
}
