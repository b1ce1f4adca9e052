# program: banded.sd
ugraph tiles of banded {
  kernel k0 grid(i.o) warps(4) {
    split i = i.o * i.i(64)
    split k = k.o * k.i(64)
    loop k.o trim(64 * k.o <= 64 * i.o + 63 + 256, 64 * i.o <= 64 * k.o + 63 + 256) {
      a[i.i, k.i] = select(64 * k.o + k.i <= 64 * i.o + i.i + 256, select(64 * i.o + i.i <= 64 * k.o + k.i + 256, A, 0), 0) : reg f32
      c[i.i, j] = sum[k.o, k.i](a * B) : reg f32
    }
    store c -> C
  }
}
