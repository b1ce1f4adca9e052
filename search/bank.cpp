// Filing terms: a term is evaluated once for each of its views, and its values say which class it
// is. Constructors bring a view into its canonical form first (factors sorted, scales and constants
// taken out, proportional terms under one class with a coefficient), so that the table of views
// answers most questions without evaluating anything.
#include "search/bank.h"

#include <algorithm>

#include "core/check.h"
#include "core/op.h"

namespace sundog::search {
namespace {

constexpr int kMostFactors = 16;  // axes of one class: 2^16 values

std::string view_key(const View& v, RangeClass extra) {
  std::vector<uint64_t> words = {static_cast<uint64_t>(v.kind), v.reduced.bits(), v.opaque, extra};
  append_key(v.coefficient, words);
  words.push_back(v.factors.size());
  for (ClassId f : v.factors) words.push_back(f);
  for (const Coefficient& c : v.coefficients) append_key(c, words);
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)};
}

}  // namespace

Bank::Bank(const Program& program, const BankOptions& options)
    : program_(&program), options_(options), field_(options.seed, options.rounding) {
  add_axes();
  one_ = intern({}, 0, {field_.constant(Number(1))});
  classes_[one_].leaf = LeafKind::kConstant;
  classes_[one_].nonnegative = true;
}

void Bank::fail(std::string why) {
  if (!failure_) failure_ = std::move(why);
}

void Bank::add_axes() {
  AxisSet reduced;
  std::vector<TermId> roots;
  for (const Output& o : program_->outputs) roots.push_back(o.value);
  for (TermId t : reachable(program_->terms, roots)) {
    if (const auto* r = std::get_if<ReduceTerm>(&program_->terms[t])) reduced |= r->axes;
  }
  bases_.resize(program_->axes.size());
  const auto add = [&](AxisId base, Level level) {
    if (axes_.size() >= static_cast<size_t>(kMaxAxes)) {
      fail("too many axes");
      return AxisId{0};
    }
    const AxisId id = static_cast<AxisId>(axes_.size());
    axes_.push_back({base, level});
    bases_[base].all.insert(id);
    weights_.push_back(field_.random(mix(0x77, id)));
    return id;
  };
  for (AxisId a = 0; a < program_->axes.size(); ++a) {
    BaseAxis& base = bases_[a];
    base.reduced = reduced.has(a);
    if (!base.reduced) {
      base.whole = add(a, Level::kWhole);
      continue;
    }
    base.tile = add(a, Level::kTile);
    if (program_->axes[a].extent > options_.shortest_loop || options_.parts.has(a)) {
      base.step = add(a, Level::kStep);
    }
    if (options_.parts.has(a)) base.part = add(a, Level::kPart);
  }
}

AxisSet Bank::factors(AxisSet program_axes) const {
  AxisSet out;
  for (AxisId a : program_axes) out |= bases_[a].all;
  return out;
}

bool Bank::is_constant(ClassId id) const {
  if (id == one_ || classes_[id].leaf == LeafKind::kConstant) return true;
  for (const View& v : classes_[id].views) {
    if (v.kind == ViewKind::kProduct && v.reduced.empty() && v.factors.size() == 1 &&
        v.factors[0] == one_)
      return true;
  }
  return false;
}

ClassId Bank::intern(AxisSet axes, RangeClass range, std::vector<FieldImage::Value> values) {
  uint64_t key = mix(axes.bits(), range);
  bool zero = true;
  for (const auto& v : values) {
    key = mix(key, identity(v));
    zero = zero && identity(v) == 0;
    if (field_.is_undefined(v)) fail("a term is undefined at random inputs");
  }
  const auto [it, fresh] = by_value_.try_emplace(key, size());
  if (fresh) {
    TermClass c;
    c.axes = axes;
    c.values = std::move(values);
    c.range = range;
    c.is_zero = zero;
    classes_.push_back(std::move(c));
  }
  return it->second;
}

ClassId Bank::file(View view, AxisSet axes, RangeClass extra) {
  const std::string key = view_key(view, extra);
  if (const auto it = by_view_.find(key); it != by_view_.end()) return it->second;
  if (axes.size() + view.reduced.size() > kMostFactors) {
    fail("a term has too many axes");
    return kNoClass;
  }
  if (classes_.size() >= options_.most_classes) return kNoClass;
  const RangeClass range = range_of(view) | extra;
  const ClassId id = intern(axes, range, values_of(view, axes));
  by_view_.emplace(key, id);
  inherit(id, view);
  classes_[id].views.push_back(std::move(view));
  ++view_count_;
  return id;
}

