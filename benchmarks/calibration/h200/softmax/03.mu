# program: ../../../programs/softmax.sd
# measured_us: 17.417
ugraph softmax of softmax {
  kernel k0 grid(n.o) warps(8) {
    split n = n.o * n.i(2)
    xs[n.i, k] = X : reg f16
    t1_3[n.i] = max[k](xs) : reg f32
    t2[n.i] = t1_3 : reg f32
    t6[n.i] = exp(t1_3 - t2) : reg f32
    t8_2[n.i, k] = exp(xs - t1_3) : reg f32
    t9[n.i] = sum[k](t8_2) : reg f32
    t11[n.i] = t6 * t9 : reg f32
    t12[n.i] = 1 / t11 : reg f32
    t14[n.i, k] = t8_2 * (t12 * t6) : reg f32
    store t14 -> O
  }
}
