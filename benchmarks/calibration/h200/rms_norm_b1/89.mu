# program: ../../../programs/rms_norm.sd b=1
# measured_us: 21.815
ugraph rms_norm of rms_norm {
  tensor p_t7: f32[n, h]
  kernel k0 grid(n) warps(16) {
    xs[h] = X : reg f16
    t4[] = sum[h](xs * xs) : reg f32
    r[] = rsqrt(t4 / size(h) + 1e-6) : reg f32
    t7[h] = r * xs : reg f32
    store t7 -> p_t7
  }
  kernel k1 grid(d.o) warps(16) {
    split h = h.o * h.i(256)
    split d = d.o * d.i(48)
    loop h.o stages(6) bulk {
      p_t7s[n, h.i] = p_t7 : shared f32
      ws[h.i, d.i] = W : shared f16
      o[n, d.i] = sum[h.o, h.i](p_t7s * ws) : reg f32
    }
    store o -> O
  }
}
