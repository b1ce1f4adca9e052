# program: ../../../programs/layer_norm_linear.sd b=8
# measured_us: 10.227
ugraph layer_norm_linear of layer_norm_linear {
  kernel k0 grid(d.o) warps(8) {
    split h = h.o * h.i(1024)
    split d = d.o * d.i(48)
    cs[d.i] = c : reg bf16
    loop h.o {
      xs[b, h.i] = x : reg bf16
      t2[b] = sum[h.o, h.i](xs) : reg f32
    }
    loop h.o {
      xs2[b, h.i] = x : reg bf16
      u_2[b, h.i] = xs2 - t2 / size(h) : reg f32
      t9[b] = sum[h.o, h.i](u_2 * u_2) : reg f32
    }
    t11[b] = rsqrt(t9 / size(h) + 1e-5) : reg f32
    loop h.o stages(2) bulk {
      xs3[b, h.i] = x : reg bf16
      gs[h.i] = g : reg bf16
      ss[h.i] = s : reg bf16
      ws[d.i, h.i] = w : shared bf16
      u[b, h.i] = xs3 - t2 / size(h) : reg f32
      n[b, h.i] = u * t11 * gs + ss : shared bf16
      t21[b, d.i] = sum[h.o, h.i](n * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/8)
    }
    y_2[b, d.i] = t21 + cs : reg f32
    store y_2 -> y
  }
}
