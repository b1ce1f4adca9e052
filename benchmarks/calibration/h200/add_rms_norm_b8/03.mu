# program: ../../../programs/add_rms_norm.sd b=8
# measured_us: 1.944250
ugraph add_rms_norm of add_rms_norm {
  kernel k0 grid(n) warps(16) {
    xs[h] = X : reg f16
    rs[h] = R : reg f16
    gs[h] = g : reg f16
    y_2[h] = xs + rs : reg f32
    t1[] = sum[h](y_2 * y_2) : reg f32
    store y_2 -> y
    O_2[h] = y_2 * rsqrt(t1 / size(h) + 1e-6) * gs : reg f32
    store O_2 -> O
  }
}
