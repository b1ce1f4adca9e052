# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    ws[d.i] = W[0, d] : shared f16
    store ws -> W[0, d]
  }
}
# expect: 7:17: error: kernel 'k0': the store to tensor 'W' writes an input
