# program: ../../../programs/gated_mlp.sd b=16
# measured_us: 24.476000
ugraph gated_mlp of gated_mlp {
  tensor p_gate: f32[n, d]
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(1024)
    split d = d.o * d.i(32)
    loop h.o stages(2) bulk {
      xs[n, h.i] = X : shared f16
      w1s[h.i, d.i] = W1 : shared f16
      gate[n, d.i] = sum[h.o, h.i](xs * w1s) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    store gate -> p_gate
  }
  kernel k1 grid(d.o) warps(8) {
    split h = h.o * h.i(256)
    split d = d.o * d.i(32)
    p_gates[n, d.i] = p_gate : reg f32
    loop h.o stages(4) bulk {
      xs[n, h.i] = X : shared f16
      w2s[h.i, d.i] = W2 : shared f16
      up[n, d.i] = sum[h.o, h.i](xs * w2s) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    o[n, d.i] = up * silu(p_gates) : reg f32
    store o -> O
  }
}
