# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    ws[d.i] = W[0, d] : reg f32
    store ws -> part : f32[d.i]
  }
}
# expect: 7:28: error: factor 'd.i' is not in the grid
