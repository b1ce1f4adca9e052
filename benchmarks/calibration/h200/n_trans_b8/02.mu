# program: ../../../programs/n_trans.sd b=8
# measured_us: 2.112500
ugraph n_trans of n_trans {
  kernel k0 grid(n) warps(16) {
    hs[h] = H : reg f16
    xs[h] = X : reg f16
    alphas[h] = alpha : reg f16
    t5[] = sum[h](hs * hs) : reg f32
    t7[] = rsqrt(t5 / size(h)) : reg f32
    y_2[h] = xs + (xs + t7 * hs) * alphas : reg f32
    t14[] = sum[h](y_2 * y_2) : reg f32
    t16[] = rsqrt(t14 / size(h)) : reg f32
    o[h] = y_2 * t16 : reg f32
    store o -> O
  }
}
