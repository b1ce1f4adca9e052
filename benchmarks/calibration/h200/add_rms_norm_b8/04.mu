# program: ../../../programs/add_rms_norm.sd b=8
# measured_us: 2.306000
ugraph add_rms_norm of add_rms_norm {
  kernel k0 grid(n.o) warps(16) {
    split n = n.o * n.i(2)
    xs[n.i, h] = X : reg f16
    rs[n.i, h] = R : reg f16
    gs[h] = g : reg f16
    y_2[n.i, h] = xs + rs : reg f32
    store y_2 -> y
    t6[n.i] = sum[h](y_2 * y_2) : reg f32
    t8[n.i] = rsqrt(t6 / size(h) + 1e-6) : reg f32
    o[n.i, h] = y_2 * t8 * gs : reg f32
    store o -> O
  }
}
