// Arithmetic of canonical forms.
//
// Sums of monomials over interned atoms, after the forms of Volta (OOPSLA'26): rational functions
// over coefficient * monomial * exp(polynomial).  Volta decides them where each index is a number;
// here indices are symbols, so that sums over them are atoms too (canonical_binders.cpp), and a
// form holds for all sizes.  Products are multiplied out, so that equal polynomials are one form; a
// denominator of several terms is an atom of its own, divided by a unit that does not depend on how
// it was written (canonical_functions.cpp).
#include "verify/canonical_form.h"

#include <algorithm>
#include <chrono>

#include "core/check.h"
#include "core/field.h"

namespace sundog::verify {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using Key = std::pair<std::vector<std::pair<AtomId, int>>, FormId>;

// Collects monomials, like ones added up.
class Total {
 public:
  bool add(const Monomial& m) {
    const auto [at, is_new] = terms_.try_emplace(Key{m.powers, m.exponent}, m.coefficient);
    if (is_new) return true;
    const std::optional<Rational> sum = verify::add(at->second, m.coefficient);
    if (!sum) return false;
    at->second = *sum;
    return true;
  }
  std::vector<Monomial> take() {
    std::vector<Monomial> result;
    for (auto& [key, coefficient] : terms_) {
      if (!coefficient.is_zero()) result.push_back({coefficient, key.first, key.second});
    }
    return result;
  }
  size_t size() const { return terms_.size(); }

 private:
  std::map<Key, Rational> terms_;
};

constexpr const char* kCoefficients = "a coefficient does not fit 128 bits";

}  // namespace

std::vector<VarId> free_of(const Forms& forms, const Monomial& m) {
  std::vector<VarId> free = forms[m.exponent].free;
  for (const auto& [atom, power] : m.powers) free = merged(free, forms.atom(atom).free);
  return free;
}

Forms::Forms(size_t most_terms, double seconds)
    : most_terms_(most_terms), deadline_(now() + seconds) {
  SUNDOG_CHECK(intern({}) == 0);
  one_ = intern({{Rational::of(1), {}, 0}});
}

bool Forms::over_limit() {
  if (failure_) return true;
  if (++steps_ % 64 == 0 && now() > deadline_) fail("time");
  return failure_.has_value();
}

FormId Forms::intern(std::vector<Monomial> terms) {
  if (terms.size() > most_terms_) {
    fail("a form has more than " + std::to_string(most_terms_) + " terms");
    return 0;
  }
  std::vector<uint32_t> words;
  const auto put = [&](Int128 value) {
    auto bits = static_cast<UInt128>(value);
    for (int i = 0; i < 4; ++i, bits >>= 32) words.push_back(static_cast<uint32_t>(bits));
  };
  for (const Monomial& m : terms) {
    put(m.coefficient.numerator);
    put(m.coefficient.denominator);
    words.push_back(static_cast<uint32_t>(m.powers.size()));
    for (const auto& [atom, power] : m.powers) {
      words.push_back(atom);
      words.push_back(static_cast<uint32_t>(power));
    }
    words.push_back(m.exponent);
  }
  const auto [id, is_new] = form_table_.intern(words);
  if (!is_new) return id;
  Form form;
  form.terms = std::move(terms);
  for (const Monomial& m : form.terms) {
    form.hash += hash_monomial(m, {});
    if (m.exponent != 0) {
      form.free = merged(form.free, forms_[m.exponent].free);
      form.level = std::max(form.level, forms_[m.exponent].level);
    }
    for (const auto& [atom, power] : m.powers) {
      form.free = merged(form.free, atoms_[atom].free);
      form.level = std::max(form.level, atoms_[atom].level);
    }
  }
  form.hash = mix(21, form.hash);
  forms_.push_back(std::move(form));
  return id;
}

// --- hashing

uint64_t Forms::hash_monomial(const Monomial& m, const Colours& colours) const {
  uint64_t sum = 0;
  for (const auto& [atom, power] : m.powers) {
    sum += mix(hash_atom(atom, colours), static_cast<uint64_t>(power));
  }
  const auto fold = [](uint64_t h, Int128 value) {
    return mix(mix(h, static_cast<uint64_t>(value)), static_cast<uint64_t>(value >> 64));
  };
  const uint64_t h = fold(fold(mix(22, sum), m.coefficient.numerator), m.coefficient.denominator);
  return m.exponent == 0 ? h : mix(h, hash_form(m.exponent, colours));
}

