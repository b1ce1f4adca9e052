# program: ../../../programs/lora.sd b=8
# measured_us: 5.432500
ugraph lora of lora {
  kernel k0 grid(n.o, d.o) warps(8) {
    split n = n.o * n.i(4)
    split d = d.o * d.i(32)
    bs[r, d.i] = B : shared f16
    as[h, r] = A : shared f16
    xs[n.i, h] = X : shared f16
    ws[h, d.i] = W : shared f16
    t15[h, d.i] = sum[r](as * bs) : reg f32 mma(m64n8k16) warps(h/8)
    o[n.i, d.i] = sum[h](xs * ws + t15 * xs) : reg f32
    store o -> O
  }
}