void Bank::inherit(ClassId id, const View& view) {
  classes_[id].nonnegative = classes_[id].nonnegative || is_nonnegative(view);
  classes_[id].inline_only = classes_[id].inline_only || is_inline_only(view);
  classes_[id].reaches_minus_infinity |= reaches_minus_infinity(view);
  if (is_inline_only(view) && !view.reduced.empty()) {
    fail("a reduction reads what only a condition around it keeps in range");
  }
}

bool Bank::is_inline_only(const View& view) const {
  if (view.kind == ViewKind::kOpaque &&
      !std::holds_alternative<ApplyTerm>(opaques_[view.opaque].term)) {
    return false;
  }
  return std::any_of(view.factors.begin(), view.factors.end(),
                     [&](ClassId f) { return classes_[f].inline_only; });
}

bool Bank::reaches_minus_infinity(const View& view) const {
  const auto does = [&](ClassId f) { return classes_[f].reaches_minus_infinity; };
  switch (view.kind) {
    case ViewKind::kProduct:
      return view.reduced.empty() && !view.coefficient.is_negative() && view.factors.size() == 1 &&
             does(view.factors[0]);
    case ViewKind::kLinear:
      for (size_t i = 0; i < view.factors.size(); ++i) {
        if (!view.coefficients[i].is_negative() && does(view.factors[i])) return true;
      }
      return false;
    case ViewKind::kMax:
    case ViewKind::kOpaque:
      return std::any_of(view.factors.begin(), view.factors.end(), does);
    case ViewKind::kExp:
    case ViewKind::kReciprocal:
      return false;
  }
  return false;
}

bool Bank::is_nonnegative(const View& view) const {
  const auto is_so = [&](ClassId f) { return classes_[f].nonnegative; };
  switch (view.kind) {
    case ViewKind::kProduct: {
      if (view.coefficient.is_negative()) return false;
      for (size_t i = 0; i < view.factors.size();) {
        size_t j = i;
        while (j < view.factors.size() && view.factors[j] == view.factors[i]) ++j;
        if ((j - i) % 2 != 0 && !is_so(view.factors[i])) return false;
        i = j;
      }
      return true;
    }
    case ViewKind::kLinear:
      for (const Coefficient& c : view.coefficients) {
        if (c.is_negative()) return false;
      }
      return std::all_of(view.factors.begin(), view.factors.end(), is_so);
    case ViewKind::kExp:
      return true;
    case ViewKind::kReciprocal:
    case ViewKind::kMax:
      return is_so(view.factors[0]);
    case ViewKind::kOpaque:
      return false;
  }
  return false;
}

RangeClass Bank::range_of(const View& view) const {
  RangeClass range = 0;
  for (ClassId f : view.factors) range |= classes_[f].range;
  if (view.kind == ViewKind::kExp && !is_bounded_exponent(view.factors[0])) range |= kUnboundedExp;
  if (view.kind == ViewKind::kLinear) {
    // A difference of two quantities that are both nonnegative by construction: E[x^2] - m^2.
    bool plus = false, minus = false;
    for (size_t i = 0; i < view.factors.size(); ++i) {
      if (!classes_[view.factors[i]].nonnegative) continue;
      (view.coefficients[i].is_negative() ? minus : plus) = true;
    }
    if (plus && minus) range |= kCancelling;
  }
  return range;
}

bool Bank::is_bounded_exponent(ClassId x) const {
  return !shifted_by_maximum(x).empty() || !shifted_by_larger(x).empty();
}

namespace {

// x and y of each view of a class that is c * x - y.
struct Difference {
  Coefficient c;
  ClassId x = kNoClass, y = kNoClass;
};
std::vector<Difference> differences(const TermClass& t) {
  std::vector<Difference> out;
  for (const View& v : t.views) {
    if (v.kind != ViewKind::kLinear || v.factors.size() != 2) continue;
    for (size_t i = 0; i < 2; ++i) {
      if (!v.coefficients[1 - i].negated().is_one()) continue;
      out.push_back({v.coefficients[i], v.factors[i], v.factors[1 - i]});
    }
  }
  return out;
}

}  // namespace

// The view of `maximum` as a maximum of c * x over some axes.
std::optional<View> Bank::maximum_of(const Coefficient& c, ClassId x, ClassId maximum) const {
  for (const View& m : classes_[maximum].views) {
    if (m.kind != ViewKind::kMax) continue;
    const auto [scale, base] = without_scale(m.factors[0]);
    if ((c.is_one() && x == m.factors[0]) || (scale == c && base == x)) return m;
  }
  return {};
}

std::vector<Bank::Shifted> Bank::shifted_by_maximum(ClassId difference) const {
  std::vector<Shifted> out;
  for (const Difference& d : differences(classes_[difference])) {
    if (const auto m = maximum_of(d.c, d.x, d.y)) out.push_back({m->factors[0], d.y, m->reduced});
  }
  return out;
}