uint64_t Forms::hash_form(FormId a, const Colours& colours) const {
  const Form& form = forms_[a];
  const bool touched = std::any_of(colours.begin(), colours.end(), [&](const auto& colour) {
    return contains(form.free, colour.first);
  });
  if (!touched) return form.hash;
  uint64_t sum = 0;
  for (const Monomial& m : form.terms) sum += hash_monomial(m, colours);
  return mix(21, sum);
}

uint64_t Forms::hash_element(ElementId e, const Colours& colours) const {
  const Element& element = elements_[e];
  uint64_t h = mix(24, element.binders.size());
  for (const VarId v : element.binders) {
    h = mix(h, indices.hash_of_variable(v));
  }
  return mix(mix(h, hash_form(element.guard, colours)), hash_form(element.body, colours));
}

uint64_t Forms::hash_atom(AtomId id, const Colours& colours) const {
  const Atom& a = atoms_[id];
  const bool touched = a.hash == 0 || std::any_of(colours.begin(), colours.end(), [&](auto& c) {
                         return contains(a.free, c.first);
                       });
  if (!touched) return a.hash;
  uint64_t h = mix(23, static_cast<uint64_t>(a.kind));
  switch (a.kind) {
    case AtomKind::kRead:
    case AtomKind::kRunning:
      h = mix(h, a.data[0]);
      for (size_t i = 1; i < a.data.size(); ++i) h = mix(h, indices.hash(a.data[i], colours));
      return h;
    case AtomKind::kSize:
      return mix(h, indices.hash_of_domain(a.data[0]));
    case AtomKind::kIndex:
      return mix(h, indices.hash_of_atom(a.data[0], colours));
    case AtomKind::kCondition:
      return mix(mix(h, a.data[0]), indices.hash(a.data[1], colours));
    case AtomKind::kSum:
      for (size_t i = 1; i < a.data.size(); ++i) {
        h = mix(h, indices.hash_of_variable(a.data[i]));
      }
      return mix(h, hash_form(a.data[0], colours));
    case AtomKind::kMax: {
      uint64_t sum = 0;
      for (const ElementId e : a.data) sum += hash_element(e, colours);
      return mix(h, sum);
    }
    case AtomKind::kFraction:
    case AtomKind::kSqrt:
    case AtomKind::kLog:
      return mix(h, hash_form(a.data[0], colours));
    case AtomKind::kCall:
    case AtomKind::kCast:
    case AtomKind::kCompare:
      return mix(mix(h, a.data[0]), hash_form(a.data[1], colours));
  }
  SUNDOG_CHECK(false);
}

AtomId Forms::intern_atom(AtomKind kind, std::vector<uint32_t> data) {
  std::vector<uint32_t> words = data;
  words.push_back(static_cast<uint32_t>(kind));
  const auto [id, is_new] = atom_table_.intern(words);
  if (!is_new) return id;
  Atom a{kind, std::move(data), {}, 0, 0};
  const auto of_form = [&](FormId f) {
    a.free = merged(a.free, forms_[f].free);
    a.level = std::max(a.level, forms_[f].level);
  };
  const auto without = [&](const std::vector<VarId>& free, std::vector<VarId> binders) {
    std::sort(binders.begin(), binders.end());
    std::vector<VarId> rest;
    std::set_difference(free.begin(), free.end(), binders.begin(), binders.end(),
                        std::back_inserter(rest));
    return rest;
  };
  switch (kind) {
    case AtomKind::kRead:
    case AtomKind::kRunning:
    case AtomKind::kCondition:
      for (size_t i = 1; i < a.data.size(); ++i) a.free = merged(a.free, indices.free(a.data[i]));
      break;
    case AtomKind::kSize:
      break;
    case AtomKind::kIndex:
      a.free = indices.free_of_atom(a.data[0]);
      break;
    case AtomKind::kSum:
      of_form(a.data[0]);
      a.free = without(a.free, {a.data.begin() + 1, a.data.end()});
      ++a.level;
      break;
    case AtomKind::kMax:
      for (const ElementId e : a.data) {
        const Element& element = elements_[e];
        a.level =
            std::max({a.level, forms_[element.guard].level + 1, forms_[element.body].level + 1});
        a.free =
            merged(a.free, without(merged(forms_[element.guard].free, forms_[element.body].free),
                                   element.binders));
      }
      break;
    case AtomKind::kFraction:
    case AtomKind::kSqrt:
    case AtomKind::kLog:
      of_form(a.data[0]);
      break;
    case AtomKind::kCall:
    case AtomKind::kCast:
    case AtomKind::kCompare:
      of_form(a.data[1]);
      break;
  }
  atoms_.push_back(std::move(a));
  atoms_.back().hash = hash_atom(id, {});
  return id;
}

