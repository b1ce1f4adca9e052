# program: ../../benchmarks/programs/gated_mlp.sd b=2 h=32 d=16
# The gate is applied to the wrong product.
ugraph gated_mlp_wrong of gated_mlp {
  kernel k0 grid(d) warps(2) {
    split h = h.o * h.i(16)
    loop h.o {
      xs[n, h.i] = X : shared f16
      gate[n] = sum[h.o, h.i](xs * W1) : reg f32
      up[n] = sum[h.o, h.i](xs * W2) : reg f32
    }
    o[n] = gate * silu(up) : reg f32
    store o -> O
  }
}
# expect: different
