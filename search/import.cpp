// An operator is expanded where an axiom can use what is inside: sums, products, quotients and exp.
// The catalog's bodies are written once against any algebra, so this is one more algebra, whose
// values are classes of the bank.  Anything that goes through another primitive (sqrt, max, tanh)
// or mixes a quotient with an exp (sigmoid) stays whole: no axiom speaks of its parts, the term
// stays small, and a kernel calls the operator by its own name.
#include "search/import.h"

#include <algorithm>
#include <array>
#include <map>
#include <type_traits>

#include "core/op.h"

namespace sundog::search {
namespace {

// Which primitives an operator's body uses.
struct Probe {
  struct Value {};
  Rounding rounding;
  int ring = 0, quotients = 0, exps = 0, dropped = 0, others = 0;

  Value count(int& n) {
    ++n;
    return {};
  }
  Value constant(const Number&) { return {}; }
  Value add(Value, Value) { return count(ring); }
  Value mul(Value, Value) { return count(ring); }
  Value div(Value, Value) { return count(quotients); }
  Value exp(Value) { return count(exps); }
  Value log(Value) { return count(others); }
  Value sqrt(Value) { return count(others); }
  Value max(Value, Value) { return count(others); }
  Value cast(DType to, Value) { return count(keeps_cast(rounding, to) ? others : dropped); }
  Value call(const Fn&, Value) { return count(others); }
  Value choose(Relation, Value, Value, Value, Value) { return count(others); }

  bool is_identity() const { return dropped > 0 && ring + quotients + exps + others == 0; }
  bool is_transparent() const {
    if (others > 0 || dropped > 0) return false;
    return quotients + exps == 0 || (quotients + exps == 1 && ring == 0);
  }
};

// What a class is the logarithm of.
ClassId power_of(const Bank& bank, ClassId x) {
  const View* log = bank.applied<op::Log>(x);
  return log == nullptr ? kNoClass : log->factors[0];
}

// c * x as a sum, sums among its addends taken apart.  A term may be an addend of its own addends
// (x = (x - y) + y), so there is an end to it.
using Addends = std::vector<std::pair<Coefficient, ClassId>>;
bool add_addends(const Bank& bank, const Coefficient& c, ClassId x, Addends& out, int depth = 4) {
  for (const View& v : bank[x].views) {
    if (depth == 0) break;
    const bool scaled = v.kind == ViewKind::kProduct && v.reduced.empty() && v.factors.size() == 1;
    if (v.kind != ViewKind::kLinear && !scaled) continue;
    for (size_t i = 0; i < v.factors.size(); ++i) {
      const auto scale = multiply(c, scaled ? v.coefficient : v.coefficients[i]);
      if (!scale || !add_addends(bank, *scale, v.factors[i], out, depth - 1)) return false;
    }
    return true;
  }
  out.push_back({c, x});
  return true;
}

// exp(x), with logarithms in the exponent as factors: exp(s - logsumexp(s)) is the softmax, of
// which the axioms know more than of the exponential.
ClassId exponential_of_logarithms(Bank& bank, ClassId x) {
  Addends addends, rest;
  if (x == kNoClass || !add_addends(bank, {}, x, addends)) return bank.exponential(x);
  std::vector<ClassId> factors;
  for (const auto& [c, addend] : addends) {
    const ClassId power = power_of(bank, addend);
    if (power != kNoClass && c.is_one()) {
      factors.push_back(power);
    } else if (power != kNoClass && c.negated().is_one()) {
      factors.push_back(bank.reciprocal(power));
    } else {
      rest.push_back({c, addend});
    }
  }
  if (factors.empty()) return bank.exponential(x);
  if (!rest.empty()) factors.push_back(bank.exponential(bank.linear(std::move(rest))));
  return bank.product({}, {}, std::move(factors));
}

struct ClassAlgebra {
  using Value = ClassId;
  Bank& bank;

