# program: ../../../programs/lora.sd b=16
# measured_us: 3.072500
ugraph lora of lora {
  kernel k0 grid(d.o) warps(8) {
    split d = d.o * d.i(64)
    bs[r, d.i] = B : shared f16
    xs[n, h] = X : shared f16
    ws[h, d.i] = W : shared f16
    as[h, r] = A : shared f16
    t4[n, d.i] = sum[h](xs * ws) : reg f32 mma(m16n8k16) warps(h/8)
    low[n, r] = sum[h](xs * as) : reg f32 mma(m16n8k16) warps(h/8)
    lowc[n, r] = low : shared f16
    t18[n, d.i] = sum[r](lowc * bs) : reg f32 mma(m16n8k16) warps(d.i/8)
    o[n, d.i] = t4 + t18 : reg f32
    store o -> O
  }
}
