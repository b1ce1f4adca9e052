// NOLINT(sundog-mirror): property tests of codegen/generate.h
//
// Random µGraphs: random sizes (odd ones, empty ones), dtypes, memory layouts, splits, loops,
// stages, storages, warp splits and atoms, in a few families of programs.  Each must give the
// program's values on the emulator without a race.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool coin() { return below(2) == 0; }
  template <class T>
  T pick(std::vector<T> list) {
    return list[static_cast<size_t>(below(static_cast<int>(list.size())))];
  }
  std::string num(std::vector<int> list) { return std::to_string(pick(std::move(list))); }

 private:
  std::mt19937_64 random_;
};

const std::vector<int> kSizes = {1, 2, 3, 5, 7, 8, 16, 20, 31, 48, 64, 96, 127, 130};
const std::vector<int> kTiles = {1, 2, 3, 4, 5, 8, 16, 24, 32, 48, 64};

std::string storage(Dice& dice, const std::string& dtype) {
  return (dice.coin() ? "shared " : "reg ") + dtype;
}
std::string half(Dice& dice) { return dice.pick<std::string>({"f16", "bf16"}); }
std::string any_input(Dice& dice) {
  return dice.pick<std::string>({"f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2", "i8"});
}
std::string any_output(Dice& dice) { return dice.pick<std::string>({"f16", "bf16", "f32", "f64"}); }
// What an input may be kept in without loss.
std::string holds(const std::string& dtype) { return dtype == "f64" ? "f32" : dtype; }
std::string stages(Dice& dice) { return " stages(" + dice.num({1, 2, 3, 4}) + ")"; }

// Elementwise over two axes, with a row and a column operand, two outputs.
GenerateCase elementwise(Dice& dice, const std::string& name) {
  const std::string n = dice.num(kSizes), h = dice.num(kSizes), tx = any_input(dice),
                    tg = any_input(dice), to = any_output(dice);
  const bool loop = dice.coin();
  GenerateCase c{name, "", ""};
  c.program = "program p(n = " + n + ", h = " + h + ") {\n  input x: " + tx +
              "[n, h]\n  input g: " + tg + "[h]\n  input f: f32[n]\n  output y: " + to +
              "[n, h] = silu(x * f) + max(g, x)\n  output z: f16[h, n] = x - 2 * g\n}\n";
  c.graph = "ugraph u of p {\n  kernel k0 grid(n.o" + std::string(loop ? "" : ", h.o") +
            ") warps(" + dice.num({1, 2, 3, 4, 8}) + ") {\n    split n = n.o * n.i(" +
            dice.num(kTiles) + ")\n    split h = h.o * h.i(" + dice.num(kTiles) + ")\n" +
            (loop ? "    loop h.o" + stages(dice) + " {\n" : "") +
            "    xs[n.i, h.i] = x : " + storage(dice, holds(tx)) +
            "\n    gs[h.i] = g : " + storage(dice, holds(tg)) +
            "\n    fs[n.i] = f : " + storage(dice, "f32") +
            "\n    t[n.i, h.i] = xs * fs : " + storage(dice, "f32") +
            "\n    yt[n.i, h.i] = silu(t) + max(gs, xs) : " + storage(dice, "f32") +
            "\n    zt[h.i, n.i] = xs - 2 * gs : " + storage(dice, "f32") +
            "\n    store yt -> y\n    store zt -> z\n" + (loop ? "    }\n" : "") + "  }\n}\n";
  return c;
}

