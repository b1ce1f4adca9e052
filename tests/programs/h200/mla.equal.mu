# program: ../../../benchmarks/programs/mla.sd
# What the search picks for an H200.
ugraph mla of mla {
  kernel k0 grid(g) warps(8) {
    split l = l.o * l.i(32)
    split f = f.o * f.i(32)
    wks[c, e] = WK : shared f16
    qs[s, e] = Q[g, s, e] : shared f16
    qs2[s, r] = Q[g, s, r + size(e)] : shared f16
    t25[] = rsqrt(size(w)) : reg f32
    loop l.o {
      cs[l.i, c] = C : shared f16
      rs[l.i, r] = R : shared f16
      k[l.i, e] = sum[c](cs * wks) : reg f32 mma(m16n8k16) warps(l.i/2, e/4)
      kc[l.i, e] = k : shared f16
      t18[s, l.i] = sum[e](kc * qs) : reg f32 mma(m16n8k16) warps(e/8)
      t22[s, l.i] = sum[r](qs2 * rs) : reg f32 mma(m16n8k16) warps(r/4, l.i/2)
      t27[s] = max[l.o, l.i]((t18 + t22) * t25) : reg f32
      a[s, l.i] = (t18 + t22) * t25 : reg f32
      t31[s, l.i] = exp(a - t27) : shared f16
      t52[s, c] = sum[l.o, l.i](t31 * cs) : reg f32 mma(m16n8k16) warps(c/8) rescale t27
      t58[s] = sum[l.o, l.i](t31) : reg f32 rescale t27
    }
    t52c[s, c] = t52 : shared f16
    t59[s] = 1 / t58 : reg f32
    loop f.o {
      wvs[c, f.i] = WV : shared f16
      t55[s, f.i] = sum[c](t52c * wvs) : reg f32 mma(m16n8k16) warps(c/8)
      o[s, f.i] = t55 * t59 : reg f32
      store o -> O
    }
  }
}
# expect: equal
