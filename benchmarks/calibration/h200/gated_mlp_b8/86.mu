# program: ../../../programs/gated_mlp.sd b=8
# measured_us: 18.950
ugraph gated_mlp of gated_mlp {
  tensor p_up: f32[n, d]
  tensor p_gate: f32[n, d]
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(256)
    split d = d.o * d.i(32)
    loop h.o stages(5) bulk {
      xs[n, h.i] = X : shared f16
      w2s[h.i, d.i] = W2 : shared f16
      w1s[h.i, d.i] = W1 : shared f16
      up[n, d.i] = sum[h.o, h.i](xs * w2s) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
      gate[n, d.i] = sum[h.o, h.i](xs * w1s) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    }
    store up -> p_up
    store gate -> p_gate
  }
  kernel k1 grid(d.o) warps(1) {
    split d = d.o * d.i(16)
    p_gates[n, d.i] = p_gate : reg f32
    p_ups[n, d.i] = p_up : reg f32
    o[n, d.i] = silu(p_gates) * p_ups : reg f32
    store o -> O
  }
}
