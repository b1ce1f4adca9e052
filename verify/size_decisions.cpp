// An algebra of two bits: whether a value is made without inputs, and whether an index or extent
// went into it.  The catalog's bodies say where a maximum, a branch or a rounding happens; that is
// a decision if its arguments have no input in them.
#include "verify/size_decisions.h"

#include <span>
#include <type_traits>
#include <vector>

#include "core/op.h"

namespace sundog::verify {
namespace {

struct SizeAlgebra {
  struct Value {
    bool reads = false;  // an input goes into it
    bool sized = false;  // an index or an extent does
  };
  bool decided = false;

  static Value both(Value a, Value b) { return {a.reads || b.reads, a.sized || b.sized}; }
  Value decide(Value a, Value b) {
    const Value v = both(a, b);
    decided |= !v.reads && v.sized;
    return v;
  }
  Value constant(const Number&) { return {}; }
  Value add(Value a, Value b) { return both(a, b); }
  Value mul(Value a, Value b) { return both(a, b); }
  Value div(Value a, Value b) { return both(a, b); }
  Value exp(Value a) { return a; }
  Value log(Value a) { return a; }
  Value sqrt(Value a) { return a; }
  Value max(Value a, Value b) { return decide(a, b); }
  Value cast(DType, Value a) { return decide(a, a); }
  Value call(const Fn&, Value a) { return a; }
  Value choose(Relation, Value l, Value r, Value t, Value e) {
    return both(decide(l, r), both(t, e));
  }
};

using Value = SizeAlgebra::Value;

// In a kernel, `locals` are the values of its computations, those of earlier ones filled in.
bool decided(const TermGraph& terms, std::vector<Value>* locals, std::vector<Value>* values) {
  SizeAlgebra algebra;
  values->clear();
  for (TermId id = 0; id < terms.size(); ++id) {
    const Value value = std::visit(
        [&]<class T>(const T& term) -> Value {
          const auto of = [&](TermId t) { return (*values)[t]; };
          if constexpr (std::is_same_v<T, InputTerm>) {
            return {.reads = true, .sized = false};
          } else if constexpr (std::is_same_v<T, LocalTerm>) {
            return locals == nullptr ? Value{} : (*locals)[term.computation];
          } else if constexpr (std::is_same_v<T, ConstantTerm>) {
            return {};
          } else if constexpr (std::is_same_v<T, SizeTerm> || std::is_same_v<T, IndexTerm>) {
            return {.reads = false, .sized = true};
          } else if constexpr (std::is_same_v<T, ApplyTerm>) {
            std::vector<Value> in;
            for (const TermId o : term.operands) in.push_back(of(o));
            return apply(algebra, term.op, std::span<const Value>(in));
          } else if constexpr (std::is_same_v<T, ReduceTerm>) {
            const Value v = of(term.operand);
            return term.kind == ReduceKind::kMax ? algebra.decide(v, v) : v;
          } else if constexpr (std::is_same_v<T, SelectTerm>) {
            return SizeAlgebra::both(of(term.then), of(term.otherwise));
          } else {
            return algebra.choose(term.relation, of(term.left), of(term.right), of(term.then),
                                  of(term.otherwise));
          }
        },
        terms[id]);
    values->push_back(value);
  }
  return algebra.decided;
}

}  // namespace

bool decided_by_size(const Program& program) {
  std::vector<Value> values;
  return decided(program.terms, nullptr, &values);
}

bool decided_by_size(const MuGraph& graph) {
  for (const Kernel& kernel : graph.kernels) {
    // Computations read one another in any order of ids: what one is made of is known after as many
    // rounds as the longest chain, and only grows.
    std::vector<Value> locals(kernel.computations.size()), values;
    for (size_t round = 0; round <= kernel.computations.size(); ++round) {
      const bool found = decided(kernel.terms, &locals, &values);
      bool changed = false;
      for (size_t c = 0; c < kernel.computations.size(); ++c) {
        const Value now = values[kernel.computations[c].value];
        changed |= now.reads != locals[c].reads || now.sized != locals[c].sized;
        locals[c] = now;
      }
      if (changed) continue;
      if (found) return true;
      break;
    }
  }
  return false;
}

}  // namespace sundog::verify
