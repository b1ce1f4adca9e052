# program: joined_lse.sd
ugraph parts of joined_lse {
  kernel k0 grid(n) warps(1) {
    as[i] = a : reg f32
    p[] = max[i](as) : reg f32
    s[] = sum[i](exp(as - p)) : reg f32
    bs[j] = b : reg f32
    q[] = max[j](bs) : reg f32
    t[] = sum[j](exp(bs - q)) : reg f32
    m[] = max(p, q) : reg f32
    o[] = m + log(exp(p - m) * s + exp(q - m) * t) : reg f32
    store o -> y
  }
}
