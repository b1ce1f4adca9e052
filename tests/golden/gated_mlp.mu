# program: ../../benchmarks/programs/gated_mlp.sd b=8
ugraph gated_mlp_golden of gated_mlp {
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(128)
    split d = d.o * d.i(32)
    loop h.o stages(4) {
      xs[n, h.i] = X : shared f16
      w1[h.i, d.i] = W1 : shared f16
      w2[h.i, d.i] = W2 : shared f16
      a1[n, d.i] = sum[h.o, h.i](xs * w1) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
      a2[n, d.i] = sum[h.o, h.i](xs * w2) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    }
    o[n, d.i] = silu(a1) * a2 : reg f32
    store o -> O
  }
}
