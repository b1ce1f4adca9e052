# program: ../../../programs/gated_mlp.sd b=1
# measured_us: 17.352000
ugraph gated_mlp of gated_mlp {
  kernel k0 grid(d.o) warps(16) {
    split h = h.o * h.i(128)
    split d = d.o * d.i(32)
    loop h.o stages(7) bulk {
      xs[n, h.i] = X : shared f16
      w2s[h.i, d.i] = W2 : shared f16
      w1s[h.i, d.i] = W1 : shared f16
      up[n, d.i] = sum[h.o, h.i](xs * w2s) : reg f32 mma(m16n8k16, swap) warps(h.i/8, d.i/2)
      gate[n, d.i] = sum[h.o, h.i](xs * w1s) : reg f32 mma(m16n8k16, swap) warps(h.i/8, d.i/2)
    }
    o[n, d.i] = up * silu(gate) : reg f32
    store o -> O
  }
}
