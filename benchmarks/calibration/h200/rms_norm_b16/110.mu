# program: ../../../programs/rms_norm.sd b=16
# measured_us: 15.488000
ugraph rms_norm of rms_norm {
  tensor p_r: f32[n]
  kernel k0 grid(n) warps(16) {
    xs[h] = X : reg f16
    t4[] = sum[h](xs * xs) : reg f32
    r[] = rsqrt(t4 / size(h) + 1e-6) : reg f32
    store r -> p_r
  }
  kernel k1 grid(d.o) warps(8) {
    split h = h.o * h.i(256)
    split d = d.o * d.i(64)
    p_rs[n] = p_r : reg f32
    loop h.o stages(4) bulk {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      t13[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    o[n, d.i] = t13 * p_rs : reg f32
    store o -> O
  }
}
