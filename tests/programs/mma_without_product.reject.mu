# program: ../../benchmarks/programs/rms_norm.sd b=2 h=32 d=32
ugraph g of rms_norm {
  kernel k0 grid(d.o) warps(4) {
    split h = h.o * h.i(16)
    split d = d.o * d.i(16)
    loop h.o {
      ws[h.i, d.i] = W : shared f16
      t[d.i] = sum[h.o, h.i](exp(ws)) : reg f32 mma(m16n8k16)
    }
  }
}
# expect: 8:7: error: kernel 'k0': computation 't': an mma atom computes sums of products only