// max(x, max(y, z)): x, y, z.
std::vector<ClassId> Bank::arguments_of_maximum(ClassId id) const {
  const View* maximum = applied<op::Max>(id);
  if (maximum == nullptr) return {};
  std::vector<ClassId> out;
  for (ClassId f : maximum->factors) {
    const std::vector<ClassId> inner = arguments_of_maximum(f);
    out.push_back(f);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

std::vector<Bank::ShiftedByLarger> Bank::shifted_by_larger(ClassId difference) const {
  std::vector<ShiftedByLarger> out;
  for (const Difference& d : differences(classes_[difference])) {
    for (ClassId m : arguments_of_maximum(d.y)) {
      const auto [scale, base] = without_scale(m);
      if ((d.c.is_one() && m == d.x) || (scale == d.c && base == d.x)) {
        out.push_back({m, d.y, m});
      } else if (const auto view = maximum_of(d.c, d.x, m)) {
        out.push_back({view->factors[0], d.y, m});
      }
    }
  }
  return out;
}

std::pair<Coefficient, ClassId> Bank::without_scale(ClassId id) const {
  for (const View& v : classes_[id].views) {
    if (v.kind == ViewKind::kProduct && v.reduced.empty() && v.factors.size() == 1) {
      return {v.coefficient, v.factors[0]};
    }
  }
  return {Coefficient{}, id};
}

void Bank::take_out_scales(std::optional<Coefficient>& c, std::vector<ClassId>& factors) const {
  for (ClassId& f : factors) {
    const auto [scale, base] = without_scale(f);
    if (base == f || !c) continue;
    c = multiply(*c, scale);
    f = base;
  }
  std::erase(factors, one_);
}

// The number of index values of reduced axes that nothing varies along: whole program axes only,
// since a part of a ragged axis has no fixed size.
std::optional<Coefficient> Bank::count_of(AxisSet axes) const {
  std::optional<Coefficient> count = Coefficient{};
  for (AxisId base = 0; base < bases_.size() && !axes.empty(); ++base) {
    const AxisSet all = bases_[base].all;
    if ((all & axes).empty()) continue;
    if (!axes.contains(all)) return {};
    axes = axes - all;
    count = multiply(*count, Coefficient::of_size(base));
    if (!count) return {};
  }
  return count;
}

ClassId Bank::product(Coefficient c, AxisSet reduced, std::vector<ClassId> factors,
                      RangeClass extra) {
  for (ClassId f : factors) {
    if (f == kNoClass) return kNoClass;
    if (classes_[f].is_zero) c = Coefficient::of(0);
  }
  std::optional<Coefficient> coefficient = std::move(c);
  take_out_scales(coefficient, factors);
  AxisSet axes;
  for (ClassId f : factors) axes |= classes_[f].axes;
  const auto count = count_of(reduced - axes);
  if (!coefficient || !count) return kNoClass;
  coefficient = multiply(*coefficient, *count);
  if (!coefficient) return kNoClass;
  reduced = reduced & axes;
  if (coefficient->is_zero()) factors.clear(), reduced = {}, axes = {};
  if (factors.empty()) factors.push_back(one_);
  if (coefficient->is_one() && reduced.empty() && factors.size() == 1 &&
      (classes_[factors[0]].range | extra) == classes_[factors[0]].range) {
    return factors[0];
  }
  std::sort(factors.begin(), factors.end());
  View v;
  v.kind = ViewKind::kProduct;
  v.coefficient = *coefficient;
  v.reduced = reduced;
  v.factors = std::move(factors);
  return file(std::move(v), axes - reduced, extra);
}

ClassId Bank::linear(std::vector<std::pair<Coefficient, ClassId>> addends, RangeClass extra) {
  std::vector<std::pair<ClassId, Coefficient>> merged;
  for (auto& [c, x] : addends) {
    if (x == kNoClass) return kNoClass;
    if (classes_[x].is_zero) continue;
    const auto [scale, base] = without_scale(x);
    const auto scaled = multiply(c, scale);
    if (!scaled) return kNoClass;
    const auto same = [b = base](const auto& m) { return m.first == b; };
    const auto it = std::find_if(merged.begin(), merged.end(), same);
    if (it == merged.end()) {
      merged.push_back({base, *scaled});
      continue;
    }
    const auto sum = add(it->second, *scaled);
    if (!sum) return kNoClass;
    it->second = *sum;
  }
  std::erase_if(merged, [](const auto& m) { return m.second.is_zero(); });
  std::sort(merged.begin(), merged.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  if (merged.empty()) return product(Coefficient::of(0), {}, {one_}, extra);
  if (merged.size() == 1) return product(merged[0].second, {}, {merged[0].first}, extra);
  View v;
  v.kind = ViewKind::kLinear;
  AxisSet axes;
  for (auto& [x, c] : merged) {
    v.factors.push_back(x);
    v.coefficients.push_back(c);
    axes |= classes_[x].axes;
  }
  return file(std::move(v), axes, extra);
}

ClassId Bank::exponential(ClassId x) {
  if (x == kNoClass) return kNoClass;
  View v;
  v.kind = ViewKind::kExp;
  v.factors = {x};
  return file(std::move(v), classes_[x].axes, 0);
}

ClassId Bank::reciprocal(ClassId x) {
  if (x == kNoClass) return kNoClass;
  const auto [scale, base] = without_scale(x);
  const auto inverse = invert(scale);
  if (!inverse) return kNoClass;
  if (base == one_) return product(*inverse, {}, {one_});
  View v;
  v.kind = ViewKind::kReciprocal;
  v.factors = {base};
  const ClassId r = file(std::move(v), classes_[base].axes, 0);
  return base == x ? r : product(*inverse, {}, {r});
}

ClassId Bank::maximum(AxisSet reduced, ClassId x) {
  if (x == kNoClass) return kNoClass;
  reduced = reduced & classes_[x].axes;
  if (reduced.empty()) return x;
  View v;
  v.kind = ViewKind::kMax;
  v.reduced = reduced;
  v.factors = {x};
  return file(std::move(v), classes_[x].axes - reduced, 0);
}

ClassId Bank::opaque(Term term, const std::vector<ClassId>& operands) {
  Opaque o{std::move(term), {}};
  View v;
  v.kind = ViewKind::kOpaque;
  v.factors = operands;
  AxisSet axes;
  for (ClassId x : operands) {
    if (x == kNoClass) return kNoClass;
    axes |= classes_[x].axes;
  }
  if (auto* select = std::get_if<SelectTerm>(&o.term)) {
    axes |= factors(select->condition.expr.axis_set());
    select->then = select->otherwise = kNoTerm;
  } else if (auto* compare = std::get_if<CompareTerm>(&o.term)) {
    compare->left = compare->right = compare->then = compare->otherwise = kNoTerm;
  } else {
    std::get<ApplyTerm>(o.term).operands.clear();
  }
  const auto same = [&](const Opaque& known) { return known.term == o.term; };
  const auto it = std::find_if(opaques_.begin(), opaques_.end(), same);
  v.opaque = static_cast<uint32_t>(it - opaques_.begin());
  if (it == opaques_.end()) opaques_.push_back(std::move(o));
  return file(std::move(v), axes, 0);
}

ClassId Bank::leaf(TermId term) {
  const Term& t = program_->terms[term];
  if (const auto* size_of = std::get_if<SizeTerm>(&t)) {
    return product(Coefficient::of_size(size_of->axis), {}, {one_});
  }
  if (const auto* constant = std::get_if<ConstantTerm>(&t)) {
    if (const auto c = Coefficient::of(constant->value)) return product(*c, {}, {one_});
  }
  const AxisSet axes = factors(program_->terms.axes(term));
  if (axes.size() > kMostFactors) {
    fail("a term has too many axes");
    return kNoClass;
  }
  std::vector<FieldImage::Value> values(size_t{1} << axes.size());
  for (uint64_t i = 0; i < values.size(); ++i) {
    uint64_t assignment = 0, rest = i;
    for (AxisId a : axes) {
      assignment |= (rest & 1) << a;
      rest >>= 1;
    }
    values[i] = leaf_value(t, assignment);
  }
  const ClassId id = intern(axes, 0, std::move(values));
  TermClass& c = classes_[id];
  if (c.leaf != LeafKind::kNone) return id;
  c.term = term;
  if (const auto* constant = std::get_if<ConstantTerm>(&t)) {
    c.reaches_minus_infinity = constant->value.is_infinite() && constant->value.is_negative();
  }
  c.leaf = std::holds_alternative<InputTerm>(t)      ? LeafKind::kInput
           : std::holds_alternative<ConstantTerm>(t) ? LeafKind::kConstant
                                                     : LeafKind::kIndex;
  return id;
}

void Bank::add_node(ClassId id, Node node) {
  for (ClassId o : node.operands) {
    if (o == id || o == kNoClass) return;
  }
  if (node.kind == NodeKind::kProduct && node.operands[1] < node.operands[0]) {
    std::swap(node.operands[0], node.operands[1]);
  }
  auto& nodes = classes_[id].nodes;
  if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return;
  nodes.push_back(std::move(node));
  ++node_count_;
}

void Bank::set_name(ClassId id, const std::string& name) {
  if (classes_[id].name.empty()) classes_[id].name = name;
}

}  // namespace sundog::search
