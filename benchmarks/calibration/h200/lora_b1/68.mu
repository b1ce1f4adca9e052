# program: ../../../programs/lora.sd b=1
# measured_us: 2.982000
ugraph lora of lora {
  kernel k0 grid(d.o) warps(8) {
    split d = d.o * d.i(64)
    bs[r, d.i] = B : reg f16
    xs[n, h] = X : shared f16
    ws[h, d.i] = W : shared f16
    as[h, r] = A : shared f16
    t4[n, d.i] = sum[h](xs * ws) : reg f32 mma(m16n8k16, swap) warps(h/8)
    t7[n, r] = sum[h](xs * as) : reg f32 mma(m16n8k16, swap) warps(h/8)
    t14[n, d.i, r] = t7 * bs : reg f32
    t18[n, d.i] = sum[r](t14) : reg f32
    o[n, d.i] = t4 + t18 : reg f32
    store o -> O
  }
}