ElementId Forms::intern_element(const Element& e) {
  std::vector<uint32_t> words{e.guard, e.body};
  words.insert(words.end(), e.binders.begin(), e.binders.end());
  const auto [id, is_new] = element_table_.intern(words);
  if (is_new) elements_.push_back(e);
  return id;
}

Element Forms::element(ElementId id) const { return elements_[id]; }

// --- leaves

FormId Forms::of_monomial(Monomial m) {
  if (m.coefficient.is_zero()) return 0;
  return intern({std::move(m)});
}

FormId Forms::of_atom(AtomId a, int power) { return normal({Rational::of(1), {{a, power}}, 0}); }

FormId Forms::constant(const Rational& value) { return of_monomial({value, {}, 0}); }

FormId Forms::constant(const Number& value) {
  const std::optional<Rational> exact = of_number(value);
  if (!exact) {
    fail(kCoefficients);
    return 0;
  }
  return constant(*exact);
}

FormId Forms::read(uint32_t tensor, const std::vector<IndexId>& at) {
  std::vector<uint32_t> data{tensor};
  data.insert(data.end(), at.begin(), at.end());
  return of_atom(intern_atom(AtomKind::kRead, std::move(data)));
}

FormId Forms::running(uint32_t tag, const std::vector<IndexId>& at) {
  std::vector<uint32_t> data{tag};
  data.insert(data.end(), at.begin(), at.end());
  return of_atom(intern_atom(AtomKind::kRunning, std::move(data)));
}

FormId Forms::size(DomainId d) {
  if (const std::optional<int64_t> extent = indices.extent_of(d)) {
    return constant(Rational::of(*extent));
  }
  return of_atom(intern_atom(AtomKind::kSize, {d}));
}

FormId Forms::index(IndexId at) {
  const Indices::Index index = indices[at];
  FormId result = constant(Rational::of(index.constant));
  for (const auto& [a, coefficient] : index.items) {
    const IndexAtom& atom = indices.atom(a);
    const FormId value = atom.kind == IndexAtom::kSize
                             ? size(atom.what)
                             : of_atom(intern_atom(AtomKind::kIndex, {a}));
    result = add(result, scale(value, Rational::of(coefficient)));
  }
  return result;
}

// Whether the atom of least hash has a negative coefficient: one of an index and its opposite.
static bool leading_is_negative(const Indices& indices, IndexId index) {
  uint64_t least = ~uint64_t{0};
  int64_t leading = 0;
  for (const auto& [a, coefficient] : indices[index].items) {
    const uint64_t h = indices.hash_of_atom(a, {});
    if (h > least) continue;
    least = h;
    leading = coefficient;
  }
  return leading < 0;
}

// The value of a condition whose index cannot be anything else, by the range of each variable.
static std::optional<bool> settled(Indices& indices, IndexRelation relation, IndexId id) {
  const Indices::Index& index = indices[id];
  if (index.items.empty()) {
    return relation == IndexRelation::kZero ? index.constant == 0 : index.constant <= 0;
  }
  if (relation == IndexRelation::kZero) return {};
  // v - |d| + c <= 0 for c <= 1, -v + c <= 0 for c <= 0, v <= d - 1 where sizes are numbers.
  int64_t most = index.constant;
  IndexId rest = indices.constant(0);
  for (const auto& [a, coefficient] : index.items) {
    const IndexAtom& atom = indices.atom(a);
    const bool inner = atom.kind == IndexAtom::kSize;
    if (atom.kind == IndexAtom::kVariable && coefficient == 1) {
      rest = indices.add(rest, indices.size(indices.domain_of(atom.what)));
      most -= 1;
    } else if (inner) {
      rest = indices.add(rest, indices.of_atom(a, coefficient));
    } else if (coefficient > 0) {
      return {};
    }
  }
  const Indices::Index& bound = indices[rest];
  for (const auto& [a, coefficient] : bound.items) {
    if (coefficient > 0) return {};
    most += coefficient;  // sizes are at least 1
  }
  if (most + bound.constant <= 0) return true;
  return {};
}

