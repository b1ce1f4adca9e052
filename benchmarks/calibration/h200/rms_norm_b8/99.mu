# program: ../../../programs/rms_norm.sd b=8
# measured_us: 14.418667
ugraph rms_norm of rms_norm {
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(256)
    split d = d.o * d.i(48)
    loop h.o stages(4) bulk {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      t4[n] = sum[h.o, h.i](xs * xs) : reg f32
      t13[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    o[n, d.i] = rsqrt(t4 / size(h) + 1e-6) * t13 : reg f32
    store o -> O
  }
}
