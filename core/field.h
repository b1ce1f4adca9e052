// The scalar image: one word that stands for what a real expression is worth at random inputs.
//
// Values are pairs of residues modulo P = 2Q + 1 and Q, both prime.  The first is the image of the
// value; the second serves where the value is an exponent: exp(x) = G^(x mod Q) mod P for a fixed
// G of order Q, so that exp(x + y) = exp(x) * exp(y) holds exactly.  Everything that has no law
// here is an oracle: a pseudo-random value keyed by its argument.
//
// The image is a hypothesis, not a proof.  Equal images make equal terms very likely, with no
// proven bound; and some equal terms have unequal images (sqrt(x)^2 and x, or a law used inside the
// exponent of an exponent).  The exact test is the verifier's.
//
//   FieldImage field(seed);
//   auto x = field.random(key);
//   identity(field.exp(field.add(x, x))) == identity(field.mul(field.exp(x), field.exp(x)))
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/algebra.h"

namespace sundog {

class FieldImage {
 public:
  struct Value {
    uint64_t p = 0;  // below P, or one of the marks
    uint64_t q = 0;
    // exp(x) * exp(y) and exp(x + y) agree in p only: an exponential's own q is an oracle.
    friend bool operator==(const Value& a, const Value& b) { return a.p == b.p; }
  };

  static constexpr uint64_t kP = 2305843009213691579;  // 2^61 - 2373
  static constexpr uint64_t kQ = (kP - 1) / 2;
  static constexpr uint64_t kMinusInfinity = ~uint64_t{0};
  static constexpr uint64_t kPlusInfinity = ~uint64_t{1};
  static constexpr uint64_t kUndefined = ~uint64_t{2};  // 0 / 0, inf - inf: stays undefined

  // The same seed gives the same images in any order of evaluation, with one exception: log(v) is x
  // where exp(x) = v was computed before, else an oracle (exp(log(v)) = v likewise).  A cast
  // that `rounding` keeps is an oracle.
  explicit FieldImage(uint64_t seed, Rounding rounding = Rounding::kWide);

  // The input element that `key` names.
  Value random(uint64_t key) const;

  Value constant(const Number& n);
  Value add(Value x, Value y);
  Value mul(Value x, Value y);
  Value neg(Value x) const;
  Value sub(Value x, Value y) { return add(x, neg(y)); }
  Value div(Value x, Value y);
  Value exp(Value x);
  Value log(Value x);
  Value sqrt(Value x);
  Value max(Value x, Value y);
  Value cast(DType to, Value x);
  Value call(const Fn& fn, Value x);
  // An oracle's share of either branch.
  Value choose(Relation relation, Value l, Value r, Value t, Value e);
  // Known only of equal values and of infinities.
  std::optional<bool> decide(Relation relation, Value l, Value r) const;

  bool is_minus_infinity(Value x) const { return x.p == kMinusInfinity; }
  bool is_undefined(Value x) const { return x.p == kUndefined; }

  // Why a value became undefined, since the last reset.
  std::optional<std::string> failure() const { return failure_; }
  void reset_failure() { failure_.reset(); }

 private:
  Value undefined(const char* reason);
  Value oracle(uint64_t kind, uint64_t key) const;
  int sign_if_known(Value x) const;
  Value signed_infinity(int sign) const;

  uint64_t seed_;
  Rounding rounding_;
  std::array<std::array<uint64_t, 256>, 8> powers_;  // G^(j * 256^i)
  struct Constant {
    Number number;
    Value value;
  };
  std::unordered_map<uint64_t, Constant> constants_;             // by a hash of the number
  std::unordered_map<uint64_t, int> signs_;                      // of images of constants
  std::unordered_map<uint64_t, Value> exponent_of_;              // of images of exponentials
  std::unordered_map<uint64_t, Value> power_of_;                 // of images of logarithms
  std::unordered_map<uint64_t, std::vector<uint64_t>> members_;  // of images of maxima, sorted
  std::optional<std::string> failure_;
};

// The word that stands for a value.
inline uint64_t identity(FieldImage::Value x) { return x.p; }

// One word of a pseudo-random function of a seed and a key.
uint64_t mix(uint64_t seed, uint64_t key);

}  // namespace sundog
