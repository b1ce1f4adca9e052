# program: rotated_offset.sd
ugraph rotary of rotary {
  kernel k0 grid(g, q.o, f.o) warps(8) {
    split q = q.o * q.i(4)
    split f = f.o * f.i(16)
    qs[q.i, h] = Q : reg f16
    css[q.i, h] = cs : reg f16
    sns[q.i, h] = sn : reg f16
    ks[k, h] = K : shared f16
    vs[k, f.i] = V : shared f16
    r[q.i, h] = qs * css + select(h < 32, -Q[g, 4 * q.o + q.i, h + 32], Q[g, 4 * q.o + q.i, h - 32]) * sns : shared f16
    t12_2[q.i, k] = sum[h](r * ks) : reg f32 mma(m16n8k16, swap) warps(h/4, k/2)
    s_2[q.i, k] = select(k <= 4 * q.o + q.i + 240, t12_2 * 0.125, -inf) : reg f32
    t17[q.i] = max[k](s_2) : reg f32
    t19[q.i, k] = exp(s_2 - t17) : shared f16
    t26[q.i] = sum[k](t19) : reg f32
    t27[q.i] = 1 / t26 : reg f32
    t35[q.i, f.i] = sum[k](t19 * vs) : reg f32 mma(m16n8k16, swap) warps(k/8)
    t41[q.i, f.i] = t27 * t35 : reg f32
    store t41 -> O
  }
}
