# program: ../../benchmarks/programs/rms_norm.sd b=2 h=56 d=48
# h is split over the blocks of a cluster; the last part is ragged.  Two of the three blocks add the
# parts, each of half the columns, and every cluster has square sums of its own.
ugraph rms_norm_cluster of rms_norm {
  kernel part grid(d.o, h.s) warps(4) {
    split h = h.s(3) * h.o * h.i(8)
    split d = d.o * d.i(16)
    loop h.o stages(2) {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      ss[n] = sum[h.o, h.i](xs * xs) : reg f32
      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32
    }
    store ss -> part_ss : f32
    store acc -> part_acc : f32[h.s, n, d]
  }
  kernel join grid(d.o, d.c) warps(4) via cluster {
    split d = d.o * d.c(2) * d.i(8)
    s[n] = sum[h.s](part_ss) : reg f32
    a[n, d.i] = sum[h.s](part_acc) : reg f32
    o[n, d.i] = a * rsqrt(s / size(h) + 1e-6) : reg f32
    store o -> O
  }
}
# expect: equal
