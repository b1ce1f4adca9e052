# program: ../../../programs/n_trans.sd b=8
# measured_us: 3.219250
ugraph n_trans of n_trans {
  kernel k0 grid(n.o) warps(16) {
    split n = n.o * n.i(4)
    hs[n.i, h] = H : reg f16
    xs[n.i, h] = X : reg f16
    alphas[n.i, h] = alpha : reg f16
    t5[n.i] = sum[h](hs * hs) : reg f32
    t7[n.i] = rsqrt(t5 / size(h)) : reg f32
    y_2[n.i, h] = xs + (xs + t7 * hs) * alphas : reg f32
    t14[n.i] = sum[h](y_2 * y_2) : reg f32
    t16[n.i] = rsqrt(t14 / size(h)) : reg f32
    o[n.i, h] = y_2 * t16 : reg f32
    store o -> O
  }
}
