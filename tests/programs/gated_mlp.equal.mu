# program: ../../benchmarks/programs/gated_mlp.sd b=2 h=48 d=40
# X is read once for both products; gate and product stay in registers.
ugraph gated_mlp_fused of gated_mlp {
  kernel k0 grid(d.o) warps(2) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    loop h.o stages(4) {
      xs[n, h.i] = X : shared f16
      w1[h.i, d.i] = W1 : shared f16
      w2[h.i, d.i] = W2 : shared f16
      gate[n, d.i] = sum[h.o, h.i](xs * w1) : reg f32 mma(m16n8k16, swap)
      up[n, d.i] = sum[h.o, h.i](xs * w2) : reg f32 mma(m16n8k16, swap)
    }
    o[n, d.i] = silu(gate) * up : reg f32
    store o -> O
  }
}
# expect: equal
