# program: ../../../programs/linear_heads.sd b=16
# measured_us: 17.008
ugraph linear_heads of linear_heads {
  tensor p_t3: f32[b, g, d]
  kernel k0 grid(g, d.o) warps(8) {
    split d = d.o * d.i(128)
    xs[b, e] = x : shared bf16
    ws[d.i, e] = w : shared bf16
    t3[b, d.i] = sum[e](xs * ws) : reg f32 mma(m16n8k16) warps(e/8)
    store t3 -> p_t3
  }
  kernel k1 grid(b.o, d.o) warps(4) {
    split b = b.o * b.i(4)
    split d = d.o * d.i(32)
    p_t3s[b.i, g, d.i] = p_t3 : reg f32
    y_2[b.i, d.i] = sum[g](p_t3s) : reg f32
    store y_2 -> y
  }
}
