# program: ../../../programs/lora.sd b=1
# measured_us: 4.723500
ugraph lora of lora {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(64)
    split d = d.o * d.i(32)
    bs[r, d.i] = B : shared f16
    loop h.o stages(4) bulk {
      as[h.i, r] = A : shared f16
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      t15[h.i, d.i] = sum[r](as * bs) : reg f32 mma(m64n8k16) warps(h.i/4)
      o[n, d.i] = sum[h.o, h.i](xs * ws + t15 * xs) : reg f32
    }
    store o -> O
  }
}
