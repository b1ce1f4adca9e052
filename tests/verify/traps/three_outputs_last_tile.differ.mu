# program: three_outputs.sd
# The last tile, which is ragged, is left out.
ugraph last of three_outputs {
  kernel k0 grid(n.o) warps(4) {
    split n = n.o * n.i(2)
    split k = k.o * k.i(8)
    loop k.o trim(8 * k.o < size(k) - 7) {
      t[n.i, k.i] = x : shared f16
      m[n.i] = max[k.o, k.i](t) : reg f32
      p[n.i, k.i] = exp(t - m) : reg f32
      s[n.i] = sum[k.o, k.i](p) : reg f32 rescale m
      a[n.i, d] = sum[k.o, k.i](p * v) : reg f32 rescale m
      c[n.i] = sum[k.o, k.i](max(t, 0) + 1) : reg f32
    }
    o'[n.i, d] = a / s : reg f32
    e[n.i] = m + log(s) : reg f32
    store o' -> o
    store e -> lse
    store c -> cnt
  }
}
