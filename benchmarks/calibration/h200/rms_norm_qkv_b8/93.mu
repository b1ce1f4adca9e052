# program: ../../../programs/rms_norm_qkv.sd b=8
# measured_us: 15.646
ugraph rms_norm_qkv of rms_norm_qkv {
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(256)
    split d = d.o * d.i(64)
    loop h.o stages(6) bulk {
      xs[n, h.i] = X : reg bf16
      gs[h.i] = g : reg bf16
      ws[h.i, d.i] = W : shared bf16
      t4[n] = sum[h.o, h.i](xs * xs) : reg f32
      t8[n, h.i] = xs * gs : shared bf16
      t18[n, d.i] = sum[h.o, h.i](t8 * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    }
    o[n, d.i] = rsqrt(t4 / size(h) + 1e-6) * t18 : reg f32
    store o -> O
  }
}
