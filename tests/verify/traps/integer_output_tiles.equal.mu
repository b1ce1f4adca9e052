# program: integer_output.sd
ugraph tiles of integer_output {
  kernel k0 grid(n) warps(1) {
    y[h] = cast(x * 2, i8) : reg f32
    store y -> q
  }
}