// A row reduction (softmax, or norm), the row in one tile or in a loop read twice.
GenerateCase rows(Dice& dice, const std::string& name) {
  const std::string n = dice.num({1, 3, 6}), h = dice.num({1, 5, 33, 64, 127, 130, 256, 520}),
                    t = half(dice), w = dice.num({1, 2, 4, 8}), ni = dice.num({1, 2, 4});
  GenerateCase c{name, "", ""};
  c.program =
      "program p(n = " + n + ", h = " + h + ") {\n  input x: " + t + "[n, h]\n  input g: f32[h]\n" +
      "  m[n] = max[h](x)\n  e[n, h] = exp(x - m)\n  output y: f32[n, h] = e / sum[h](e) * g\n}\n";
  const std::string head = "ugraph u of p {\n  kernel k0 grid(n.o) warps(" + w +
                           ") {\n    split n = n.o * n.i(" + ni + ")\n";
  if (dice.coin()) {
    c.graph = head + "    xs[n.i, h] = x : " + storage(dice, t) +
              "\n    gs[h] = g : " + storage(dice, "f32") +
              "\n    m[n.i] = max[h](xs) : " + storage(dice, "f32") +
              "\n    e[n.i, h] = exp(xs - m) : " + storage(dice, "f32") +
              "\n    l[n.i] = sum[h](e) : " + storage(dice, "f32") +
              "\n    o[n.i, h] = e / l * gs : " + storage(dice, "f32") +
              "\n    store o -> y\n  }\n}\n";
    return c;
  }
  const std::string hi = dice.num({3, 8, 16, 32, 64});
  c.graph = head + "    split h = h.o * h.i(" + hi + ")\n    loop h.o" + stages(dice) +
            " {\n      xs[n.i, h.i] = x : " + storage(dice, t) +
            "\n      m[n.i] = max[h.o, h.i](xs) : " + storage(dice, "f32") +
            "\n      e[n.i, h.i] = exp(xs - m) : " + storage(dice, "f32") +
            "\n      l[n.i] = sum[h.o, h.i](e) : reg f32 rescale m\n    }\n    loop h.o" +
            stages(dice) + " {\n      xt[n.i, h.i] = x : " + storage(dice, t) +
            "\n      gs[h.i] = g : " + storage(dice, "f32") +
            "\n      o[n.i, h.i] = exp(xt - m) / l * gs : " + storage(dice, "f32") +
            "\n      store o -> y\n    }\n  }\n}\n";
  return c;
}

// Matrix products on atoms or without, in all orders of the operands' axes, split k in two kernels.
GenerateCase product(Dice& dice, const std::string& name) {
  const std::string b = dice.num({1, 2}), m = dice.num(kSizes), n = dice.num(kSizes),
                    k = dice.num(kSizes), t = half(dice);
  const std::string x_dims = dice.coin() ? "b, m, k" : "b, k, m",
                    w_dims = dice.coin() ? "k, n" : "n, k";
  const bool split = dice.coin(), atom = dice.below(4) != 0;
  const std::vector<int> tiles = {3, 8, 16, 24, 32, 40, 64};
  const std::string mi = dice.num(tiles), ni = dice.num(tiles),
                    ki = dice.num({5, 8, 16, 32, 48, 64});
  const int warps = dice.pick<int>({1, 2, 4, 8});
  std::string detail;
  if (atom) {
    detail = dice.coin() ? " mma(m16n8k16)" : " mma(m16n8k16, swap)";
    if (dice.coin()) {
      const int a = dice.pick<int>({1, 2, 4}), rest = warps / a;
      if (rest >= 1) {
        detail += " warps(" + dice.pick<std::string>({"m.i", "n.i", "k.i"}) + "/" +
                  std::to_string(a) + ")";
      }
    }
  }
  GenerateCase c{name, "", ""};
  c.program = "program p(b = " + b + ", m = " + m + ", n = " + n + ", k = " + k +
              ") {\n  input x: " + t + "[" + x_dims + "]\n  input w: " + t + "[" + w_dims +
              "]\n  output y: f16[b, m, n] = relu(sum[k](x * w))\n}\n";
  const std::string tile = dice.coin() ? "b, m.i, n.i" : "n.i, b, m.i";
  c.graph = "ugraph u of p {\n  kernel k0 grid(m.o, n.o" + std::string(split ? ", k.s" : "") +
            ") warps(" + std::to_string(warps) + ") {\n    split m = m.o * m.i(" + mi +
            ")\n    split n = n.o * n.i(" + ni + ")\n    split k = " + (split ? "k.s(2) * " : "") +
            "k.o * k.i(" + ki + ")\n    loop k.o" + stages(dice) +
            " {\n      xs[b, m.i, k.i] = x : " + storage(dice, t) +
            "\n      ws[k.i, n.i] = w : " + storage(dice, t) + "\n      acc[" + tile +
            "] = sum[k.o, k.i](xs * ws) : reg f32" + detail + "\n    }\n";
  if (!split) {
    c.graph += "    o[" + tile + "] = relu(acc) : " + storage(dice, "f32") +
               "\n    store o -> y\n  }\n}\n";
    return c;
  }
  c.graph += "    store acc -> part : f32[k.s, b, m, n]\n  }\n  kernel join grid(b, m) warps(" +
             dice.num({1, 2}) + ") {\n    o[n] = sum[k.s](part) : reg f32\n    r[n] = relu(o) : " +
             storage(dice, "f32") + "\n    store r -> y\n  }\n}\n";
  return c;
}

