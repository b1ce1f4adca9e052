# program: ../../../programs/rms_norm.sd b=16
# measured_us: 17.945
ugraph rms_norm of rms_norm {
  tensor p_t13: f32[n, d]
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(128)
    split d = d.o * d.i(64)
    loop h.o stages(7) bulk {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      t13[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    store t13 -> p_t13
  }
  kernel k1 grid(n) warps(16) {
    xs[h] = X : reg f16
    p_t13s[d] = p_t13 : reg f32
    t4[] = sum[h](xs * xs) : reg f32
    r[] = rsqrt(t4 / size(h) + 1e-6) : reg f32
    o[d] = r * p_t13s : reg f32
    store o -> O
  }
}
