# program: ../../../programs/rms_norm.sd b=1
# measured_us: 16.043555
ugraph rms_norm of rms_norm {
  tensor p_t13: f32[n, d]
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(128)
    split d = d.o * d.i(32)
    loop h.o stages(8) bulk {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      t13[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    }
    store t13 -> p_t13
  }
  kernel k1 grid(n, d.o) warps(16) {
    split d = d.o * d.i(256)
    p_t13s[d.i] = p_t13 : reg f32
    xs[h] = X : reg f16
    t4[] = sum[h](xs * xs) : reg f32
    o[d.i] = rsqrt(t4 / size(h) + 1e-6) * p_t13s : reg f32
    store o -> O
  }
}
