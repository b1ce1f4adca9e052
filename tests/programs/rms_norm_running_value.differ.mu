# program: ../../benchmarks/programs/rms_norm.sd b=1 h=64 d=32
# The division is inside the loop: it divides each part by the running square sum.
ugraph rms_norm_running of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    loop h.o {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      ss[n] = sum[h.o, h.i](xs * xs) : reg f32
      xn[n, h.i] = xs * rsqrt(ss / size(h) + 1e-6) : reg f32
      acc[n, d.i] = sum[h.o, h.i](xn * ws) : reg f32
    }
    store acc -> O
  }
}
# expect: different
