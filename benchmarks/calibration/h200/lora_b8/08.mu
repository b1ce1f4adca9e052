# program: ../../../programs/lora.sd b=8
# measured_us: 4.776
ugraph lora of lora {
  kernel k0 grid(d.o) warps(2) {
    split h = h.o * h.i(32)
    split d = d.o * d.i(32)
    bs[r, d.i] = B : shared f16
    loop h.o stages(8) bulk {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      as[h.i, r] = A : shared f16
      t4[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/2)
      low[n, r] = sum[h.o, h.i](xs * as) : reg f32 mma(m16n8k16, swap) warps(h.i/2)
    }
    lowc[n, r] = low : shared f16
    t18[n, d.i] = sum[r](lowc * bs) : reg f32 mma(m16n8k16, swap) warps(d.i/2)
    o[n, d.i] = t4 + t18 : reg f32
    store o -> O
  }
}
