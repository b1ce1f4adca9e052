# program: ../../../programs/rms_norm.sd b=8
# measured_us: 16.889
ugraph rms_norm of rms_norm {
  tensor p_t4: f32[n]
  tensor p_t13: f32[n, d]
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(256)
    split d = d.o * d.i(48)
    loop h.o stages(5) bulk {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      t4[n] = sum[h.o, h.i](xs * xs) : reg f32
      t13[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    store t4 -> p_t4
    store t13 -> p_t13
  }
  kernel k1 grid(n.o, d.o) warps(1) {
    split n = n.o * n.i(2)
    split d = d.o * d.i(128)
    p_t4s[n.i] = p_t4 : reg f32
    p_t13s[n.i, d.i] = p_t13 : reg f32
    o[n.i, d.i] = rsqrt(p_t4s / size(h) + 1e-6) * p_t13s : reg f32
    store o -> O
  }
}
