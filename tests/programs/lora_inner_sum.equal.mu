# program: ../../benchmarks/programs/lora.sd b=2 h=32 d=32 r=4
# X A B summed inside the loop: the product by B distributes over the tiles of h.
ugraph lora_inner_sum of lora {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    bs[r, d.i] = B : shared f16
    loop h.o {
      xs[n, h.i] = X : shared f16
      ws[h.i, d.i] = W : shared f16
      as[h.i, r] = A : shared f16
      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32
      low[n, r] = sum[h.i](xs * as) : reg f32
      both[n, d.i] = sum[h.o, r](low * bs) : reg f32 into acc
    }
    store acc -> O
  }
}
# expect: equal
