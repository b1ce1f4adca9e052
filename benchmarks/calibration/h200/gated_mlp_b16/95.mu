# program: ../../../programs/gated_mlp.sd b=16
# measured_us: 25.76
ugraph gated_mlp of gated_mlp {
  kernel k0 grid(n.o, d.o) warps(16) {
    split n = n.o * n.i(8)
    split h = h.o * h.i(128)
    split d = d.o * d.i(64)
    loop h.o stages(4) bulk {
      xs[n.i, h.i] = X : shared f16
      w2s[h.i, d.i] = W2 : shared f16
      w1s[h.i, d.i] = W1 : shared f16
      up[n.i, d.i] = sum[h.o, h.i](xs * w2s) : reg f32 mma(m16n8k16, swap) warps(h.i/8, d.i/2)
      gate[n.i, d.i] = sum[h.o, h.i](xs * w1s) : reg f32 mma(m16n8k16, swap) warps(h.i/8, d.i/2)
    }
    o[n.i, d.i] = up * silu(gate) : reg f32
    store o -> O
  }
}
