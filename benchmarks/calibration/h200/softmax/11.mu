# program: ../../../programs/softmax.sd
# measured_us: 24.446
ugraph softmax of softmax {
  kernel k0 grid(n) warps(1) {
    split k = k.o * k.i(512)
    loop k.o {
      xs[k.i] = X : reg f16
      t1[] = max[k.o, k.i](xs) : reg f32
      t11[] = sum[k.o, k.i](exp(xs - t1)) : reg f32 rescale t1
    }
    t12[] = 1 / t11 : reg f32
    loop k.o {
      xs2[k.i] = X : reg f16
      t14[k.i] = exp(xs2 - t1) * t12 : reg f32
      store t14 -> O
    }
  }
}
