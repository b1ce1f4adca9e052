# program: ../../../programs/linear_heads.sd b=16
# measured_us: 11.062
ugraph linear_heads of linear_heads {
  kernel k0 grid(d.o) warps(8) {
    split g = g.o * g.i(4)
    split d = d.o * d.i(32)
    loop g.o stages(3) bulk {
      xs[g.i, b, e] = x : shared bf16
      ws[g.i, d.i, e] = w : shared bf16
      y_2[b, d.i] = sum[g.o, g.i, e](xs * ws) : reg f32 mma(m16n8k16) warps(e/8)
    }
    store y_2 -> y
  }
}
