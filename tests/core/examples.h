// Programs and µGraphs built by hand, for the tests of core.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/interpret.h"
#include "core/mugraph.h"

namespace sundog::examples {

inline IndexExpr at(AxisId axis) { return IndexExpr::of(axis); }

// A tensor over plain axes of the program (or µGraph).
template <class Axes>
TensorDecl tensor(const Axes& axes, std::string name, std::vector<AxisId> dims,
                  DType dtype = DType::kF32) {
  TensorDecl decl;
  decl.name = std::move(name);
  decl.dtype = dtype;
  for (AxisId a : dims) {
    decl.dims.push_back(at(a));
    decl.dim_names.push_back(axes[a].name);
    decl.extents.push_back(axes[a].extent);
  }
  return decl;
}

inline TermId read(Program& p, uint32_t input) {
  return p.terms.input(input, p.inputs[input].dims);
}

// O[n, d] = sum[h](X[n, h] * rsqrt(mean[h](X^2) + 1/2) * W[h, d]); axes n, h, d.
inline Program rms_norm(int64_t n, int64_t h, int64_t d) {
  Program p;
  p.name = "rms_norm";
  p.axes = {{"n", n}, {"h", h}, {"d", d}};
  p.inputs = {tensor(p.axes, "X", {0, 1}), tensor(p.axes, "W", {1, 2})};
  TermGraph& t = p.terms;
  const TermId x = read(p, 0), w = read(p, 1);
  const TermId squares = t.reduce(ReduceKind::kSum, AxisSet::of(1), t.apply(op::Mul{}, {x, x}));
  const TermId mean = t.apply(op::Div{}, {squares, t.size(1)});
  const TermId r =
      t.apply(op::Rsqrt{}, {t.apply(op::Add{}, {mean, t.constant(Number::ratio(1, 2))})});
  const TermId product = t.apply(op::Mul{}, {t.apply(op::Mul{}, {x, r}), w});
  p.outputs = {{tensor(p.axes, "O", {0, 2}), t.reduce(ReduceKind::kSum, AxisSet::of(1), product)}};
  return p;
}

// O[q, f] = softmax[k](S[q, k]) V[k, f] with the maximum; axes q, k, f.
inline Program attention(int64_t q, int64_t k, int64_t f) {
  Program p;
  p.name = "attention";
  p.axes = {{"q", q}, {"k", k}, {"f", f}};
  p.inputs = {tensor(p.axes, "S", {0, 1}), tensor(p.axes, "V", {1, 2})};
  TermGraph& t = p.terms;
  const TermId s = read(p, 0), v = read(p, 1);
  const TermId m = t.reduce(ReduceKind::kMax, AxisSet::of(1), s);
  const TermId e = t.apply(op::Exp{}, {t.apply(op::Sub{}, {s, m})});
  const TermId l = t.reduce(ReduceKind::kSum, AxisSet::of(1), e);
  const TermId share = t.apply(op::Div{}, {e, l});
  p.outputs = {{tensor(p.axes, "O", {0, 2}),
                t.reduce(ReduceKind::kSum, AxisSet::of(1), t.apply(op::Mul{}, {share, v}))}};
  return p;
}

// A µGraph with the axes and tensors of a program, and no kernel yet.
inline MuGraph empty_graph(const Program& p) {
  MuGraph g;
  g.name = "candidate";
  g.program = p.name;
  for (const Axis& axis : p.axes) g.axes.push_back({axis.name, axis.extent, kNone, 0});
  for (const TensorDecl& input : p.inputs) g.tensors.push_back({input, TensorRole::kInput});
  for (const Output& output : p.outputs) {
    g.tensors.push_back({output.tensor, TensorRole::kOutput});
  }
  return g;
}

// Adds the factors of an axis, outermost first; the first extent may be 0: the least that covers
// it.
inline std::vector<AxisId> split(const MuGraph& g, Kernel& k, AxisId axis,
                                 std::vector<std::string> names, std::vector<int64_t> extents) {
  int64_t inner = 1;
  for (size_t i = 1; i < extents.size(); ++i) inner *= extents[i];
  if (extents[0] == 0) extents[0] = (g.axes[axis].extent + inner - 1) / inner;
  std::vector<AxisId> result;
  for (size_t i = 0; i < names.size(); ++i) {
    result.push_back(static_cast<AxisId>(k.factors.size()));
    k.factors.push_back({names[i], axis, extents[i], inner});
    if (i + 1 < extents.size()) inner /= extents[i + 1];
  }
  return result;
}

inline TermId load(const MuGraph& g, Kernel& k, uint32_t tensor) {
  return k.terms.input(tensor, default_index(k, g.tensors[tensor].decl));
}

inline uint32_t add(Kernel& k, std::string name, std::vector<AxisId> axes, TermId value,
                    DType dtype = DType::kF32) {
  Computation c;
  c.name = std::move(name);
  c.axes = std::move(axes);
  c.value = value;
  c.dtype = dtype;
  k.computations.push_back(std::move(c));
  return static_cast<uint32_t>(k.computations.size() - 1);
}

inline TermId local(Kernel& k, uint32_t computation) {
  AxisSet axes;
  for (AxisId a : k.computations[computation].axes) axes.insert(a);
  return k.terms.local(computation, axes);
}

inline Statement compute(uint32_t c) { return {Compute{c}}; }

inline Statement store(const MuGraph& g, const Kernel& k, uint32_t c, uint32_t tensor) {
  return {Store{c, tensor, default_index(k, g.tensors[tensor].decl)}};
}

inline AxisSet set(std::vector<AxisId> axes) {
  AxisSet result;
  for (AxisId a : axes) result.insert(a);
  return result;
}

inline TermId sum(Kernel& k, std::vector<AxisId> axes, TermId operand) {
  return k.terms.reduce(ReduceKind::kSum, set(std::move(axes)), operand);
}

// One kernel: grid(d.o), a loop over h with both accumulators, division after the loop.
inline MuGraph fused_rms_norm(const Program& p, int64_t h_tile, int64_t d_tile,
                              DType tile = DType::kF32) {
  MuGraph g = empty_graph(p);
  Kernel k;
  k.name = "fused";
  const AxisId n = split(g, k, 0, {"n"}, {0})[0];
  const auto h = split(g, k, 1, {"h.o", "h.i"}, {0, h_tile});
  const auto d = split(g, k, 2, {"d.o", "d.i"}, {0, d_tile});
  k.grid = {d[0]};
  const uint32_t xs = add(k, "xs", {n, h[1]}, load(g, k, 0), tile);
  const uint32_t ws = add(k, "ws", {h[1], d[1]}, load(g, k, 1), tile);
  const TermId x = local(k, xs), w = local(k, ws);
  const uint32_t ss = add(k, "ss", {n}, sum(k, h, k.terms.apply(op::Mul{}, {x, x})));
  const uint32_t acc = add(k, "acc", {n, d[1]}, sum(k, h, k.terms.apply(op::Mul{}, {x, w})));
  const TermId mean = k.terms.apply(op::Div{}, {local(k, ss), k.terms.size(1)});
  const TermId half = k.terms.constant(Number::ratio(1, 2));
  const TermId r = k.terms.apply(op::Rsqrt{}, {k.terms.apply(op::Add{}, {mean, half})});
  const uint32_t o = add(k, "o", {n, d[1]}, k.terms.apply(op::Mul{}, {local(k, acc), r}));
  Loop loop;
  loop.factor = h[0];
  loop.body = {compute(xs), compute(ws), compute(ss), compute(acc)};
  k.body = {{loop}, compute(o), store(g, k, o, 2)};
  g.kernels = {std::move(k)};
  return g;
}

// Two kernels: parts of h in the grid, joined by a second kernel.
inline MuGraph split_rms_norm(const Program& p, int64_t parts, int64_t h_tile, int64_t d_tile) {
  MuGraph g = empty_graph(p);
  Kernel k;
  k.name = "part";
  const AxisId n = split(g, k, 0, {"n"}, {0})[0];
  const int64_t loops = (p.axes[1].extent + parts * h_tile - 1) / (parts * h_tile);
  const auto h = split(g, k, 1, {"h.s", "h.o", "h.i"}, {parts, loops, h_tile});
  const auto d = split(g, k, 2, {"d.o", "d.i"}, {0, d_tile});
  k.grid = {d[0], h[0]};
  g.axes.push_back({"h.s", parts, 0, h[0]});
  g.tensors.push_back({tensor(g.axes, "part_ss", {3, 0}), TensorRole::kIntermediate});
  g.tensors.push_back({tensor(g.axes, "part_acc", {3, 0, 2}), TensorRole::kIntermediate});
  const TermId x = load(g, k, 0), w = load(g, k, 1);
  const uint32_t ss = add(k, "ss", {n}, sum(k, {h[1], h[2]}, k.terms.apply(op::Square{}, {x})));
  const uint32_t acc =
      add(k, "acc", {n, d[1]}, sum(k, {h[1], h[2]}, k.terms.apply(op::Mul{}, {x, w})));
  Loop loop;
  loop.factor = h[1];
  loop.body = {compute(ss), compute(acc)};
  std::vector<IndexExpr> ss_index = {at(h[0]), axis_index(k, 0)};
  std::vector<IndexExpr> acc_index = {at(h[0]), axis_index(k, 0), axis_index(k, 2)};
  k.body = {{loop}, {Store{ss, 3, ss_index}}, {Store{acc, 4, acc_index}}};
  Kernel j;
  j.name = "join";
  split(g, j, 0, {"n"}, {0});
  split(g, j, 2, {"d"}, {0});
  split(g, j, 3, {"h.s"}, {0});
  j.grid = {0};
  const uint32_t s = add(j, "s", {}, sum(j, {2}, load(g, j, 3)));
  const uint32_t a = add(j, "a", {1}, sum(j, {2}, load(g, j, 4)));
  const TermId mean = j.terms.apply(op::Div{}, {local(j, s), j.terms.size(1)});
  const TermId half = j.terms.constant(Number::ratio(1, 2));
  const TermId r = j.terms.apply(op::Rsqrt{}, {j.terms.apply(op::Add{}, {mean, half})});
  const uint32_t o = add(j, "o", {1}, j.terms.apply(op::Mul{}, {local(j, a), r}));
  j.body = {compute(s), compute(a), compute(o), store(g, j, o, 2)};
  g.kernels = {std::move(k), std::move(j)};
  return g;
}

// One kernel: a loop over k with a running maximum and two rescaled accumulators.
inline MuGraph online_attention(const Program& p, int64_t q_tile, int64_t k_tile) {
  MuGraph g = empty_graph(p);
  Kernel k;
  k.name = "online";
  const auto q = split(g, k, 0, {"q.o", "q.i"}, {0, q_tile});
  const auto kk = split(g, k, 1, {"k.o", "k.i"}, {0, k_tile});
  const AxisId f = split(g, k, 2, {"f"}, {0})[0];
  k.grid = {q[0]};
  const uint32_t s = add(k, "s", {q[1], kk[1]}, load(g, k, 0));
  const uint32_t m = add(k, "m", {q[1]}, k.terms.reduce(ReduceKind::kMax, set(kk), local(k, s)));
  const TermId difference = k.terms.apply(op::Sub{}, {local(k, s), local(k, m)});
  const uint32_t e = add(k, "e", {q[1], kk[1]}, k.terms.apply(op::Exp{}, {difference}));
  const uint32_t l = add(k, "l", {q[1]}, sum(k, kk, local(k, e)));
  const uint32_t o =
      add(k, "o", {q[1], f}, sum(k, kk, k.terms.apply(op::Mul{}, {local(k, e), load(g, k, 1)})));
  k.computations[l].rescale = m;
  k.computations[o].rescale = m;
  const uint32_t y = add(k, "y", {q[1], f}, k.terms.apply(op::Div{}, {local(k, o), local(k, l)}));
  Loop loop;
  loop.factor = kk[0];
  loop.body = {compute(s), compute(m), compute(e), compute(l), compute(o)};
  k.body = {{loop}, compute(y), store(g, k, y, 2)};
  g.kernels = {std::move(k)};
  return g;
}

// Normally distributed inputs.
inline std::vector<TensorValues<double>> random_inputs(const Program& p, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<TensorValues<double>> result;
  for (const TensorDecl& input : p.inputs) {
    TensorValues<double> values{input.extents, {}};
    for (int64_t i = 0; i < element_count(input); ++i) values.values.push_back(normal(random));
    result.push_back(std::move(values));
  }
  return result;
}

}  // namespace sundog::examples
