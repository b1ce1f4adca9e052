# program: ../../benchmarks/programs/lora.sd b=16
ugraph lora_golden of lora {
  kernel k0 grid(d.o) warps(8) {
    split d = d.o * d.i(32)
    xs[n, h] = X : shared f16
    as[h, r] = A : shared f16
    ws[h, d.i] = W : shared f16
    bs[r, d.i] = B : shared f16
    low[n, r] = sum[h](xs * as) : reg f32 mma(m16n8k16) warps(h/8)
    lh[n, r] = low : shared f16
    acc[n, d.i] = sum[h](xs * ws) : reg f32 mma(m16n8k16) warps(h/8)
    both[n, d.i] = sum[r](lh * bs) : reg f32 mma(m16n8k16) into acc
    store acc -> O
  }
}
