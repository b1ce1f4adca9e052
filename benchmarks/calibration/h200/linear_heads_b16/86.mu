# program: ../../../programs/linear_heads.sd b=16
# measured_us: 21.014
ugraph linear_heads of linear_heads {
  tensor p_t3: f32[b, g, d]
  kernel k0 grid(g, d.o) warps(8) {
    split d = d.o * d.i(64)
    xs[b, e] = x : shared bf16
    ws[d.i, e] = w : shared bf16
    t3[b, d.i] = sum[e](xs * ws) : reg f32 mma(m16n8k16) warps(e/8)
    store t3 -> p_t3
  }
  kernel k1 grid(d.o) warps(8) via last_block {
    split d = d.o * d.i(64)
    p_t3s[b, g, d.i] = p_t3 : reg f32
    y_2[b, d.i] = sum[g](p_t3s) : reg f32
    store y_2 -> y
  }
}
