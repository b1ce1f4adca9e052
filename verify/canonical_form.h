// Canonical forms of scalars over symbolic indices: what programs and µGraphs are brought to so
// that equality for all sizes is equality of ids.
//
// A form is a sum of monomials
//
//   coefficient * product of atoms^powers * exp(form)
//
// with exact coefficients.  Atoms are reads of inputs at symbolic indices, sizes, and what has no
// simpler form: big sums over index variables of a product, big maxima, denominators, roots,
// logarithms, calls, conditions on indices (1 where they hold, else 0).  docs/verification.md lists
// each rule by which forms are built, with the condition under which it holds; nothing here trusts
// what a search proposed.
//
//   Forms f;
//   const VarId k = f.indices.variable("k", f.indices.domain("k"));
//   FormId x = f.read(0, {f.indices.of_variable(k)});
//   f.sum({k}, f.multiply(x, f.constant(2))) == f.multiply(f.constant(2), f.sum({k}, x));
//
// A form that grows beyond a limit, or an operation outside the rules, sets failure(): then ids
// mean nothing and the proof is "unknown".  One object is one arena; nothing is ever freed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/dtype.h"
#include "verify/canonical_index.h"
#include "verify/rational.h"

namespace sundog::verify {

using AtomId = uint32_t;
using FormId = uint32_t;
using ElementId = uint32_t;

enum class AtomKind : uint8_t {
  kRead,       // tensor, indices
  kSize,       // domain
  kIndex,      // an index atom as a number
  kSum,        // form of one monomial, bound variables
  kMax,        // elements
  kFraction,   // form: stands for its value, occurs in negative powers only
  kSqrt,       // form
  kLog,        // form
  kCall,       // function, form
  kCast,       // dtype, form
  kCompare,    // relation, form: 1 where `form relation 0`, else 0
  kCondition,  // relation, index: 1 where `index relation 0`, else 0
  kRunning,    // tag, indices: the value of an accumulator inside its loops
};

struct Atom {
  AtomKind kind = AtomKind::kRead;
  std::vector<uint32_t> data;
  std::vector<VarId> free;  // sorted
  uint64_t hash = 0;
  uint32_t level = 0;  // nesting of binders inside
};

struct Monomial {
  Rational coefficient;
  std::vector<std::pair<AtomId, int>> powers;  // sorted by atom; no power is 0
  FormId exponent = 0;
};

struct Form {
  std::vector<Monomial> terms;  // sorted by (powers, exponent)
  std::vector<VarId> free;
  uint64_t hash = 0;
  uint32_t level = 0;
};

// An argument of a maximum: `body` for all values of `binders` where `guard`, which is 0 or 1,
// is 1.
struct Element {
  std::vector<VarId> binders;
  FormId guard = 0, body = 0;
};

enum class Sign : uint8_t { kUnknown, kNotNegative, kPositive };

// Condition `index relation 0` of a kCondition atom; of the four relations only these two occur.
enum class IndexRelation : uint8_t { kNotPositive, kZero };

class Forms {
 public:
  explicit Forms(size_t most_terms = 4000, double seconds = 20);

  Indices indices;

  // --- leaves
  FormId zero() const { return 0; }
  FormId one() const { return one_; }
  FormId constant(const Rational& value);
  FormId constant(const Number& value);  // require: finite
  FormId read(uint32_t tensor, const std::vector<IndexId>& at);
  FormId size(DomainId d);
  FormId index(IndexId at);  // an index as a number
  // 1 where the condition holds, else 0.
  FormId condition(IndexRelation relation, IndexId index);
  // The same, so that a condition and its opposite are written with one atom.
  FormId oriented_condition(IndexRelation relation, IndexId index);
  // The form with all its conditions so, but those of maxima: which of the two it was depended on
  // the variables that the condition had when it was made.
  FormId oriented(FormId a);
  FormId running(uint32_t tag, const std::vector<IndexId>& at);
  // Declares lower bounds of reads (of declared input ranges).
  void set_sign(uint32_t tensor, Sign sign) { read_signs_[tensor] = sign; }

