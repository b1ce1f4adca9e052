# program: ../../benchmarks/programs/n_trans.sd b=16
ugraph n_trans_golden of n_trans {
  kernel k0 grid(n) warps(16) {
    hs[h] = H : reg f16
    xs[h] = X : reg f16
    al[h] = alpha : reg f16
    sh[] = sum[h](hs * hs) : reg f32
    t[h] = xs + al * (hs * rsqrt(sh / size(h)) + xs) : reg f32
    st[] = sum[h](t * t) : reg f32
    o[h] = t * rsqrt(st / size(h)) : reg f32
    store o -> O
  }
}
