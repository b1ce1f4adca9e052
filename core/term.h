// Terms: what is computed.  A term is an operator over terms; its axes follow from its operands.
//
// A TermGraph is an append-only vector of terms in topological order (operands before users), hash
// consed: pushing an equal term gives the old id, so equal ids mean equal structure.  A program
// owns one; each kernel of a µGraph owns one over its own factors.
//
//   TermId x = g.input(0, {IndexExpr::of(b), IndexExpr::of(h)});
//   TermId s = g.reduce(ReduceKind::kSum, AxisSet::of(h), g.apply(op::Square{}, {x}));
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/axis.h"
#include "core/number.h"
#include "core/op.h"

namespace sundog {

using TermId = uint32_t;
inline constexpr TermId kNoTerm = ~TermId{0};

enum class ReduceKind : uint8_t { kSum, kMax };  // min[h](x) is written as -max[h](-x)

// A read of tensor `tensor` (a program input; in a kernel, any device tensor of the µGraph) at one
// index expression a dimension.
struct InputTerm {
  uint32_t tensor = 0;
  std::vector<IndexExpr> index;
  bool operator==(const InputTerm&) const = default;
};

// In a kernel only: the value of another computation of the same kernel, read at the current values
// of the factors that are its axes (axes of it that the reader lacks must be reduced by the
// reader).
struct LocalTerm {
  uint32_t computation = 0;
  AxisSet axes;  // the tile axes of that computation
  bool operator==(const LocalTerm&) const = default;
};

struct ConstantTerm {
  Number value;
  bool operator==(const ConstantTerm&) const = default;
};

// The extent of an axis as a number (in a kernel: of an axis of the µGraph, not of a factor).
struct SizeTerm {
  AxisId axis = 0;
  bool operator==(const SizeTerm&) const = default;
};

// An index as a number.
struct IndexTerm {
  IndexExpr index;
  bool operator==(const IndexTerm&) const = default;
};

struct ApplyTerm {
  Op op;
  std::vector<TermId> operands;
  bool operator==(const ApplyTerm&) const = default;
};

// Reduces `operand` over `axes`.  An axis of `axes` that the operand lacks still counts: a sum over
// it multiplies by its extent.  Empty: 0 for a sum, -inf for a max.
struct ReduceTerm {
  ReduceKind kind = ReduceKind::kSum;
  AxisSet axes;
  TermId operand = kNoTerm;
  bool operator==(const ReduceTerm&) const = default;
};

// `then` where the condition holds, else `otherwise`; the branch not taken is not evaluated.
struct SelectTerm {
  IndexCondition condition;
  TermId then = kNoTerm, otherwise = kNoTerm;
  bool operator==(const SelectTerm&) const = default;
};

// As SelectTerm, on values: `left relation right`.
struct CompareTerm {
  Relation relation = Relation::kLess;
  TermId left = kNoTerm, right = kNoTerm;
  TermId then = kNoTerm, otherwise = kNoTerm;
  bool operator==(const CompareTerm&) const = default;
};

using Term = std::variant<InputTerm, LocalTerm, ConstantTerm, SizeTerm, IndexTerm, ApplyTerm,
                          ReduceTerm, SelectTerm, CompareTerm>;

class TermGraph {
 public:
  // The only door.  require: operands are ids of this graph.
  TermId push(Term term);

  TermId input(uint32_t tensor, std::vector<IndexExpr> index) {
    return push(InputTerm{tensor, std::move(index)});
  }
  TermId local(uint32_t computation, AxisSet axes) { return push(LocalTerm{computation, axes}); }
  TermId constant(Number value) { return push(ConstantTerm{value}); }
  TermId size(AxisId axis) { return push(SizeTerm{axis}); }
  TermId apply(Op op, std::vector<TermId> operands) {
    return push(ApplyTerm{std::move(op), std::move(operands)});
  }
  TermId reduce(ReduceKind kind, AxisSet axes, TermId operand) {
    return push(ReduceTerm{kind, axes, operand});
  }

  const Term& operator[](TermId id) const { return terms_[id]; }
  AxisSet axes(TermId id) const { return axes_[id]; }  // free axes
  TermId size() const { return static_cast<TermId>(terms_.size()); }

  bool operator==(const TermGraph& other) const { return terms_ == other.terms_; }

 private:
  std::vector<Term> terms_;
  std::vector<AxisSet> axes_;
  std::unordered_multimap<uint64_t, TermId> by_hash_;
};

// Operand ids of a term, in order.
std::vector<TermId> operands(const Term& term);

uint64_t hash(const Term& term);

// Terms that `roots` depend on, each once, operands first.
std::vector<TermId> reachable(const TermGraph& graph, std::span<const TermId> roots);

// The term with each free axis a replaced by replacement[a]; a bound axis that would capture one is
// renamed to a fresh axis, which `fresh` makes (argument: the axis that it stands for).
TermId substitute_axes(TermGraph& graph, TermId term, const std::vector<IndexExpr>& replacement,
                       const std::function<AxisId(AxisId)>& fresh);

}  // namespace sundog