  // --- arithmetic
  FormId add(FormId a, FormId b);
  FormId subtract(FormId a, FormId b) { return add(a, scale(b, Rational::of(-1))); }
  FormId scale(FormId a, const Rational& factor);
  FormId multiply(FormId a, FormId b);
  FormId power(FormId a, int exponent);
  FormId inverse(FormId a);  // where it is not zero
  FormId exp(FormId a);
  FormId log(FormId a);   // where it is positive
  FormId sqrt(FormId a);  // where it is not negative
  FormId call(uint32_t function, FormId a);
  FormId cast(DType to, FormId a);
  FormId compare(Relation relation, FormId left, FormId right);

  // --- binders
  FormId sum(const std::vector<VarId>& binders, FormId body);
  // The maximum of elements; nothing if there is none with a guard other than 0.
  std::optional<FormId> max(std::vector<Element> elements);

  // The form with index atoms replaced (variables and positions).
  using IndexMap = std::map<IndexAtomId, IndexId>;
  FormId substitute(FormId a, const IndexMap& map);

  // --- questions
  // a = b wherever neither has a denominator that vanishes: the difference, brought to one
  // denominator, has no terms.
  bool equal(FormId a, FormId b);
  Sign sign(FormId a) const;
  Sign sign_of_atom(AtomId a) const;
  // What is known of tiles.
  struct HasElements {
    // Whether each tile of the first factors of a split has an index inside the axis: asked about
    // a split and how many of its factors.
    std::function<bool(SplitId, size_t)> tile;
    // Whether `index relation 0` for all values of its variables.
    std::function<bool(IndexRelation, IndexId)> always;
  };
  // Whether the form is positive, sums over tiles that have elements included.
  bool is_positive(FormId a, const HasElements& tiles);
  // Whether a maximum has an element that no condition but those tiles can take away.
  bool is_finite(AtomId maximum, const HasElements& tiles);

  const Form& operator[](FormId id) const { return forms_[id]; }
  const Atom& atom(AtomId id) const { return atoms_[id]; }
  Element element(ElementId id) const;
  FormId of_atom(AtomId a, int power = 1);
  FormId of_monomial(Monomial m);
  // The one atom that a form is, if it is one.
  std::optional<AtomId> as_atom(FormId a) const;
  // The element with its bound variables replaced by fresh ones.
  Element opened(ElementId id);
  // The canonical element: bound variables that it does not need dropped, positions of splits
  // merged, names fixed.
  ElementId closed(Element e);
  // The element without conditions on other variables than those of its body.
  Element relevant(Element e);
  // The conditions among the factors of a monomial.
  std::vector<AtomId> conditions_of(const Monomial& m) const;
  // The conditions that the form is the product of, if it is one; none of the form 1.
  std::optional<std::vector<AtomId>> as_conditions(FormId a) const;

  // Whether `guard` is a product of conditions that are all factors of m.
  bool has_conditions(const Monomial& m, FormId guard) const;

  const std::optional<std::string>& failure() const { return failure_; }
  void fail(const std::string& why) {
    if (!failure_) failure_ = why;
  }
  std::string text(FormId a) const;       // for reading, cut off where it is long
  std::vector<std::string> tensor_names;  // of text()

 private:
  FormId intern(std::vector<Monomial> terms);
  AtomId intern_atom(AtomKind kind, std::vector<uint32_t> data);
  ElementId intern_element(const Element& e);
  FormId normal(Monomial m);
  std::optional<FormId> reduced(const Monomial& m);
  Monomial product(const Monomial& a, const Monomial& b);
  bool is_plain(const Monomial& m) const;
  std::optional<bool> known_where(AtomId condition, AtomId holds) const;
  std::optional<bool> decides(const Monomial& m, AtomId of) const;
  FormId where(const Monomial& m, FormId a);
  bool over_limit();

