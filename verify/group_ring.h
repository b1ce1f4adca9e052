// The algebra of the field test: real expressions in which exponentials stay formal.
//
// A value is a sum of terms  c * X^e * m  with c a residue modulo a random prime p, X^e a formal
// exponential (exp(x) is X^x), and m a product of generators:
//   1/D      the reciprocal of an interned sum D (a sum of n sigmoids has n terms, not 2^n)
//   sqrt(v)  with sqrt(v)^2 = v
//   log(v)   with exp(k log(v)) = v^k
// max, call, kept casts and comparisons of values are fresh random residues keyed by their
// arguments. What is equal here is equal as a function of real numbers wherever both sides are
// defined; what differs as a function is equal here with a probability that error_log2() bounds
// (docs/verification.md).
//
//   GroupRing a(seed, Rounding::kWide);
//   auto x = a.random(1), y = a.random(2);
//   a.equal(a.exp(a.add(x, y)), a.mul(a.exp(x), a.exp(y)));   // Sameness::kSame
//   a.error_log2();                                           // about -60
//
// One object is one round at one random point; values of two objects do not mix.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/algebra.h"
#include "core/evaluate.h"
#include "verify/growth.h"
#include "verify/prime_field.h"

namespace sundog::verify {

// A number modulo p, and its companion modulo q: what an exponential's own image is computed from.
struct Residue {
  uint64_t p = 0, q = 0;
  bool operator==(const Residue&) const = default;
};

enum class Sameness : uint8_t { kSame, kDifferent, kUndecided };

class GroupRing {
 public:
  enum class Kind : uint8_t { kFinite, kMinusInfinity, kPlusInfinity, kUndefined };

  struct Value {
    Kind kind = Kind::kFinite;
    uint32_t sum = kPlain;     // position of the terms; kPlain: the number `c` alone
    bool nonnegative = false;  // by construction; kept by RangeRing (verify/ranges.h) alone
    bool positive = false;     // likewise: at least some positive constant
    Residue c;
    Growth growth;
    int64_t numerator = 0,
            denominator = 0;  // the rational constant that this is; denominator 0: none
  };

  struct Limits {
    uint32_t terms_of_value = 1 << 15;
    uint32_t terms = 1 << 22;      // of all values together
    uint32_t expansion = 1 << 14;  // terms while denominators are cleared
    uint64_t products = 1 << 25;   // of two terms, those below powers of roots included
    double seconds = 0;            // from construction; 0: none
    float growth = 0x1p32F;        // degree, or bits of coefficients, that abbreviated() leaves
  };

  GroupRing(uint64_t seed, Rounding rounding) : GroupRing(seed, rounding, Limits{}) {}
  GroupRing(uint64_t seed, Rounding rounding, Limits limits);

  // ---- inputs and constants ----
  Value random(uint64_t key);  // an independent uniform value for each key
  Value constant(const Number& number);
  Value integer(int64_t value);

  // ---- the primitives of core/algebra.h ----
  Value add(const Value& a, const Value& b);
  Value sub(const Value& a, const Value& b) { return add(a, neg(b)); }
  Value neg(const Value& a);
  Value mul(const Value& a, const Value& b);
  Value div(const Value& a, const Value& b);
  Value exp(const Value& a);
  Value log(const Value& a);
  Value sqrt(const Value& a);
  Value max(const Value& a, const Value& b);
  Value cast(DType to, const Value& a);
  Value call(const Fn& fn, const Value& a);
  Value choose(Relation relation, const Value& left, const Value& right, const Value& then,
               const Value& otherwise);

  // The value, or an unknown function of it where its degree or coefficients are too large for a
  // useful error_log2(): a chain of n squares has degree 2^n.  The same value is abbreviated
  // wherever it occurs, though what is known of its degree depends on how it was computed.
  Value abbreviated(const Value& a);
  bool abbreviates() const { return !abbreviated_.empty(); }
  // From here on values are abbreviated where they were before, and others only if they are far
  // larger: a candidate whose degrees are known less well than the program's has the same values.
  void abbreviate_less() { limits_.growth *= 4; }

  bool is_minus_infinity(const Value& a) const { return a.kind == Kind::kMinusInfinity; }

  // Whether two finite values are the same element; infinities are the same as themselves, and an
  // undefined value is never decided.  kUndecided after a limit was hit, see image_only().
  Sameness equal(const Value& a, const Value& b);

  // Set once this round cannot go on: a limit, or a denominator that is zero only at this random
  // point.
  std::optional<std::string> failure() const;
  // Elements that were looked at, whether or not they took an operation: this looks at the clock.
  void looked_at(uint64_t elements);
  bool wants_redraw() const { return redraw_; }
  // Why the first undefined value is undefined ("division by zero"); empty if none was met.
  const std::string& undefined_reason() const { return undefined_reason_; }
  // True if two arguments were told equal by their images alone, because a limit was hit: no
  // verdict of this round is then covered by error_log2().
  bool image_only() const { return image_only_; }
  // True if an exponent contains an exponential or a reciprocal of sums of them.
  bool nested() const { return nested_; }

  // log2 of a bound of the probability that this round took two different functions for the same,
  // over the draw of primes and inputs.
  double error_log2() const;

  uint64_t prime() const { return field_.modulus(); }
  size_t exponent_count() const { return exponents_.size(); }
  size_t term_count() const { return term_count_; }
  size_t size_of(const Value& a) const;  // number of terms

 protected:
  static constexpr uint32_t kPlain = ~uint32_t{0};