// Attention with an online maximum, masked or not.
GenerateCase attention(Dice& dice, const std::string& name) {
  const std::string q = dice.num({1, 5, 16, 40, 64}), k = dice.num({3, 16, 40, 100, 128}),
                    e = dice.num({4, 16, 24, 64}), f = dice.num({8, 16, 40}), t = half(dice);
  const std::string qi = dice.num({4, 16, 32, 64}), ki = dice.num({8, 16, 24, 32, 64});
  const bool atom = dice.below(3) != 0, causal = dice.coin();
  const int warps = dice.pick<int>({1, 2, 4});
  std::string detail = atom ? " mma(m16n8k16)" : "";
  std::string second = detail;
  if (atom && dice.coin()) detail += " warps(q.i/" + std::to_string(warps) + ")", second = detail;
  if (atom && dice.below(4) == 0) second = " mma(m16n8k16, swap)";
  const std::string mask = causal ? "select(k <= q, dot * 0.25, -inf)" : "dot * 0.25";
  GenerateCase c{name, "", ""};
  c.program =
      "program p(q = " + q + ", k = " + k + ", e = " + e + ", f = " + f + ") {\n  input Q: " + t +
      "[q, e]\n  input K: " + t + "[k, e]\n  input V: " + t +
      "[k, f]\n  dot[q, k] = sum[e](Q * K)\n  s[q, k] = " + mask +
      "\n  m[q] = max[k](s)\n  p[q, k] = exp(s - m)\n  output O: f32[q, f] = sum[k](p * V) / "
      "sum[k](p)\n}\n";
  const std::string p = atom ? t : "f32";
  c.graph = "ugraph u of p {\n  kernel k0 grid(q.o) warps(" + std::to_string(warps) +
            ") {\n    split q = q.o * q.i(" + qi + ")\n    split k = k.o * k.i(" + ki +
            ")\n    qs[q.i, e] = Q : " + storage(dice, t) + "\n    loop k.o" + stages(dice) +
            " {\n" + "      ks[k.i, e] = K : " + storage(dice, t) +
            "\n      vs[k.i, f] = V : " + storage(dice, t) +
            "\n      dot[q.i, k.i] = sum[e](qs * ks) : reg f32" + detail +
            "\n      s[q.i, k.i] = " + mask + " : " + storage(dice, "f32") +
            "\n      m[q.i] = max[k.o, k.i](s) : " + storage(dice, "f32") +
            "\n      pt[q.i, k.i] = exp(s - m) : " + storage(dice, p) +
            "\n      l[q.i] = sum[k.o, k.i](pt) : " + storage(dice, "f32") +
            " rescale m\n      o[q.i, f] = sum[k.o, k.i](pt * vs) : reg f32" + second +
            " rescale m\n    }\n    r[q.i, f] = o / l : " + storage(dice, "f32") +
            "\n    store r -> O\n  }\n}\n";
  return c;
}

// Shifted, reversed and guarded reads, strides and offsets.
GenerateCase accesses(Dice& dice, const std::string& name) {
  const int n = dice.pick<int>({4, 9, 32, 65});
  const std::string h = dice.num({8, 24, 33, 64}), t = half(dice), ni = dice.num({1, 3, 4, 16}),
                    hi = dice.num({4, 8, 16, 33});
  GenerateCase c{name, "", ""};
  const int cut = 1 + dice.below(n - 1);
  // The alignment is that of the first element; here it follows from the pointer's.
  const std::string stride = dice.num({72, 80, 65});
  const int offset = dice.pick<int>({0, 8, 1});
  const std::string align = offset == 1 ? "2" : dice.num({2, 4, 16});
  c.program = "program p(n = " + std::to_string(n) + ", h = " + h + ") {\n  input x: " + t +
              "[n, h] stride(" + stride + ", 1) offset " + std::to_string(offset) + " align " +
              align + "\n  input w: f32[n]\n" + "  a[n, h] = select(n < " + std::to_string(cut) +
              ", x[n + " + std::to_string(n - cut) + ", h], x[n - " + std::to_string(cut) +
              ", h])\n" + "  output y: f16[n, h] = a * w[size(n) - 1 - n] + index(n)\n}\n";
  const std::string expression = "select(n < " + std::to_string(cut) + ", x[n + " +
                                 std::to_string(n - cut) + ", h], x[n - " + std::to_string(cut) +
                                 ", h])";
  c.graph = "ugraph u of p {\n  kernel k0 grid(n.o) warps(" + dice.num({1, 2, 4}) +
            ") {\n    split n = n.o * n.i(" + ni + ")\n    split h = h.o * h.i(" + hi +
            ")\n    loop h.o" + stages(dice) + " {\n";
  if (dice.coin()) {
    c.graph += "      up[n.i, h.i] = x[n + " + std::to_string(n - cut) +
               ", h] : " + storage(dice, t) + "\n      dn[n.i, h.i] = x[n - " +
               std::to_string(cut) + ", h] : " + storage(dice, t) +
               "\n      at[n.i, h.i] = select(n < " + std::to_string(cut) +
               ", up, dn) : " + storage(dice, "f32") + "\n";
  } else {
    c.graph += "      at[n.i, h.i] = " + expression + " : " + storage(dice, "f32") + "\n";
  }
  c.graph += "      ws[n.i] = w[size(n) - 1 - n] : " + storage(dice, "f32") +
             "\n      o[n.i, h.i] = at * ws + index(n) : " + storage(dice, "f32") +
             "\n      store o -> y\n    }\n  }\n}\n";
  return c;
}

