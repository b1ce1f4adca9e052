// Scalars of a proof: canonical forms that may be minus infinity, and what must hold for each
// operation to mean what its form says.
//
// SymbolicAlgebra is an algebra (core/algebra.h), so every operator of the catalog has its form.
// What an operation needs (a divisor other than zero, a maximum that is not empty) is recorded; the
// proof compares what the candidate needs with what the program itself needs.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/algebra.h"
#include "core/evaluate.h"
#include "verify/canonical_form.h"

namespace sundog::verify {

// `form` where `guard`, which is 0 or 1, is 1; minus infinity elsewhere.
struct Symbolic {
  FormId form = 0, guard = 0;
  bool is_guarded = false;  // where a maximum in it is empty, something finite stands for it
};

// What must hold for all values of the free variables for which `given`, which is 0 or 1, is 1.
struct Need {
  // kInside: of a read, a product of conditions, or the read where it has no such form.
  enum Kind : uint8_t { kNonZero, kNotNegative, kPositive, kFinite, kInside };
  Kind kind = kNonZero;
  FormId form = 0, given = 0;
  auto operator<=>(const Need&) const = default;
};

class SymbolicAlgebra {
 public:
  using Value = Symbolic;
  SymbolicAlgebra(Forms& forms, Rounding rounding)
      : forms_(forms), rounding_(rounding), given_(forms.one()), guarded_given_(forms.one()) {}

  Value constant(const Number& n);
  Value add(const Value& a, const Value& b);
  Value mul(const Value& a, const Value& b);
  Value div(const Value& a, const Value& b);
  Value exp(const Value& a);
  Value log(const Value& a);
  Value sqrt(const Value& a);
  Value max(const Value& a, const Value& b);
  Value cast(DType to, const Value& a);
  Value call(const Fn& fn, const Value& a);
  Value choose(Relation relation, const Value& l, const Value& r, const Value& t, const Value& e);

  Value finite(FormId form) const { return {form, forms_.one()}; }
  Value minus_infinity() const { return {forms_.zero(), forms_.zero()}; }
  // The maximum of elements, minus infinity if there are none.
  Value maximum(std::vector<Element> elements);
  // The form of a value that may not be minus infinity.
  FormId plain(const Value& a);
  // The same, where also maxima inside must not be empty.
  FormId plain_finite(const Value& a);
  // A read of a dimension of size |d| at an index that may leave it.
  void need_inside(IndexId at, DomainId d);
  // A read of what has other dimensions.
  void need_inside(FormId read) { need(Need::kInside, read); }
  // What an earlier operation needed, of which the value is used now.
  void need_again(const Need& earlier);
  // Accumulators whose running value may be minus infinity.
  void may_be_infinite(uint32_t running_tag) { infinite_tags_.insert(running_tag); }

  Forms& forms() { return forms_; }
  // Needs recorded since the last call.
  std::vector<Need> take_needs();
  // How many operations have needed something so far, also where nothing was recorded.
  uint64_t needs_asked() const { return needs_asked_; }
  // The condition under which what follows is evaluated, 0 or 1; the one before is handed back.
  FormId evaluate_given(FormId condition) { return std::exchange(given_, condition); }
  FormId given() const { return given_; }
  // Of maxima that the text guards alone: what stands for an empty one is finite, so that beside
  // minus infinity it does not matter.
  FormId guard_given(FormId condition) { return std::exchange(guarded_given_, condition); }
  // Maxima that were taken to be finite where the text says what to do if they are not
  // (`select(m == -inf, a, m)`): needs, unless they are taken here.
  std::vector<Need> take_guarded() { return std::exchange(guarded_, {}); }

 private:
  bool may_be_infinite_atom(AtomId a) const;
  bool may_be_infinite(const Value& a) const;
  void need(Need::Kind kind, FormId form);
  FormId without_scale(FormId form);
  void need_finite(FormId form);
  void need_divisor(FormId inverse);

  Forms& forms_;
  Rounding rounding_;
  std::set<uint32_t> infinite_tags_;
  std::vector<Need> needs_, guarded_;
  uint64_t needs_asked_ = 0;
  std::vector<std::string> functions_;  // of calls
  FormId given_, guarded_given_;
};

}  // namespace sundog::verify
