# program: ../../benchmarks/programs/add_rms_norm.sd b=1 h=24
# Two outputs of one row.
ugraph add_rms_norm_row of add_rms_norm {
  kernel k0 grid(n) warps(4) {
    sum_[h] = X + R : reg f32
    square[] = sum[h](sum_ * sum_) : reg f32
    o[h] = sum_ * rsqrt(square / size(h) + 1e-6) * g : reg f32
    store sum_ -> y
    store o -> O
  }
}
# expect: equal
