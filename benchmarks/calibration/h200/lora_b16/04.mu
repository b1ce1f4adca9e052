# program: ../../../programs/lora.sd b=16
# measured_us: 3.383000
ugraph lora of lora {
  kernel k0 grid(d.o) warps(8) {
    split d = d.o * d.i(32)
    bs[r, d.i] = B : shared f16
    as[h, r] = A : shared f16
    ws[h, d.i] = W : reg f16
    xs[n, h] = X : shared f16
    t15[h, d.i] = sum[r](as * bs) : reg f32 mma(m64n8k16) warps(h/8)
    t19[h, d.i] = ws + t15 : shared f16
    o[n, d.i] = sum[h](t19 * xs) : reg f32 mma(m16n8k16) warps(h/8)
    store o -> O
  }
}
