# program: loops_in_loops.sd
ugraph squared of loops_in_loops {
  kernel part grid(m.o, k.a) warps(4) {
    split m = m.o * m.i(4)
    split k = k.a(3) * k.b * k.c(4)
    loop k.b {
      c[m.i, n] = sum[k.b, k.c](A * B) : reg f32
      r[m.i] = sum[k.b, k.c](A * A) : reg f32
    }
    store c -> pc : f32[k.a, m, n]
    store r -> pr : f32[k.a, m]
  }
  kernel join grid(m) warps(1) {
    c[n] = sum[k.a](pc) : reg f32
    r[] = sum[k.a](pr * pr) : reg f32
    store c -> C
    store r -> R
  }
}