// Two products into one accumulator, the first of them through a computed operand.
GenerateCase shared_accumulator(Dice& dice, const std::string& name) {
  const std::string n = dice.num({1, 3, 8, 16, 20}), h = dice.num({16, 40, 64, 100}),
                    d = dice.num({8, 24, 40, 64}), r = dice.num({5, 8, 16, 32}), t = half(dice);
  const std::string hi = dice.num({8, 16, 32}), di = dice.num({8, 16, 32});
  const bool atom = dice.below(3) != 0, swap = dice.coin();
  const int warps = dice.pick<int>({1, 2, 4});
  const std::string mma = atom ? (swap ? " mma(m16n8k16, swap)" : " mma(m16n8k16)") : "";
  const std::string across = atom && dice.coin() ? " warps(h.i/" + std::to_string(warps) + ")" : "";
  GenerateCase c{name, "", ""};
  c.program =
      "program p(n = " + n + ", h = " + h + ", d = " + d + ", r = " + r + ") {\n  input X: " + t +
      "[n, h]\n  input W: " + t + "[h, d]\n  input A: " + t + "[h, r]\n  input B: " + t +
      "[r, d]\n  low[n, r] = sum[h](X * A)\n  output O: f32[n, d] = sum[h](X * W) + sum[r](low * "
      "B)\n}\n";
  c.graph = "ugraph u of p {\n  kernel k0 grid(d.o) warps(" + std::to_string(warps) +
            ") {\n    split h = h.o * h.i(" + hi + ")\n    split d = d.o * d.i(" + di +
            ")\n    loop h.o" + stages(dice) + " {\n      xs[n, h.i] = X : shared " + t +
            "\n      ws[h.i, d.i] = W : " + storage(dice, t) +
            "\n      as[h.i, r] = A : " + storage(dice, t) +
            "\n      low[n, r] = sum[h.o, h.i](xs * as) : reg f32" + mma +
            "\n      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32" + mma + across + "\n    }\n" +
            "    bs[r, d.i] = B : " + storage(dice, t) +
            "\n    lh[n, r] = low : " + storage(dice, atom ? t : "f32") +
            "\n    both[n, d.i] = sum[r](lh * bs) : reg f32" + mma +
            " into acc\n    store acc -> O\n  }\n}\n";
  return c;
}

using Family = GenerateCase (*)(Dice&, const std::string&);

class GenerateRandomSlow : public testing::TestWithParam<std::pair<const char*, Family>> {};

TEST_P(GenerateRandomSlow, AgreesWithTheProgram) {
  const auto [label, family] = GetParam();
  constexpr uint64_t kCases = 12;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    Dice dice(seed * 7919 + static_cast<uint64_t>(label[0]));
    expect_right(family(dice, std::string(label) + std::to_string(seed)));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GenerateRandomSlow,
                         testing::Values(std::pair{"elementwise", &elementwise},
                                         std::pair{"rows", &rows}, std::pair{"product", &product},
                                         std::pair{"attention", &attention},
                                         std::pair{"indices", &accesses},
                                         std::pair{"into", &shared_accumulator}),
                         [](const auto& test) { return std::string(test.param.first); });

}  // namespace
}  // namespace sundog::codegen
