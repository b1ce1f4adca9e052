# program: ../../../programs/n_trans.sd b=8
# measured_us: 2.112000
ugraph n_trans of n_trans {
  kernel k0 grid(n) warps(16) {
    hs[h] = H : reg f16
    xs[h] = X : reg f16
    alphas[h] = alpha : reg f16
    t0[] = sum[h](hs * hs) : reg f32
    y[h] = xs + alphas * (hs * rsqrt(t0 / size(h)) + xs) : reg f32
    t2[] = sum[h](y * y) : reg f32
    O_2[h] = y * rsqrt(t2 / size(h)) : reg f32
    store O_2 -> O
  }
}
