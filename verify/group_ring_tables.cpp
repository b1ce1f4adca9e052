// The tables behind formal exponentials: exponents, products of generators, and the arguments of
// oracles, each stored once.
//
// Every element has an image among the residues modulo p: X^e goes to g^(image of e modulo q), a
// root or logarithm to a random residue, 1/D to the inverse of D's image.  Without roots inside of
// denominators that is a homomorphism, so elements with different images differ; elements with the
// same image are told apart by the exact test.  The image is also what an exponent is known by: for
// an exponent without exponentials it is a random evaluation of a rational function, whose
// collisions are bounded (Schwartz and Zippel).  For a nested exponent no such bound is known, so
// each of its coincidences is confirmed by the exact test.
#include <algorithm>

#include "core/check.h"
#include "verify/group_ring.h"

namespace sundog::verify {

using Value = GroupRing::Value;

// ---- random residues
// -------------------------------------------------------------------------------

Residue GroupRing::residue(uint64_t key) const {
  return {field_.from_word(prf(seed_, key, 0x70)), companion_.from_word(prf(seed_, key, 0x71))};
}

Value GroupRing::random(uint64_t key) { return plain(residue(prf(key, 0x72)), {1, 0, 0, 0}); }

Value GroupRing::oracle(uint64_t key) { return plain(residue(prf(key, 0x73)), {1, 0, 0, 0}); }

uint64_t GroupRing::subgroup_power(uint64_t q_residue) const {
  uint64_t exponent = companion_.to_int(q_residue), result = field_.one();
  for (const auto& row : powers_) {
    const uint64_t digit = exponent % row.size();
    if (digit != 0) result = field_.mul(result, row[digit]);
    exponent >>= kWindow;
  }
  return result;
}

// ---- images
// ----------------------------------------------------------------------------------------

Residue GroupRing::image(const Term& t) const {
  Residue r = t.c;
  const Residue& w = product_weights_[t.product];
  r = {field_.mul(r.p, w.p), companion_.mul(r.q, w.q)};
  if (t.exponent == 0) return r;
  const Exponent& e = exponents_[t.exponent];
  // Modulo q an exponential has no homomorphic image; a residue keyed by the exponent serves.
  const uint64_t q = companion_.from_word(prf(seed_, e.residue, 0x74));
  return {field_.mul(r.p, e.weight), companion_.mul(r.q, q)};
}

Residue GroupRing::image(const Value& a) const {
  if (a.sum == kPlain) return a.c;
  Residue r;
  for (const Term& t : sums_[a.sum]) {
    const Residue w = image(t);
    r = {field_.add(r.p, w.p), companion_.add(r.q, w.q)};
  }
  return r;
}

bool GroupRing::has_kind(uint32_t product, GeneratorKind kind) const {
  return std::any_of(products_[product].begin(), products_[product].end(),
                     [&](const Power& p) { return generators_[p.generator].kind == kind; });
}

bool GroupRing::hides_roots(const Value& a) const {
  if (a.sum == kPlain) return false;
  for (const Term& t : sums_[a.sum]) {
    for (const Power& p : products_[t.product]) {
      if (generators_[p.generator].hides_roots) return true;
    }
  }
  return false;
}

// ---- exponents
// -------------------------------------------------------------------------------------

uint32_t GroupRing::add_exponent(uint64_t residue, uint64_t weight, const Value& value,
                                 bool nested) {
  nested_ |= nested;
  const auto [at, is_new] =
      exponent_of_residue_.emplace(residue, static_cast<uint32_t>(exponents_.size()));
  const uint32_t id = at->second;
  if (is_new) {
    exponents_.push_back({residue, weight, value, nested, 0});
    widest_exponent_ = growth_of_both(widest_exponent_, value.growth);
    return id;
  }
  if (!nested && !exponents_[id].nested) return id;
  const Value known = exponents_[id].value;
  switch (equal(value, known)) {
    case Sameness::kSame:
      break;
    case Sameness::kDifferent:
      redraw("two exponents fall together at this random point");
      break;
    case Sameness::kUndecided:
      image_only_ = true;
      break;
  }
  return id;
}

uint32_t GroupRing::exponent(const Value& value) {
  bool nested = false;
  if (value.sum != kPlain) {
    for (const Term& t : sums_[value.sum]) {
      nested |= t.exponent != 0 || has_kind(t.product, GeneratorKind::kReciprocal);
    }
  }
  const Residue at = image(value);
  return add_exponent(at.p, subgroup_power(at.q), value, nested);
}

bool GroupRing::has_exponential(const Value& sum, const Value& exponent) const {
  if (sum.sum == kPlain) return false;
  const auto known = exponent_of_residue_.find(image(exponent).p);
  if (known == exponent_of_residue_.end()) return false;
  return std::any_of(sums_[sum.sum].begin(), sums_[sum.sum].end(),
                     [&](const Term& t) { return t.exponent == known->second && t.product == 0; });
}

uint32_t GroupRing::exponent_product(uint32_t a, uint32_t b) {
  if (a == 0 || b == 0) return a | b;
  const uint64_t key = uint64_t{std::min(a, b)} << 32 | std::max(a, b);
  const auto known = exponent_products_.find(key);
  if (known != exponent_products_.end()) return known->second;
  const Exponent &x = exponents_[a], &y = exponents_[b];
  const uint32_t id = add_exponent(field_.add(x.residue, y.residue), field_.mul(x.weight, y.weight),
                                   add(x.value, y.value), x.nested || y.nested);
  exponent_products_.emplace(key, id);
  return id;
}

uint32_t GroupRing::exponent_inverse(uint32_t a) {
  if (a == 0) return 0;
  const Exponent& x = exponents_[a];
  if (x.inverse != 0) return x.inverse;
  const uint32_t id =
      add_exponent(field_.neg(x.residue), field_.inverse(x.weight), neg(x.value), x.nested);
  exponents_[a].inverse = id;
  exponents_[id].inverse = a;
  return id;
}

// ---- products of generators
// ------------------------------------------------------------------------

uint32_t GroupRing::add_generator(GeneratorKind kind, const Value& argument, Residue weight) {
  bool roots = false;
  if (kind == GeneratorKind::kReciprocal) {
    Term single;
    for (const Term& t : terms(argument, &single)) {
      roots |= has_kind(t.product, GeneratorKind::kRoot);
    }
  }
  generators_.push_back({kind, argument, weight, roots});
  return static_cast<uint32_t>(generators_.size() - 1);
}

uint32_t GroupRing::product_id(const Product& product) {
  const auto [at, is_new] = product_ids_.emplace(product, static_cast<uint32_t>(products_.size()));
  if (!is_new) return at->second;
  Residue weight = {field_.one(), companion_.one()};
  double length = 0;
  for (const Power& p : product) {
    const Generator& g = generators_[p.generator];
    weight.p = field_.mul(weight.p, field_.power(g.weight.p, p.power));
    weight.q = companion_.mul(weight.q, companion_.power(g.weight.q, p.power));
    if (g.kind != GeneratorKind::kReciprocal) length += p.power;
  }
  longest_product_ = std::max(longest_product_, length);
  products_.push_back(product);
  product_weights_.push_back(weight);
  return at->second;
}

Value GroupRing::product_value(uint32_t product) {
  return make({{0, product, {field_.one(), companion_.one()}}}, {});
}

const GroupRing::ProductOfTwo& GroupRing::product_of(uint32_t a, uint32_t b) {
  const uint64_t key = uint64_t{std::min(a, b)} << 32 | std::max(a, b);
  const auto known = product_products_.find(key);
  if (known != product_products_.end()) return known->second;
  ProductOfTwo result;
  result.factor = integer(1);
  Product merged;
  const Product left = products_[a], right = products_[b];
  for (size_t i = 0, j = 0; i < left.size() || j < right.size();) {
    if (j == right.size() || (i < left.size() && left[i].generator < right[j].generator)) {
      merged.push_back(left[i++]);
      continue;
    }
    if (i == left.size() || right[j].generator < left[i].generator) {
      merged.push_back(right[j++]);
      continue;
    }
    Power p{left[i].generator, left[i].power + right[j].power};
    ++i, ++j;
    if (generators_[p.generator].kind == GeneratorKind::kRoot) {
      for (; p.power >= 2; p.power -= 2) {
        result.factor = mul(result.factor, generators_[p.generator].argument);
        result.has_factor = true;
      }
    }
    if (p.power > 0) merged.push_back(p);
  }
  result.product = product_id(merged);
  return product_products_.emplace(key, result).first->second;
}

// ---- arguments of oracles
// --------------------------------------------------------------------------

uint32_t GroupRing::intern(const Value& a) {
  const uint64_t at = image(a).p;
  const auto [first, last] = interned_by_image_.equal_range(at);
  std::vector<uint32_t> bucket;
  for (auto i = first; i != last; ++i) bucket.push_back(i->second);
  std::sort(bucket.begin(), bucket.end());
  for (const uint32_t id : bucket) {
    const Value known = interned_[id];
    switch (equal(a, known)) {
      case Sameness::kSame:
        return id;
      case Sameness::kDifferent:
        continue;
      case Sameness::kUndecided:
        image_only_ = true;
        return id;
    }
  }
  const auto id = static_cast<uint32_t>(interned_.size());
  interned_.push_back(a);
  interned_by_image_.emplace(at, id);
  widest_coefficient_ = growth_of_both(widest_coefficient_, a.growth);
  return id;
}

}  // namespace sundog::verify
