# program: ../../benchmarks/programs/lora.sd b=2
ugraph g of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
  }
}
# expect: 2:13: error: this µGraph is of program 'rms_norm', not of 'lora'
