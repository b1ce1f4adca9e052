// Programs drawn from the operator catalog: a straight line of operators, reductions and selects
// over at most three axes.  Every operator of the catalog can come up.  Arguments are kept where
// the operator is defined (a logarithm is of something positive) and values bounded, so that the
// program has an answer in numbers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/mugraph.h"
#include "core/op.h"
#include "core/program.h"
#include "core/text.h"

namespace sundog::search {

struct RandomProgramLimits {
  int most_operators = 12;
  int64_t least_extent = 1;      // of any axis
  int64_t most_extent = 300;     // of the longest
  double most_elements = 20000;  // of any value
  int outputs = 2;               // at most
  bool indices = true;           // selects, comparisons, reversed reads
};

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, const RandomProgramLimits& limits)
      : random_(seed * 0x9E3779B97F4A7C15 + 1), limits_(limits) {}

  Program draw() {
    program_.name = "random";
    const int64_t most = limits_.most_extent;
    const std::vector<int64_t> extents = {1 + below(std::max<int64_t>(4, most / 20)),
                                          2 + below(most - 1),
                                          1 + below(std::max<int64_t>(4, most / 6))};
    for (size_t a = 0; a < 3; ++a) {
      program_.axes.push_back(
          {std::string(1, "nhd"[a]), std::max(extents[a], limits_.least_extent)});
      program_.parameters.push_back({program_.axes[a].name, program_.axes[a].extent, ""});
    }
    add_input("x", {0, 1});
    add_input("w", {1, 2});
    add_input("g", {1});
    const int least = 1 + limits_.most_operators / 3;
    const int wanted = least + static_cast<int>(below(limits_.most_operators - least + 1));
    for (int tries = 0; used_ < wanted && tries < 20 * wanted; ++tries) step(wanted - used_);
    if (used_ == 0) push(program_.terms.apply(op::Neg{}, {values_[0].term}), values_[0].most, 1);
    add_output("y", values_.back());
    const size_t other = static_cast<size_t>(below(static_cast<int64_t>(values_.size())));
    if (limits_.outputs > 1 && other > 3 && other + 1 < values_.size() && below(4) == 0)
      add_output("z", values_[other]);
    drop_unused();
    return parse();
  }

 private:
  struct Value {
    TermId term;
    double most;  // bound of its magnitude on ordinary inputs
  };

  int64_t below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(std::max<int64_t>(n, 1)));
  }
  AxisSet axes(TermId t) const { return program_.terms.axes(t); }

  double elements(AxisSet set) const {
    double n = 1;
    for (AxisId a : set) n *= static_cast<double>(program_.axes[a].extent);
    return n;
  }

  TensorDecl tensor(const std::string& name, DType dtype, const std::vector<AxisId>& dims) {
    TensorDecl t;
    t.name = name;
    t.dtype = dtype;
    for (AxisId a : dims) {
      t.dim_names.push_back(program_.axes[a].name);
      t.dims.push_back(IndexExpr::of(a));
      t.extents.push_back(program_.axes[a].extent);
    }
    return t;
  }

  void add_input(const std::string& name, const std::vector<AxisId>& dims) {
    const auto number = static_cast<uint32_t>(program_.inputs.size());
    program_.inputs.push_back(tensor(name, below(3) == 0 ? DType::kF32 : DType::kF16, dims));
    std::vector<IndexExpr> index;
    for (AxisId a : dims) index.push_back(IndexExpr::of(a));
    values_.push_back({program_.terms.input(number, index), 4});
  }

  void add_output(const std::string& name, const Value& value) {
    std::vector<AxisId> dims;
    for (AxisId a : axes(value.term)) dims.push_back(a);
    const DType dtype = value.most < 3e4 && below(2) == 0 ? DType::kF16 : DType::kF32;
    program_.outputs.push_back({tensor(name, dtype, dims), value.term});
  }

  // What was made last is read with preference, so that programs are long rather than wide.
  const Value& pick() {
    const auto n = static_cast<int64_t>(values_.size());
    if (n == 3) return values_[static_cast<size_t>(below(3) == 0 ? below(3) : 0)];
    return values_[static_cast<size_t>(below(4) > 0 ? n - 1 : below(n))];
  }
  const Value& pick_other() {
    return values_[static_cast<size_t>(below(static_cast<int64_t>(values_.size())))];
  }

  void push(TermId term, double most, int operators) {
    if (most > 1e6 || elements(axes(term)) > limits_.most_elements) return;
    for (const Value& v : values_) {
      if (v.term == term) return;
    }
    used_ += operators;
    program_.definitions.push_back(
        {"t" + std::to_string(program_.definitions.size()), term, {}, {}});
    for (AxisId a : axes(term)) program_.definitions.back().axes.push_back(a);
    values_.push_back({term, most});
  }

  void step(int left) {
    const int64_t kind = below(12);
    if (kind < 6) {
      apply_one(left);
    } else if (kind < 8) {
      reduce(left);
    } else if (kind < 10) {
      contract(left);
    } else if (kind < 11 || !limits_.indices) {
      normalise(left);
    } else {
      select();
    }
  }

  // A product with an input, summed over what they share.
  void contract(int left) {
    TermGraph& g = program_.terms;
    const Value a = pick(), b = values_[static_cast<size_t>(below(3))];
    const AxisSet shared = axes(a.term) & axes(b.term);
    if (left < 2 || shared.empty()) return;
    const AxisId over = *shared.begin();
    push(g.reduce(ReduceKind::kSum, AxisSet::of(over), g.apply(op::Mul{}, {a.term, b.term})),
         a.most * b.most * elements(AxisSet::of(over)), 2);
  }

  // Less its mean, or its share of the sum of squares.
  void normalise(int left) {
    TermGraph& g = program_.terms;
    const Value a = pick();
    if (axes(a.term).empty()) return;
    const AxisId over = *some_axes(a.term).begin();
    if (left >= 3 && below(2) == 0) {
      const TermId sum = g.reduce(ReduceKind::kSum, AxisSet::of(over), a.term);
      const TermId mean = g.apply(op::Div{}, {sum, g.size(over)});
      push(g.apply(op::Sub{}, {a.term, mean}), 2 * a.most, 3);
    } else if (left >= 5) {
      const TermId squares =
          g.reduce(ReduceKind::kSum, AxisSet::of(over), g.apply(op::Square{}, {a.term}));
      const TermId norm =
          g.apply(op::Rsqrt{}, {g.apply(op::Add{}, {squares, g.constant(Number(1))})});
      push(g.apply(op::Mul{}, {a.term, norm}), 1, 5);
    }
  }

  // One operator of the catalog, with what it takes to be defined.
  void apply_one(int left) {
    const bool binary = below(5) < 2;
    int64_t count = 0;
    for_each_op([&]<class O>() { count += (O::arity == 2) == binary ? 1 : 0; });
    int64_t which = below(count);
    for_each_op([&]<class O>() {
      if ((O::arity == 2) == binary && which-- == 0) apply_this(O{}, left);
    });
  }

  template <class O>
  void apply_this(O op, int left) {
    TermGraph& g = program_.terms;
    const Value a = pick();
    const auto one = [&] { return g.constant(Number(1)); };
    const auto positive = [&](TermId t) {
      return g.apply(op::Add{}, {g.apply(op::Abs{}, {t}), one()});
    };
    if constexpr (O::arity == 2) {
      const Value b = pick_other();
      if constexpr (std::is_same_v<O, op::Div>) {
        if (left >= 3) push(g.apply(op, {a.term, positive(b.term)}), a.most, 3);
      } else if constexpr (std::is_same_v<O, op::Mul>) {
        push(g.apply(op, {a.term, b.term}), a.most * b.most, 1);
      } else {
        push(g.apply(op, {a.term, b.term}), a.most + b.most, 1);
      }
    } else if constexpr (std::is_same_v<O, op::Log> || std::is_same_v<O, op::Sqrt> ||
                         std::is_same_v<O, op::Rsqrt>) {
      if (left >= 3) push(g.apply(op, {positive(a.term)}), a.most, 3);
    } else if constexpr (std::is_same_v<O, op::Exp>) {
      if (below(2) == 0 && left >= 3) {
        const TermId low = g.apply(op::Neg{}, {g.apply(op::Abs{}, {a.term})});
        push(g.apply(op, {low}), 1, 3);
      } else if (left >= 3 && !axes(a.term).empty()) {
        const TermId top = g.reduce(ReduceKind::kMax, some_axes(a.term), a.term);
        push(g.apply(op, {g.apply(op::Sub{}, {a.term, top})}), 1, 3);
      }
    } else if constexpr (std::is_same_v<O, op::Pow>) {
      op.exponent = below(2) == 0 ? Number(2) : Number(3);
      push(g.apply(op, {a.term}), a.most * a.most * a.most, 1);
    } else if constexpr (std::is_same_v<O, op::Square>) {
      push(g.apply(op, {a.term}), a.most * a.most, 1);
    } else if constexpr (std::is_same_v<O, op::Clamp>) {
      op.low = Number(-1);
      push(g.apply(op, {a.term}), 1, 1);
    } else if constexpr (std::is_same_v<O, op::Cast>) {
      if (a.most < 3e4) push(g.apply(op, {a.term}), a.most, 1);
    } else {
      push(g.apply(op, {a.term}), a.most, 1);
    }
  }

  AxisSet some_axes(TermId t) {
    AxisSet set;
    for (AxisId a : axes(t)) {
      if (below(2) == 0) set.insert(a);
    }
    if (!set.empty()) return set;
    std::vector<AxisId> all;
    for (AxisId a : axes(t)) all.push_back(a);
    return AxisSet::of(all[static_cast<size_t>(below(static_cast<int64_t>(all.size())))]);
  }

  void reduce(int left) {
    TermGraph& g = program_.terms;
    const Value a = pick();
    if (axes(a.term).empty()) return;
    const AxisSet over = some_axes(a.term);
    if (below(3) == 0) {
      push(g.reduce(ReduceKind::kMax, over, a.term), a.most, 1);
    } else if (below(2) == 0 && over.size() == 1 && left >= 2) {
      const TermId sum = g.reduce(ReduceKind::kSum, over, a.term);
      push(g.apply(op::Div{}, {sum, g.size(*over.begin())}), a.most, 2);
    } else {
      push(g.reduce(ReduceKind::kSum, over, a.term), a.most * elements(over), 1);
    }
  }

  // One of two values by an index, or the larger part of a comparison, or a row read backwards.
  void select() {
    TermGraph& g = program_.terms;
    const Value a = pick(), b = pick_other();
    if (a.term == b.term) return;
    const double most = std::max(a.most, b.most);
    const int64_t kind = below(3);
    if (kind == 0 && axes(a.term).has(1)) {
      const IndexExpr at = IndexExpr::of(1) - IndexExpr::of_constant(below(3) + 1);
      push(g.push(SelectTerm{{at, Relation::kLess}, a.term, b.term}), most, 1);
    } else if (kind == 1) {
      push(g.push(CompareTerm{Relation::kLess, a.term, b.term, b.term, a.term}), most, 1);
    } else if (kind == 2) {
      IndexExpr back = IndexExpr::of(1) * -1 + IndexExpr::of_constant(-1);
      back.sizes.push_back({1, 1});
      push(g.apply(op::Add{}, {a.term, g.input(2, {back})}), a.most + 4, 1);
    }
  }

  void drop_unused() {
    std::vector<TermId> roots;
    for (const Output& o : program_.outputs) roots.push_back(o.value);
    std::vector<bool> live(program_.terms.size(), false);
    for (TermId t : reachable(program_.terms, roots)) live[t] = true;
    std::erase_if(program_.definitions, [&](const Definition& d) { return !live[d.value]; });
    for (const Output& o : program_.outputs) {
      std::erase_if(program_.definitions, [&](const Definition& d) { return d.value == o.value; });
    }
  }

  // Through text, which is what a user would hand in, and which drops what nothing reads.
  Program parse() {
    const std::string text = print(program_);
    Result<Program> parsed = parse_program(text, "random.sd", {});
    EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : to_string(parsed.error())) << "\n" << text;
    return std::move(*parsed);
  }

  std::mt19937_64 random_;
  RandomProgramLimits limits_;
  Program program_;
  std::vector<Value> values_;
  int used_ = 0;  // operators
};

inline Program draw_from_catalog(uint64_t seed, const RandomProgramLimits& limits = {}) {
  return RandomProgram(seed, limits).draw();
}

}  // namespace sundog::search
