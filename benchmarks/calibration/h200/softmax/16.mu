# program: ../../../programs/softmax.sd
# measured_us: 22.886
ugraph softmax of softmax {
  kernel k0 grid(n) warps(1) {
    split k = k.o * k.i(1024)
    loop k.o {
      xs[k.i] = X : reg f16
      t1_2[] = max[k.i](xs) : reg f32
      t1_3[] = max[k.o](t1_2) : reg f32
      t8_2[k.i] = exp(xs - t1_2) : reg f32
      t9[] = sum[k.i](t8_2) : reg f32
      t11[] = sum[k.o](t9 * exp(t1_2 - t1_3)) : reg f32 rescale t1_3
    }
    t12[] = 1 / t11 : reg f32
    loop k.o {
      xs2[k.i] = X : reg f16
      t1[] = max[k.i](xs2) : reg f32
      t8[k.i] = exp(xs2 - t1) : reg f32
      t14[k.i] = t8 * (t12 * exp(t1 - t1_3)) : reg f32
      store t14 -> O
    }
  }
}
