# program: ../../../programs/lora.sd b=8
# measured_us: 4.837
ugraph lora of lora {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(64)
    split d = d.o * d.i(32)
    bs[r, d.i] = B : shared f16
    loop h.o stages(4) bulk {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      as[h.i, r] = A : shared f16
      t4[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/4)
      t7[n, r] = sum[h.i](xs * as) : reg f32 mma(m16n8k16, swap) warps(h.i/4)
      t14[n, d.i, r] = sum[h.o](t7 * bs) : reg f32
    }
    t18[n, d.i] = sum[r](t14) : reg f32
    o[n, d.i] = t4 + t18 : reg f32
    store o -> O
  }
}