  // functions
  FormId normalised_divisor(FormId a, Monomial* unit);
  Monomial content(const Form& a) const;
  FormId divided_by_unit(FormId a, const Monomial& unit);
  FormId without_divisor(FormId a, AtomId divisor, int power);
  Monomial reciprocal(const Monomial& m);
  Sign sign_of_monomial(const Monomial& m) const;
  bool is_positive(const Monomial& m, const std::vector<VarId>& binders, const HasElements& tiles);
  bool holds_at_zero(AtomId condition, const std::vector<VarId>& binders, const HasElements& tiles);
  // The position that a condition says is inside its axis, if it says that.
  std::optional<IndexAtomId> inside_of(AtomId condition);

  // binders
  FormId sum_term(std::vector<VarId> binders, const Monomial& m);
  std::optional<FormId> open_inner_sum(std::vector<VarId>* binders, const Monomial& m);
  // A position whose parts are binders that occur nowhere else: it and what replaces it.
  struct Merge {
    IndexMap map;
    VarId variable = 0;
    std::vector<VarId> gone;
  };
  std::optional<Merge> mergeable(const std::vector<VarId>& binders, FormId guard,
                                 const std::vector<FormId>& parts);
  // Pieces of ranges whose ends are numbers (canonical_range.cpp).
  FormId opposite_of(AtomId condition);
  std::optional<FormId> sum_over_range(const std::vector<VarId>& binders, const Monomial& m);
  bool part_element(const Element& e, std::vector<Element>* result);
  Element element_over_range(Element e);
  FormId close_sum(const std::vector<VarId>& binders, const Monomial& m);
  FormId close_component(const std::vector<VarId>& binders, const Monomial& m);
  Element simplified(Element e);
  bool flatten(const Element& e, std::vector<Element>* result);
  void drop_repeats(std::vector<Element>* elements);
  FormId common_addend(const Element& e);
  Monomial common_factor(const std::vector<Element>& elements) const;

  // hashing with colours
  uint64_t hash_atom(AtomId a, const Colours& colours) const;
  uint64_t hash_form(FormId a, const Colours& colours) const;
  uint64_t hash_monomial(const Monomial& m, const Colours& colours) const;
  uint64_t hash_element(ElementId e, const Colours& colours) const;
  // The binders in canonical order, for structures hashed by `hash`.
  using HashFunction = std::function<uint64_t(const Colours&)>;
  std::vector<VarId> ordered(const std::vector<VarId>& binders, const HashFunction& hash);
  std::vector<VarId> canonical_names(const std::vector<VarId>& binders, uint32_t level);

  using Touched = std::vector<VarId>;  // variables of a map's keys, sorted
  FormId substitute(FormId a, const IndexMap& map, const Touched& touched);
  FormId substitute_atom(AtomId a, const IndexMap& map, const Touched& touched);
  FormId oriented_atom(AtomId a);
  FormId substitute_max(AtomId a, const IndexMap& map, const Touched& touched);
  IndexId substitute_index(IndexId i, const IndexMap& map, const Touched& touched);
  // The body of a closed binder with fresh variables.
  std::vector<VarId> fresh_like(const std::vector<VarId>& binders);
  FormId renamed(FormId a, const std::vector<VarId>& from, const std::vector<VarId>& to);

  std::string text_of_atom(AtomId a) const;
  std::string text_of_monomial(const Monomial& m) const;

  WordTable form_table_, atom_table_, element_table_;
  std::deque<Form> forms_;  // references stay valid
  std::deque<Atom> atoms_;
  std::deque<Element> elements_;
  std::unordered_map<uint64_t, FormId> products_;
  std::map<uint32_t, Sign> read_signs_;
  std::optional<std::string> failure_;
  size_t most_terms_;
  double deadline_;
  uint64_t steps_ = 0;
  FormId one_ = 0;
};

// The factors of one monomial.
std::vector<VarId> free_of(const Forms& forms, const Monomial& m);

}  // namespace sundog::verify
