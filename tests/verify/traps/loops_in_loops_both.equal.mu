# program: loops_in_loops.sd
ugraph both of loops_in_loops {
  kernel k0 grid(m.o, n.o) warps(4) {
    split m = m.o * m.i(4)
    split n = n.o * n.i(4)
    split k = k.a * k.b(3) * k.c(5)
    loop k.a {
      loop k.b {
        c[m.i, n.i] = sum[k.a, k.b, k.c](A * B) : reg f32
        r[m.i] = sum[k.a, k.b, k.c](A * A) : reg f32
      }
    }
    store c -> C
    store r -> R
  }
}
