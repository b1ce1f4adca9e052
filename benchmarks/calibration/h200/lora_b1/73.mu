# program: ../../../programs/lora.sd b=1
# measured_us: 3.574250
ugraph lora of lora {
  kernel k0 grid(d.o) warps(16) {
    split d = d.o * d.i(64)
    bs[r, d.i] = B : shared f16
    as[h, r] = A : shared f16
    xs[n, h] = X : shared f16
    ws[h, d.i] = W : reg f16
    t15[h, d.i] = sum[r](as * bs) : reg f32 mma(m64n8k16) warps(h/16)
    o[n, d.i] = sum[h](xs * ws + t15 * xs) : reg f32
    store o -> O
  }
}
