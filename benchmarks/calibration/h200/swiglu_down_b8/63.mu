# program: ../../../programs/swiglu_down.sd b=8
# measured_us: 73.647998
ugraph swiglu_down of swiglu_down {
  kernel k0 grid(d.o) warps(8) {
    split f = f.o * f.i(512)
    split d = d.o * d.i(32)
    loop f.o stages(4) bulk {
      xs[n, f.i] = X : reg bf16
      us[n, f.i] = U : reg bf16
      ws[f.i, d.i] = W : shared bf16
      t3[n, f.i] = silu(xs) * us : shared bf16
      o[n, d.i] = sum[f.o, f.i](t3 * ws) : reg f32 mma(m16n8k16, swap) warps(f.i/8)
    }
    store o -> O
  }
}
