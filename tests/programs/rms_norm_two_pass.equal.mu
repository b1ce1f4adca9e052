# program: ../../benchmarks/programs/rms_norm.sd b=2 h=48 d=32
# Two loops over h: first the square sum, then the product on normalised rows.
ugraph rms_norm_two_pass of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    loop h.o {
      x1[n, h.i] = X : reg f16
      ss[n] = sum[h.o, h.i](x1 * x1) : reg f32
    }
    r[n] = rsqrt(ss / size(h) + 1e-6) : reg f32
    loop h.o stages(3) {
      x2[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      acc[n, d.i] = sum[h.o, h.i](x2 * r * ws) : reg f32
    }
    store acc -> O
  }
}
# expect: equal
