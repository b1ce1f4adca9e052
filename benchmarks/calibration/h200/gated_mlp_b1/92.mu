# program: ../../../programs/gated_mlp.sd b=1
# measured_us: 19.131000
ugraph gated_mlp of gated_mlp {
  axis h.s = h.s of k0
  tensor p_t4: f32[h.s, n, d]
  tensor p_t9: f32[h.s, n, d]
  kernel k0 grid(h.s, d.o) warps(8) {
    split h = h.s * h.o(22) * h.i(16)
    split d = d.o * d.i(128)
    loop h.o stages(5) bulk {
      xs[n, h.i] = X : shared f16
      w2s[h.i, d.i] = W2 : shared f16
      w1s[h.i, d.i] = W1 : shared f16
      t4[n, d.i] = sum[h.o, h.i](xs * w2s) : reg f32 mma(m16n8k16, swap) warps(d.i/8)
      t9[n, d.i] = sum[h.o, h.i](xs * w1s) : reg f32 mma(m16n8k16, swap) warps(d.i/8)
    }
    store t4 -> p_t4
    store t9 -> p_t9
  }
  kernel k1 grid(d.o) warps(8) via last_block {
    split d = d.o * d.i(128)
    p_t4s[h.s, n, d.i] = p_t4 : reg f32
    p_t9s[h.s, n, d.i] = p_t9 : reg f32
    up[n, d.i] = sum[h.s](p_t4s) : reg f32
    gate[n, d.i] = sum[h.s](p_t9s) : reg f32
    o[n, d.i] = up * silu(gate) : reg f32
    store o -> O
  }
}
