# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(d) warps(64) {
    ws[h] = W : reg f16
  }
}
# expect: 3:21: error: kernel 'k0': a block has 1 to 32 warps, not 64
