# program: ../../../programs/swiglu_down.sd b=8
# measured_us: 37.986
ugraph swiglu_down of swiglu_down {
  axis f.s = f.s of k0
  tensor p_t7: f32[f.s, n, d]
  kernel k0 grid(f.s, d.o) warps(8) {
    split f = f.s * f.o(14) * f.i(64)
    split d = d.o * d.i(256)
    loop f.o stages(2) bulk {
      xs[n, f.i] = X : reg bf16
      us[n, f.i] = U : reg bf16
      ws[f.i, d.i] = W : shared bf16
      t3[n, f.i] = silu(xs) * us : shared bf16
      t7[n, d.i] = sum[f.o, f.i](t3 * ws) : reg f32 mma(m16n8k16, swap) warps(f.i/4, d.i/2)
    }
    store t7 -> p_t7
  }
  kernel k1 grid(n.o, d.o) warps(16) {
    split n = n.o * n.i(2)
    split d = d.o * d.i(112)
    p_t7s[f.s, n.i, d.i] = p_t7 : reg f32
    o[n.i, d.i] = sum[f.s](p_t7s) : reg f32
    store o -> O
  }
}