FormId Forms::condition(IndexRelation relation, IndexId index) {
  if (const std::optional<bool> value = settled(indices, relation, index)) {
    return *value ? one_ : 0;
  }
  const bool turn = relation == IndexRelation::kZero && leading_is_negative(indices, index);
  if (turn) index = indices.add(indices.constant(0), index, -1);
  return of_atom(intern_atom(AtomKind::kCondition, {static_cast<uint32_t>(relation), index}));
}

FormId Forms::oriented_condition(IndexRelation relation, IndexId index) {
  const bool turn = relation == IndexRelation::kNotPositive && leading_is_negative(indices, index);
  if (!turn) return condition(relation, index);
  return subtract(one_, condition(relation, indices.add(indices.constant(1), index, -1)));
}

std::optional<AtomId> Forms::as_atom(FormId a) const {
  const Form& form = forms_[a];
  if (form.terms.size() != 1) return {};
  const Monomial& m = form.terms[0];
  const bool is_one = m.coefficient.is_one() && m.exponent == 0 && m.powers.size() == 1;
  if (!is_one || m.powers[0].second != 1) return {};
  return m.powers[0].first;
}

std::vector<AtomId> Forms::conditions_of(const Monomial& m) const {
  std::vector<AtomId> result;
  for (const auto& [atom, power] : m.powers) {
    if (atoms_[atom].kind == AtomKind::kCondition) result.push_back(atom);
  }
  return result;
}

std::optional<std::vector<AtomId>> Forms::as_conditions(FormId a) const {
  if (forms_[a].terms.size() != 1) return {};
  const Monomial& m = forms_[a].terms[0];
  std::vector<AtomId> result = conditions_of(m);
  const bool alone = m.coefficient.is_one() && m.exponent == 0 && result.size() == m.powers.size();
  if (!alone) return {};
  return result;
}

bool Forms::has_conditions(const Monomial& m, FormId guard) const {
  const std::optional<std::vector<AtomId>> wanted = as_conditions(guard);
  const std::vector<AtomId> own = conditions_of(m);
  return wanted && std::all_of(wanted->begin(), wanted->end(), [&](AtomId c) {
           return std::find(own.begin(), own.end(), c) != own.end();
         });
}

// --- arithmetic

FormId Forms::add(FormId a, FormId b) {
  if (a == 0) return b;
  if (b == 0) return a;
  Total total;
  bool fits = true;
  for (const FormId id : {a, b}) {
    for (const Monomial& m : forms_[id].terms) fits &= total.add(m);
  }
  if (!fits) fail(kCoefficients);
  return intern(total.take());
}

FormId Forms::scale(FormId a, const Rational& factor) {
  if (factor.is_zero()) return 0;
  std::vector<Monomial> terms = forms_[a].terms;
  for (Monomial& m : terms) {
    const std::optional<Rational> scaled = verify::multiply(m.coefficient, factor);
    if (!scaled) {
      fail(kCoefficients);
      return 0;
    }
    m.coefficient = *scaled;
  }
  return intern(std::move(terms));
}

Monomial Forms::product(const Monomial& a, const Monomial& b) {
  Monomial m;
  const std::optional<Rational> coefficient = verify::multiply(a.coefficient, b.coefficient);
  if (!coefficient) fail(kCoefficients);
  m.coefficient = coefficient.value_or(Rational());
  size_t i = 0, j = 0;
  while (i < a.powers.size() || j < b.powers.size()) {
    if (j == b.powers.size() || (i < a.powers.size() && a.powers[i].first < b.powers[j].first)) {
      m.powers.push_back(a.powers[i++]);
    } else if (i == a.powers.size() || b.powers[j].first < a.powers[i].first) {
      m.powers.push_back(b.powers[j++]);
    } else {
      const int power = a.powers[i].second + b.powers[j].second;
      if (power != 0) m.powers.emplace_back(a.powers[i].first, power);
      ++i;
      ++j;
    }
  }
  m.exponent = add(a.exponent, b.exponent);
  return m;
}

