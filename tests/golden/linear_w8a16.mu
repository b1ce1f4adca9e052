# program: ../../benchmarks/programs/linear_w8a16.sd
ugraph linear_w8a16_golden of linear_w8a16 {
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(256)
    split d = d.o * d.i(48)
    ss[d.i] = s : reg f32
    loop h.o stages(5) bulk {
      xs[n, h.i] = x : shared f16
      ws[d.i, h.i] = w : shared f8e4m3
      t4[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(h.i/8)
    }
    t6[n, d.i] = t4 * ss : reg f32
    store t6 -> y
  }
}
