# program: ../../benchmarks/programs/n_trans.sd b=3 h=20
# Both norms of a row in one block.
ugraph n_trans_row of n_trans {
  kernel k0 grid(n) warps(4) {
    hs[h] = H : reg f16
    xs[h] = X : reg f16
    sh[] = sum[h](hs * hs) : reg f32
    t[h] = xs + alpha * (hs * rsqrt(sh / size(h)) + xs) : reg f32
    st[] = sum[h](t * t) : reg f32
    o[h] = t * rsqrt(st / size(h)) : reg f32
    store o -> O
  }
}
# expect: equal
