// The value of a canonical form at given sizes and inputs: an oracle for every rule at once.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "core/interpret.h"
#include "verify/symbolic_mugraph.h"

namespace sundog::verify {

class FormValue {
 public:
  // What a read of an index that the tensor does not have is: undefined, or some number.
  enum class Outside { kUndefined, kSome };
  // Extents of domains that are symbols; inputs by tensor number.
  FormValue(const Forms& forms, std::map<DomainId, int64_t> extents,
            const std::vector<TensorValues<double>>& inputs, Outside outside = Outside::kUndefined)
      : forms_(forms), extents_(std::move(extents)), inputs_(inputs), outside_(outside) {}

  void set(VarId v, int64_t value) { variables_[v] = value; }

  // NaN where something is undefined; `unknown` is set where a form holds what has no value here.
  double form(FormId id) {
    double total = 0;
    for (const Monomial& m : forms_[id].terms) {
      double value = static_cast<double>(m.coefficient.numerator) /
                     static_cast<double>(m.coefficient.denominator);
      bool vanishes = false;
      for (const auto& [a, power] : m.powers) {
        const bool condition = forms_.atom(a).kind == AtomKind::kCondition;
        if (condition && atom(a) == 0) vanishes = true;
      }
      if (vanishes) continue;  // the rest may be undefined there
      for (const auto& [a, power] : m.powers) value *= std::pow(atom(a), power);
      if (m.exponent != 0) value *= std::exp(form(m.exponent));
      total += value;
    }
    return total;
  }

  int64_t index(IndexId id) {
    const Indices::Index& e = forms_.indices[id];
    int64_t total = e.constant;
    for (const auto& [a, coefficient] : e.items) total += coefficient * index_atom(a);
    return total;
  }

  bool unknown = false;

 private:
  int64_t extent(DomainId d) {
    if (const auto fixed = forms_.indices.extent_of(d)) return *fixed;
    const auto at = extents_.find(d);
    if (at == extents_.end()) unknown = true;
    return at == extents_.end() ? 1 : at->second;
  }

  int64_t index_atom(IndexAtomId id) {
    const IndexAtom& a = forms_.indices.atom(id);
    if (a.kind == IndexAtom::kSize) return extent(a.what);
    if (a.kind == IndexAtom::kVariable) {
      const auto at = variables_.find(a.what);
      if (at == variables_.end()) unknown = true;
      return at == variables_.end() ? 0 : at->second;
    }
    int64_t position = 0;
    const std::vector<DomainId>& factors = forms_.indices.factors_of(a.what);
    for (size_t i = 0; i < factors.size(); ++i) {
      position = position * extent(factors[i]) + index(a.parts[i]);
    }
    return position;
  }

  template <class F>
  void for_all(const std::vector<VarId>& binders, size_t from, F&& f) {
    if (from == binders.size()) return f();
    const auto old = variables_.find(binders[from]);
    const bool is_bound = old != variables_.end();
    const int64_t saved = is_bound ? old->second : 0;
    const int64_t count = extent(forms_.indices.domain_of(binders[from]));
    for (int64_t i = 0; i < count; ++i) {
      variables_[binders[from]] = i;
      for_all(binders, from + 1, f);
    }
    if (is_bound) variables_[binders[from]] = saved;
  }

  double read(const Atom& a) {
    const TensorValues<double>& tensor = inputs_[a.data[0]];
    int64_t offset = 0;
    for (size_t d = 0; d < tensor.extents.size(); ++d) {
      const int64_t at = index(a.data[d + 1]);
      if (at < 0 || at >= tensor.extents[d]) {
        if (outside_ == Outside::kUndefined) return std::nan("");
        return std::sin(static_cast<double>(1 + 7 * at + 3 * static_cast<int64_t>(a.data[0])));
      }
      offset = offset * tensor.extents[d] + at;
    }
    return tensor.values[static_cast<size_t>(offset)];
  }

  double atom(AtomId id) {
    const Atom& a = forms_.atom(id);
    switch (a.kind) {
      case AtomKind::kRead:
        return read(a);
      case AtomKind::kSize:
        return static_cast<double>(extent(a.data[0]));
      case AtomKind::kIndex:
        return static_cast<double>(index_atom(a.data[0]));
      case AtomKind::kSum: {
        double total = 0;
        for_all({a.data.begin() + 1, a.data.end()}, 0, [&] { total += form(a.data[0]); });
        return total;
      }
      case AtomKind::kMax: {
        double most = -std::numeric_limits<double>::infinity();
        for (const ElementId e : a.data) {
          const Element element = forms_.element(e);
          for_all(element.binders, 0, [&] {
            if (form(element.guard) != 0) most = std::max(most, form(element.body));
          });
        }
        return most;
      }
      case AtomKind::kFraction:
        return form(a.data[0]);
      case AtomKind::kSqrt:
        return std::sqrt(form(a.data[0]));
      case AtomKind::kLog:
        return std::log(form(a.data[0]));
      case AtomKind::kCompare:
        return holds(static_cast<Relation>(a.data[0]), form(a.data[1]), 0.0) ? 1 : 0;
      case AtomKind::kCondition:
        return a.data[0] == static_cast<uint32_t>(IndexRelation::kZero) ? index(a.data[1]) == 0
                                                                        : index(a.data[1]) <= 0;
      case AtomKind::kCall:
      case AtomKind::kCast:
      case AtomKind::kRunning:
        unknown = true;
        return 0;
    }
    return 0;
  }

  const Forms& forms_;
  std::map<DomainId, int64_t> extents_;
  const std::vector<TensorValues<double>>& inputs_;
  Outside outside_;
  std::map<VarId, int64_t> variables_;
};

}  // namespace sundog::verify
