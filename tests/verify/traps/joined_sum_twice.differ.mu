# program: joined_sum.sd
ugraph twice of joined_sum {
  kernel k0 grid(n) warps(1) {
    as[i] = a : reg f32
    s[] = sum[i](as) : reg f32
    bs[j] = a[n, j] : reg f32
    t[] = sum[j](bs) : reg f32
    o[] = s + t : reg f32
    store o -> y
  }
}