  uint32_t intern(const Value& a);  // the number of this element among the arguments of oracles
  // False if no interned value can be this one; cheaper than intern() and leaves no trace.
  bool may_be_interned(const Value& a) const { return interned_by_image_.count(image(a).p) != 0; }
  std::vector<uint32_t> set_of(const Value& a);  // of a maximum: what it is taken over; else itself
  const Value& interned(uint32_t id) const { return interned_[id]; }
  // Whether one of the terms of `sum` is a multiple of exp(exponent) by a number.
  bool has_exponential(const Value& sum, const Value& exponent) const;

 private:
  struct Term {
    uint32_t exponent = 0, product = 0;  // 0: X^0, the empty product
    Residue c;
    uint64_t key() const { return uint64_t{exponent} << 32 | product; }
  };
  struct Exponent {
    uint64_t residue = 0;  // the image of `value`
    uint64_t weight = 0;   // the image of X^value
    Value value;
    bool nested = false;
    uint32_t inverse = 0;  // X^-value, once it was asked for
  };
  enum class GeneratorKind : uint8_t { kReciprocal, kRoot, kLog };
  struct Generator {
    GeneratorKind kind = GeneratorKind::kRoot;
    Value argument;
    Residue weight;
    bool hides_roots = false;  // a reciprocal whose argument contains roots
  };
  struct Power {
    uint32_t generator = 0;
    uint32_t power = 0;
    bool operator==(const Power&) const = default;
    auto operator<=>(const Power&) const = default;
  };
  using Product = std::vector<Power>;  // sorted by generator
  struct ProductOfTwo {
    uint32_t product = 0;
    Value factor;  // what the squares of roots leave
    bool has_factor = false;
  };
  struct Cleared {
    Value numerator;
    Product denominators;
    bool complete = true;  // false: a limit was hit
  };
  class Collector;

  // group_ring.cpp
  std::span<const Term> terms(const Value& a, Term* single) const;
  Value make(std::vector<Term> terms, const Growth& growth);
  Value plain(Residue c, const Growth& growth) const;
  Value undefined(const char* reason);
  void fail(std::string reason);
  void redraw(std::string reason);
  Value infinite_product(const Value& a, const Value& b);

  // group_ring_quotients.cpp
  Value reciprocal(const Value& a);
  Value reciprocal_of_sum(const Value& numerator);
  Value reciprocal_of_term(const Term& term, const Growth& growth);
  bool rationalise(const Value& a, Value* result);
  // sum = unit * X^exponent * result, the same result for all multiples of a sum by units.
  Value normalised(const Value& sum, Residue* unit, uint32_t* exponent);
  Value common_factor(const Value& sum, Term* factor);
  Cleared clear(const Value& a);
  Sameness is_zero(const Value& a);

  // group_ring_tables.cpp
  uint32_t exponent(const Value& value);  // of X^value
  uint32_t add_exponent(uint64_t residue, uint64_t weight, const Value& value, bool nested);
  uint32_t exponent_product(uint32_t a, uint32_t b);
  uint32_t exponent_inverse(uint32_t a);
  uint32_t product_id(const Product& product);
  const ProductOfTwo& product_of(uint32_t a, uint32_t b);
  Value product_value(uint32_t product);
  Residue image(const Value& a) const;
  Residue image(const Term& term) const;
  bool hides_roots(const Value& a) const;
  bool has_kind(uint32_t product, GeneratorKind kind) const;
  uint32_t add_generator(GeneratorKind kind, const Value& argument, Residue weight);
  Value oracle(uint64_t key);
  Residue residue(uint64_t key) const;
  uint64_t subgroup_power(uint64_t q_residue) const;

  // group_ring_functions.cpp
  bool split_log(const Term& term, Value* factor);
  Value log_of(const Value& a);
  Value root_of(const Value& a);
  Value root_of_rational(int64_t numerator, int64_t denominator);
  Value indicator(Relation relation, const Value& left, const Value& right);

  uint64_t seed_;
  Rounding rounding_;
  // Counts products of two terms; false once the round cannot go on.
  bool goes_on(uint64_t products);

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  uint64_t work_ = 0;         // products so far
  uint64_t since_clock_ = 0;  // products and elements since the clock was looked at
  Limits limits_;
  PrimeField field_, companion_;
  static constexpr int kWindow = 6;  // bits; ten windows hold every exponent below q
  std::array<std::array<uint64_t, 1 << kWindow>, 10> powers_;  // g^(j 2^(kWindow i))

  std::deque<std::vector<Term>> sums_;  // a deque: spans of a sum outlive the making of others
  size_t term_count_ = 0;

  std::deque<Exponent> exponents_;
  std::unordered_map<uint64_t, uint32_t> exponent_of_residue_;
  std::unordered_map<uint64_t, uint32_t> exponent_products_;
  std::deque<Generator> generators_;
  std::map<std::vector<uint64_t>, uint32_t> reciprocals_;
  std::vector<Product> products_;
  std::vector<Residue> product_weights_;
  std::map<Product, uint32_t> product_ids_;
  std::unordered_map<uint64_t, ProductOfTwo> product_products_;

  std::deque<Value> interned_;
  std::unordered_multimap<uint64_t, uint32_t> interned_by_image_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> set_of_interned_;  // elements of a maximum
  std::map<std::vector<uint32_t>, Value> maxima_;
  std::unordered_map<uint32_t, uint32_t> root_generator_, log_generator_;  // by interned argument
  std::unordered_map<uint32_t, DType> rounded_;  // interned results of casts
  std::unordered_set<uint32_t> abbreviated_;     // interned values

  std::optional<std::string> failure_;
  std::string undefined_reason_;
  bool redraw_ = false, image_only_ = false, nested_ = false;
  Growth widest_exponent_, widest_coefficient_;
  double longest_product_ = 0;
};

}  // namespace sundog::verify
