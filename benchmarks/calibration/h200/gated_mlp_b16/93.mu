# program: ../../../programs/gated_mlp.sd b=16
# measured_us: 19.354
ugraph gated_mlp of gated_mlp {
  tensor p_up: f32[n, d]
  tensor p_gate: f32[n, d]
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(128)
    split d = d.o * d.i(32)
    loop h.o stages(7) bulk {
      xs[n, h.i] = X : shared f16
      w2s[h.i, d.i] = W2 : shared f16
      w1s[h.i, d.i] = W1 : shared f16
      up[n, d.i] = sum[h.o, h.i](xs * w2s) : reg f32 mma(m16n8k16) warps(h.i/8)
      gate[n, d.i] = sum[h.o, h.i](xs * w1s) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    store up -> p_up
    store gate -> p_gate
  }
  kernel k1 grid(n.o, d.o) warps(1) {
    split n = n.o * n.i(4)
    split d = d.o * d.i(64)
    p_gates[n.i, d.i] = p_gate : reg f32
    p_ups[n.i, d.i] = p_up : reg f32
    o[n.i, d.i] = silu(p_gates) * p_ups : reg f32
    store o -> O
  }
}
