# program: ../../../programs/layer_norm.sd
# measured_us: 19.271000
ugraph layer_norm of layer_norm {
  kernel k0 grid(n.o) warps(8) {
    split n = n.o * n.i(2)
    xs[n.i, h] = X : reg f16
    t2[n.i] = sum[h](xs) : reg f32
    c_2[n.i, h] = xs - t2 / size(h) : reg f32
    t9[n.i] = sum[h](c_2 * c_2) : reg f32
    t11[n.i] = rsqrt(t9 / size(h) + 1e-5) : reg f32
    ws[h] = w : reg f16
    bs[h] = b : reg f16
    o[n.i, h] = c_2 * t11 * ws + bs : reg f32
    store o -> O
  }
}
