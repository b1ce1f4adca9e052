# program: ../../../programs/softmax.sd
# measured_us: 16.813001
ugraph softmax of softmax {
  kernel k0 grid(n.o) warps(8) {
    split n = n.o * n.i(2)
    xs[n.i, k] = X : reg f16
    t1[n.i] = max[k](xs) : reg f32
    t2[n.i] = t1 : reg f32
    t9[n.i] = sum[k](exp(xs - t1)) : reg f32
    t11[n.i] = exp(t1 - t2) * t9 : reg f32
    t12[n.i] = 1 / t11 : reg f32
    t14[n.i, k] = exp(xs - t2) * t12 : reg f32
    store t14 -> O
  }
}
