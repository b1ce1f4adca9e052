# program: ../../benchmarks/programs/rms_norm.sd b=1
ugraph rms_norm_cluster_golden of rms_norm {
  kernel part grid(d.o, h.s) warps(4) {
    split h = h.s(4) * h.o * h.i(64)
    split d = d.o * d.i(64)
    loop h.o stages(4) bulk {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      ss[n] = sum[h.o, h.i](xs * xs) : reg f32
      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16, swap)
    }
    store ss -> ps : f32[h.s, n]
    store acc -> pa : f32[h.s, n, d]
  }
  kernel join grid(d.o, d.c) warps(4) via cluster {
    split d = d.o * d.c(4) * d.i(16)
    q[n] = sum[h.s](ps) : reg f32
    a[n, d.i] = sum[h.s](pa) : reg f32
    o[n, d.i] = a * rsqrt(q / size(h) + 1e-6) : reg f32
    store o -> O
  }
}