// No rule applies to the product: what reduced() finds nothing in.
bool Forms::is_plain(const Monomial& m) const {
  const bool guarded =
      m.exponent != 0 && std::any_of(m.powers.begin(), m.powers.end(), [&](const auto& item) {
        return atoms_[item.first].kind == AtomKind::kCondition;
      });
  for (const auto& [id, power] : m.powers) {
    const AtomKind kind = atoms_[id].kind;
    if (kind == AtomKind::kSqrt && (power > 1 || power < -1)) return false;
    if (kind == AtomKind::kFraction && power > 0) return false;
    if ((kind == AtomKind::kCondition || kind == AtomKind::kCompare) && power != 1) return false;
  }
  for (const Monomial& e : forms_[m.exponent].terms) {
    const bool log = e.exponent == 0 && e.powers.size() == 1 && e.powers[0].second == 1 &&
                     atoms_[e.powers[0].first].kind == AtomKind::kLog;
    if (log && e.coefficient.is_integer()) return false;
    if (!guarded) continue;
    for (const auto& [atom, power] : e.powers) {
      if (decides(m, atom)) return false;
    }
  }
  return true;
}

// One step of: S^2 = v for S = sqrt(v); D * 1/D = 1; c^2 = c and c * exp(c * x) = c * exp(x) for a
// condition; exp(k log v) = v^k.
std::optional<FormId> Forms::reduced(const Monomial& m) {
  for (size_t i = 0; i < m.powers.size(); ++i) {
    const auto [id, power] = m.powers[i];
    const AtomKind kind = atoms_[id].kind;
    Monomial rest = m;
    if (kind == AtomKind::kSqrt && (power > 1 || power < -1)) {
      rest.powers[i].second = power % 2;
      if (power % 2 == 0) rest.powers.erase(rest.powers.begin() + static_cast<ptrdiff_t>(i));
      return multiply(normal(std::move(rest)), this->power(atoms_[id].data[0], power / 2));
    }
    if (kind == AtomKind::kFraction && power > 0) {
      rest.powers.erase(rest.powers.begin() + static_cast<ptrdiff_t>(i));
      return multiply(normal(std::move(rest)), this->power(atoms_[id].data[0], power));
    }
    if ((kind == AtomKind::kCondition || kind == AtomKind::kCompare) && power != 1) {
      if (power < 0) fail("a division by a condition");
      rest.powers[i].second = 1;
      return normal(std::move(rest));
    }
  }
  if (const FormId exponent = where(m, m.exponent); exponent != m.exponent) {
    return normal({m.coefficient, m.powers, exponent});
  }
  for (const Monomial& e : forms_[m.exponent].terms) {
    const bool log = e.exponent == 0 && e.powers.size() == 1 && e.powers[0].second == 1 &&
                     atoms_[e.powers[0].first].kind == AtomKind::kLog;
    if (!log || !e.coefficient.is_integer()) continue;
    if (e.coefficient.numerator > 16 || e.coefficient.numerator < -16) continue;
    Monomial rest = m;
    rest.exponent = subtract(m.exponent, intern({e}));
    return multiply(normal(std::move(rest)), power(atoms_[e.powers[0].first].data[0],
                                                   static_cast<int>(e.coefficient.numerator)));
  }
  return {};
}

FormId Forms::normal(Monomial m) {
  if (over_limit()) return 0;
  if (!is_plain(m)) {
    if (const std::optional<FormId> result = reduced(m)) return *result;
  }
  return of_monomial(std::move(m));
}

FormId Forms::multiply(FormId a, FormId b) {
  if (a == 0 || b == 0 || over_limit()) return 0;
  if (a == one_) return b;
  if (b == one_) return a;
  const uint64_t key = uint64_t{std::min(a, b)} << 32 | std::max(a, b);
  if (const auto known = products_.find(key); known != products_.end()) return known->second;
  Total total;
  bool fits = true;
  for (const Monomial& x : forms_[a].terms) {
    for (const Monomial& y : forms_[b].terms) {
      Monomial m = product(x, y);
      if (failure_ || total.size() > most_terms_) {
        fail("a product has more than " + std::to_string(most_terms_) + " terms");
        return 0;
      }
      if (is_plain(m)) {
        fits &= total.add(m);
      } else {
        for (const Monomial& each : forms_[normal(std::move(m))].terms) fits &= total.add(each);
      }
    }
  }
  if (!fits) fail(kCoefficients);
  const FormId result = intern(total.take());
  products_.emplace(key, result);
  return result;
}

FormId Forms::power(FormId a, int exponent) {
  if (exponent < 0) return power(inverse(a), -exponent);
  FormId result = one_;
  for (; exponent > 0 && !over_limit(); --exponent) result = multiply(result, a);
  return result;
}

}  // namespace sundog::verify
