# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    loop h.o {
      ws[h.i, d.i] = W : shared f16
      t[h.i] = ws[h.i, 0] : reg f32
    }
  }
}
# expect: 8:16: error: computation 'ws' is read by its name alone
