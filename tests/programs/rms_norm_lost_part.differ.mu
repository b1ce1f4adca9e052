# program: ../../benchmarks/programs/rms_norm.sd b=2 h=64 d=48
# The square sums of the parts are not summed: the join takes the largest.
ugraph rms_norm_lost_part of rms_norm {
  kernel part grid(d.o, h.s) warps(4) {
    split h = h.s(2) * h.o * h.i(8)
    split d = d.o * d.i(16)
    loop h.o {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      ss[n] = sum[h.o, h.i](xs * xs) : reg f32
      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32
    }
    store ss -> part_ss : f32
    store acc -> part_acc : f32
  }
  kernel join grid(n) warps(4) {
    s[] = max[h.s](part_ss) : reg f32
    a[d] = sum[h.s](part_acc) : reg f32
    o[d] = a * rsqrt(s / size(h) + 1e-6) : reg f32
    store o -> O
  }
}
# expect: different