  Value constant(const Number& n) {
    const auto c = Coefficient::of(n);
    return c ? bank.product(*c, {}, {bank.one()}) : kNoClass;
  }
  Value add(Value x, Value y) { return bank.linear({{Coefficient{}, x}, {Coefficient{}, y}}); }
  Value sub(Value x, Value y) {
    return bank.linear({{Coefficient{}, x}, {Coefficient::of(-1), y}});
  }
  Value mul(Value x, Value y) { return bank.product({}, {}, {x, y}); }
  Value div(Value x, Value y) { return bank.product({}, {}, {x, bank.reciprocal(y)}); }
  Value exp(Value x) { return exponential_of_logarithms(bank, x); }
  // Never asked for: operators that use these stay whole.
  Value log(Value) { return kNoClass; }
  Value sqrt(Value) { return kNoClass; }
  Value max(Value, Value) { return kNoClass; }
  Value cast(DType, Value) { return kNoClass; }
  Value call(const Fn&, Value) { return kNoClass; }
  Value choose(Relation, Value, Value, Value, Value) { return kNoClass; }
};

class Importer {
 public:
  explicit Importer(Bank& bank) : bank_(bank), program_(bank.program()) {}

  Result<std::vector<ClassId>> run() {
    std::vector<TermId> roots;
    for (const Output& o : program_.outputs) roots.push_back(o.value);
    for (TermId t : reachable(program_.terms, roots)) {
      const ClassId c = import(t);
      if (c == kNoClass || bank_.failure()) {
        return unsupported("the program is not searched: " +
                           bank_.failure().value_or("a constant does not fit 64 bits"));
      }
      classes_[t] = c;
    }
    for (const Definition& d : program_.definitions) {
      if (const auto it = classes_.find(d.value); it != classes_.end()) {
        bank_.set_name(it->second, d.name);
      }
    }
    std::vector<ClassId> outputs;
    for (const Output& o : program_.outputs) {
      AxisSet dims;
      for (const IndexExpr& e : o.tensor.dims) dims |= e.axis_set();
      const ClassId c = classes_[o.value];
      if (!(bank_.factors(dims) == bank_[c].axes) || bank_.is_constant(c)) {
        return unsupported("the program is not searched: output '" + o.tensor.name +
                           "' does not vary along all its axes");
      }
      outputs.push_back(c);
    }
    return outputs;
  }

 private:
  ClassId import(TermId term) {
    const Term& t = program_.terms[term];
    return std::visit(
        [&]<class T>(const T& node) -> ClassId {
          if constexpr (std::is_same_v<T, ApplyTerm>) {
            return import_apply(node);
          } else if constexpr (std::is_same_v<T, ReduceTerm>) {
            const AxisSet axes = bank_.factors(node.axes);
            const ClassId x = classes_[node.operand];
            return node.kind == ReduceKind::kSum ? bank_.product({}, axes, {x})
                                                 : bank_.maximum(axes, x);
          } else if constexpr (std::is_same_v<T, SelectTerm> || std::is_same_v<T, CompareTerm>) {
            return bank_.opaque(t, operand_classes(t));
          } else {
            return bank_.leaf(term);
          }
        },
        t);
  }

  ClassId import_apply(const ApplyTerm& t) {
    const std::vector<ClassId> in = operand_classes(t);
    Probe probe{bank_.options().rounding};
    const std::array<Probe::Value, 4> values{};
    apply(probe, t.op, std::span<const Probe::Value>(values.data(), in.size()));
    if (probe.is_identity()) return in[0];
    if (!probe.is_transparent()) return bank_.opaque(t, in);
    ClassAlgebra algebra{bank_};
    return apply(algebra, t.op, std::span<const ClassId>(in));
  }

  std::vector<ClassId> operand_classes(const Term& t) {
    std::vector<ClassId> out;
    for (TermId o : operands(t)) out.push_back(classes_[o]);
    return out;
  }

  Bank& bank_;
  const Program& program_;
  std::map<TermId, ClassId> classes_;
};

}  // namespace

Result<std::vector<ClassId>> import_program(Bank& bank) { return Importer(bank).run(); }

}  // namespace sundog::search
