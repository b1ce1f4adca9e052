// From syntax trees to terms.  What names mean differs between programs and kernels, and is asked
// of a Scope; arithmetic, functions, reductions, conditions and index expressions are the same in
// both. NOLINT(sundog-mirror): the insides of core/text.h, tested through it
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/term.h"
#include "core/text_guards.h"
#include "core/text_syntax.h"

namespace sundog::text {

class TermBuilder;

// The names that an expression may use.  A function that cannot do what is asked reports it to the
// diagnostics and returns anything valid.
class Scope {
 public:
  virtual ~Scope() = default;
  virtual TermGraph& terms() = 0;
  // What `name` stands for in an axis list, outer to inner.
  virtual std::vector<AxisId> axes(const Ident& name) = 0;
  // What `name` stands for in an index, where the axes `bound` have an index.
  virtual IndexExpr index(const Ident& name, AxisSet bound) = 0;
  // size(name), in an index and as a value.
  virtual IndexExpr extent(const Ident& name) = 0;
  virtual TermId size(const Ident& name) = 0;
  // No value of the index is larger in magnitude (core/index_limit.h).
  virtual double reach(const IndexExpr& index) const = 0;
  // Whether `name` can stand in an index.
  virtual bool is_index_name(std::string_view name) const = 0;
  // A read: name, @name, name[index, ...].  `guards`: what the selects around it say.
  virtual TermId read(const Expr& name, AxisSet bound, const Guards& guards,
                      TermBuilder& builder) = 0;
};

class TermBuilder {
 public:
  TermBuilder(Scope& scope, Diagnostics& diagnostics) : scope_(scope), diagnostics_(diagnostics) {}

  // The term of an expression; `bound` are the axes with an index.
  TermId value(const Expr& e, AxisSet bound);
  IndexExpr index(const Expr& e, AxisSet bound);
  IndexCondition condition(const Expr& e, AxisSet bound);
  // The axes of an axis list, each at most once.
  std::vector<AxisId> axis_list(const std::vector<Ident>& names);
  TermId nothing() { return scope_.terms().constant(Number(0)); }  // after an error

 private:
  TermId name(const Expr& e, AxisSet bound);
  TermId binary(const Expr& e, AxisSet bound);
  TermId reduction(const Expr& e, AxisSet bound);
  TermId call(const Expr& e, AxisSet bound);
  TermId select(const Expr& e, AxisSet bound);
  TermId operation(const Expr& e, AxisSet bound, bool* known);
  TermId unknown_function(const Expr& e);
  void check_reach(Place at, const IndexExpr& index);
  TermId push(Term term);
  TermId push(Op op, std::vector<TermId> operands);
  TermId mean(const std::vector<Ident>& names, AxisSet axes, TermId operand);
  bool wants(const Expr& e, size_t count, std::string_view form);

  Scope& scope_;
  Diagnostics& diagnostics_;
  Guards guards_;
  Place at_;  // of the expression whose value is being made
};

// What is said of an index whose numbers are too large to work with.
void fail_numbers(Diagnostics& diagnostics, Place at);

// The same, and the reach, of the indices that reading `name` at an index gave the terms from
// `first` on.
void check_substituted(const Expr& name, const TermGraph& terms, TermId first,
                       const std::vector<int64_t>& extents, Diagnostics& diagnostics);

// Whether both sides of a comparison are index expressions.
bool is_index_condition(const Expr& compare, const std::function<bool(std::string_view)>& is_index);

// A literal: a number, its negative, or ratio(a, b).
std::optional<Number> literal(const Expr& e);

// The value of an integer expression over named integers; division must leave no remainder.
std::optional<int64_t> integer_value(
    const Expr& e, const std::function<std::optional<int64_t>(const Ident&)>& value_of,
    Diagnostics& diagnostics);
// The same expression as canonical text.
std::string integer_text(const Expr& e);

}  // namespace sundog::text
