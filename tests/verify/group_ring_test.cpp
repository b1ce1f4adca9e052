#include "verify/group_ring.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/op.h"

namespace sundog::verify {
namespace {

using Value = GroupRing::Value;

// One round of the field test, with short names for what the tests write.
struct Ring : GroupRing {
  explicit Ring(uint64_t seed = 1, Rounding rounding = Rounding::kWide)
      : GroupRing(seed, rounding) {}
  Value var() { return random(next++); }
  std::vector<Value> vars(size_t n) {
    std::vector<Value> v(n);
    for (Value& x : v) x = var();
    return v;
  }
  Value number(const char* text) { return constant(*Number::parse(text)); }
  Value apply(const Op& op, std::vector<Value> in) {
    return sundog::apply(*this, op, std::span<const Value>(in));
  }
  Value sum(const std::vector<Value>& v) {
    Value s = integer(0);
    for (const Value& x : v) s = add(s, x);
    return s;
  }
  Value dot(const std::vector<Value>& a, const std::vector<Value>& b) {
    Value s = integer(0);
    for (size_t i = 0; i < a.size(); ++i) s = add(s, mul(a[i], b[i]));
    return s;
  }
  std::vector<Value> exps(const std::vector<Value>& v, const Value& shift) {
    std::vector<Value> r;
    for (const Value& x : v) r.push_back(exp(sub(x, shift)));
    return r;
  }
  Value maximum(const std::vector<Value>& v) {
    Value m = constant(Number::infinity(true));
    for (const Value& x : v) m = max(m, x);
    return m;
  }
  Value softmax_dot(const std::vector<Value>& s, const std::vector<Value>& v) {
    const auto e = exps(s, integer(0));
    return div(dot(e, v), sum(e));
  }
  bool same(const Value& a, const Value& b) {
    const Sameness s = equal(a, b);
    EXPECT_NE(s, Sameness::kUndecided);
    EXPECT_FALSE(failure().has_value()) << *failure();
    EXPECT_FALSE(image_only());
    return s == Sameness::kSame;
  }
  uint64_t next = 0;
};

enum class Slip { kNone, kSumNotRescaled, kResultNotRescaled };

// Attention over tiles of two with a running maximum.
Value online(Ring& r, const std::vector<Value>& s, const std::vector<Value>& v, Slip slip,
             size_t start = 0) {
  Value m = r.constant(Number::infinity(true)), l = r.integer(0), o = r.integer(0);
  for (size_t t = start; t < s.size(); t += 2) {
    const Value next = r.max(m, r.max(s[t], s[t + 1]));
    if (r.is_minus_infinity(next)) continue;
    const Value scale = r.is_minus_infinity(m) ? r.integer(0) : r.exp(r.sub(m, next));
    for (size_t i = t; i < t + 2; ++i) {
      if (i == t && slip != Slip::kSumNotRescaled) l = r.mul(l, scale);
      if (i == t && slip != Slip::kResultNotRescaled) o = r.mul(o, scale);
      const Value e = r.exp(r.sub(s[i], next));
      l = r.add(l, e);
      o = r.add(o, r.mul(e, v[i]));
    }
    m = next;
  }
  return r.div(o, l);
}

// ---- laws that hold
// --------------------------------------------------------------------------------

struct Law {
  const char* name;
  std::function<std::pair<Value, Value>(Ring&)> sides;
};
void PrintTo(const Law& law, std::ostream* out) { *out << law.name; }

class Holds : public testing::TestWithParam<Law> {};
TEST_P(Holds, AtSeveralSeeds) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Ring r(seed);
    const auto [left, right] = GetParam().sides(r);
    EXPECT_TRUE(r.same(left, right));
    EXPECT_LT(r.error_log2(), -20);
  }
}

class Fails : public testing::TestWithParam<Law> {};
TEST_P(Fails, AtSeveralSeeds) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Ring r(seed);
    const auto [left, right] = GetParam().sides(r);
    EXPECT_FALSE(r.same(left, right));
  }
}

std::string law_name(const testing::TestParamInfo<Law>& info) { return info.param.name; }

const Op kSigmoid = op::Sigmoid{}, kSilu = op::Silu{}, kMin = op::Min{}, kAbs = op::Abs{};

INSTANTIATE_TEST_SUITE_P(
    GroupRing, Holds,
    testing::Values(
        Law{"exp_of_sum",
            [](Ring& r) {
              const Value a = r.var(), b = r.var();
              return std::pair(r.exp(r.add(a, b)), r.mul(r.exp(a), r.exp(b)));
            }},
        Law{"exp_of_log",
            [](Ring& r) {
              const Value a = r.var(), b = r.var();
              const Value x =
                  r.sub(r.mul(r.integer(2), r.log(a)), r.mul(r.number("0.5"), r.log(b)));
              return std::pair(r.exp(x), r.div(r.mul(a, a), r.sqrt(b)));
            }},
        Law{"log_of_exp",
            [](Ring& r) {
              const Value a = r.var(), b = r.sqrt(r.var());
              return std::pair(r.log(r.mul(r.exp(a), r.exp(b))), r.add(a, b));
            }},
        Law{"log_of_nested_exp",
            [](Ring& r) {
              const Value a = r.apply(kSigmoid, {r.var()}), b = r.apply(kSigmoid, {r.var()});
              return std::pair(r.log(r.mul(r.exp(a), r.exp(b))), r.add(a, b));
            }},
        Law{"square_of_root",
            [](Ring& r) {
              const Value a = r.var(), b = r.exp(r.var()), v = r.add(r.mul(a, a), b);
              return std::pair(r.mul(r.sqrt(v), r.sqrt(v)), v);
            }},
        Law{"reciprocal_of_root",
            [](Ring& r) {
              const Value v = r.add(r.var(), r.number("1e-6"));
              return std::pair(r.div(r.integer(1), r.sqrt(v)), r.div(r.sqrt(v), v));
            }},
        Law{"rationalised",
            [](Ring& r) {
              const Value s = r.sqrt(r.var()), w = r.sqrt(r.var()), one = r.integer(1);
              const Value d = r.add(r.add(one, s), w);
              return std::pair(r.mul(r.div(s, d), r.add(d, one)), r.add(s, r.div(s, d)));
            }},
        Law{"root_of_exp",
            [](Ring& r) {
              const Value a = r.var();
              return std::pair(r.sqrt(r.exp(a)), r.exp(r.mul(a, r.number("0.5"))));
            }},
        Law{"roots_of_numbers",
            [](Ring& r) {
              return std::pair(r.mul(r.sqrt(r.integer(6)), r.sqrt(r.number("1.5"))), r.integer(3));
            }},
        Law{"decimal_constants",
            [](Ring& r) {
              return std::pair(r.mul(r.number("1e-6"), r.number("2.5e6")), r.number("2.5"));
            }},
        Law{"max_of_one",
            [](Ring& r) {
              const Value a = r.exp(r.var());
              return std::pair(r.max(a, a), a);
            }},
        Law{"max_is_flattened",
            [](Ring& r) {
              const Value a = r.exp(r.var()), b = r.var(), c = r.var();
              const Value inner = r.mul(r.max(a, b), r.integer(1));
              return std::pair(r.max(inner, c), r.max(r.max(c, a), r.max(b, c)));
            }},
        Law{"max_by_value",
            [](Ring& r) {
              const Value a = r.var(), b = r.var(), c = r.var();
              const Value twice = r.apply(kSigmoid, {a});
              const Value other = r.sub(r.integer(1), r.apply(kSigmoid, {r.neg(a)}));
              return std::pair(r.max(r.max(twice, b), c), r.max(c, r.max(b, other)));
            }},
        Law{"max_of_constants",
            [](Ring& r) {
              const Value a = r.var();
              return std::pair(r.max(r.max(a, r.integer(0)), r.integer(-3)),
                               r.max(a, r.integer(0)));
            }},
        Law{"min_and_max",
            [](Ring& r) {
              const Value a = r.var(), b = r.var();
              return std::pair(r.apply(kMin, {a, r.apply(kMin, {b, a})}), r.apply(kMin, {b, a}));
            }},
        Law{"abs_is_even",
            [](Ring& r) {
              const Value a = r.var();
              return std::pair(r.apply(kAbs, {a}), r.apply(kAbs, {r.neg(a)}));
            }},
        Law{"sigmoid_reflected",
            [](Ring& r) {
              const Value a = r.var();
              return std::pair(r.apply(kSigmoid, {a}),
                               r.sub(r.integer(1), r.apply(kSigmoid, {r.neg(a)})));
            }},
        Law{"sigmoid_expanded",
            [](Ring& r) {
              const Value a = r.var(), e = r.exp(a);
              return std::pair(r.apply(kSigmoid, {a}), r.div(e, r.add(e, r.integer(1))));
            }},
        Law{"normalised_partials",
            [](Ring& r) {
              const auto s = r.vars(4), v = r.vars(4);
              const auto e = r.exps(s, r.integer(0));
              const Value z = r.sum({e[0], e[1]}), w = r.sum({e[2], e[3]});
              const Value o = r.div(r.dot({e[0], e[1]}, {v[0], v[1]}), z);
              const Value p = r.div(r.dot({e[2], e[3]}, {v[2], v[3]}), w);
              const Value all = r.add(z, w);
              return std::pair(r.add(r.mul(o, r.div(z, all)), r.mul(p, r.div(w, all))),
                               r.softmax_dot(s, v));
            }},
        Law{"safe_softmax",
            [](Ring& r) {
              const auto s = r.vars(7), v = r.vars(7);
              const auto e = r.exps(s, r.maximum(s));
              Value inside = r.integer(0);
              for (size_t i = 0; i < 7; ++i) {
                inside = r.add(inside, r.mul(r.div(e[i], r.sum(e)), v[i]));
              }
              return std::pair(inside, r.softmax_dot(s, v));
            }},
        Law{"online_softmax",
            [](Ring& r) {
              const auto s = r.vars(8), v = r.vars(8);
              return std::pair(online(r, s, v, Slip::kNone), r.softmax_dot(s, v));
            }},
        Law{"online_softmax_of_silu",  // nested exponentials
            [](Ring& r) {
              auto s = r.vars(6), v = r.vars(6);
              for (Value& x : s) x = r.apply(kSilu, {r.add(r.mul(x, r.var()), r.var())});
              return std::pair(online(r, s, v, Slip::kNone), r.softmax_dot(s, v));
            }},
        Law{"softmax_of_normalised_logits",  // roots in exponents
            [](Ring& r) {
              auto s = r.vars(6), v = r.vars(6);
              for (Value& x : s) {
                const Value norm = r.sqrt(r.add(r.mul(x, x), r.number("1e-6")));
                x = r.mul(r.div(x, norm), r.var());
              }
              return std::pair(online(r, s, v, Slip::kNone), r.softmax_dot(s, v));
            }},
        Law{"log_sum_exp",
            [](Ring& r) {
              const auto s = r.vars(5);
              const Value m = r.maximum(s);
              return std::pair(r.add(m, r.log(r.sum(r.exps(s, m)))),
                               r.log(r.sum(r.exps(s, r.integer(0)))));
            }},
        Law{"split_merged_by_log_sum_exp",
            [](Ring& r) {
              const auto s = r.vars(4), v = r.vars(4);
              std::vector<Value> logs, parts;
              for (size_t i = 0; i < 4; i += 2) {
                const Value m = r.max(s[i], s[i + 1]);
                const auto e = r.exps({s[i], s[i + 1]}, m);
                logs.push_back(r.add(m, r.log(r.sum(e))));
                parts.push_back(r.div(r.dot(e, {v[i], v[i + 1]}), r.sum(e)));
              }
              const auto w = r.exps(logs, r.maximum(logs));
              return std::pair(r.div(r.dot(w, parts), r.sum(w)), r.softmax_dot(s, v));
            }},
        Law{"masked_first_tile",
            [](Ring& r) {
              auto s = r.vars(6), v = r.vars(6);
              s[0] = s[1] = s[5] = r.constant(Number::infinity(true));
              return std::pair(online(r, s, v, Slip::kNone), r.softmax_dot(s, v));
            }},
        Law{"skipped_masked_tile",
            [](Ring& r) {
              auto s = r.vars(6), v = r.vars(6);
              s[0] = s[1] = s[5] = r.constant(Number::infinity(true));
              return std::pair(online(r, s, v, Slip::kNone, 2), r.softmax_dot(s, v));
            }},
        Law{"choice_is_linear",
            [](Ring& r) {
              const Value a = r.var(), b = r.var(), u = r.var(), e = r.var(), k = r.var();
              return std::pair(r.mul(k, r.choose(Relation::kLess, a, b, u, e)),
                               r.choose(Relation::kLessEqual, b, a, r.mul(k, e), r.mul(u, k)));
            }},
        Law{"choice_of_constants",
            [](Ring& r) {
              const Value u = r.var(), e = r.var();
              return std::pair(r.choose(Relation::kLess, r.number("0.25"), r.number("0.5"), u, e),
                               u);
            }},
        Law{"call_by_value",
            [](Ring& r) {
              const Value a = r.var(), b = r.var();
              const Op tanh = op::Tanh{};
              return std::pair(r.apply(tanh, {r.exp(r.add(a, b))}),
                               r.apply(tanh, {r.mul(r.exp(b), r.exp(a))}));
            }}),
    law_name);

INSTANTIATE_TEST_SUITE_P(
    GroupRing, Fails,
    testing::Values(
        Law{"exp_of_product",
            [](Ring& r) {
              const Value a = r.var(), b = r.var();
              return std::pair(r.exp(r.mul(a, b)), r.mul(r.exp(a), r.exp(b)));
            }},
        Law{"max_of_exps",
            [](Ring& r) {
              return std::pair(r.max(r.exp(r.var()), r.exp(r.var())),
                               r.max(r.exp(r.var()), r.exp(r.var())));
            }},
        Law{"max_of_fewer",
            [](Ring& r) {
              const Value a = r.var(), b = r.var(), c = r.var();
              return std::pair(r.max(r.max(a, b), c), r.max(a, b));
            }},
        Law{"min_is_not_max",
            [](Ring& r) {
              const Value a = r.var(), b = r.var();
              return std::pair(r.apply(kMin, {a, b}), r.max(a, b));
            }},
        Law{"sigmoid_is_not_odd",
            [](Ring& r) {
              const Value a = r.var();
              return std::pair(r.apply(kSigmoid, {a}), r.neg(r.apply(kSigmoid, {r.neg(a)})));
            }},
        Law{"root_of_square_is_not_the_value",
            [](Ring& r) {
              const Value a = r.var();
              return std::pair(r.sqrt(r.mul(a, a)), a);
            }},
        Law{"sum_not_rescaled",
            [](Ring& r) {
              const auto s = r.vars(6), v = r.vars(6);
              return std::pair(online(r, s, v, Slip::kSumNotRescaled), r.softmax_dot(s, v));
            }},
        Law{"result_not_rescaled",
            [](Ring& r) {
              const auto s = r.vars(6), v = r.vars(6);
              return std::pair(online(r, s, v, Slip::kResultNotRescaled), r.softmax_dot(s, v));
            }},
        Law{"nested_sum_not_rescaled",
            [](Ring& r) {
              auto s = r.vars(6), v = r.vars(6);
              for (Value& x : s) x = r.apply(kSilu, {x});
              return std::pair(online(r, s, v, Slip::kSumNotRescaled), r.softmax_dot(s, v));
            }},
        Law{"merged_with_equal_weights",
            [](Ring& r) {
              const auto s = r.vars(4), v = r.vars(4);
              const Value a = r.softmax_dot({s[0], s[1]}, {v[0], v[1]});
              const Value b = r.softmax_dot({s[2], s[3]}, {v[2], v[3]});
              return std::pair(r.mul(r.add(a, b), r.number("0.5")), r.softmax_dot(s, v));
            }},
        Law{"other_threshold",
            [](Ring& r) {
              const Value a = r.var(), b = r.var(), u = r.var(), e = r.var();
              return std::pair(r.choose(Relation::kLess, a, b, u, e),
                               r.choose(Relation::kLess, b, a, u, e));
            }},
        Law{"strict_or_not",
            [](Ring& r) {
              const Value a = r.var(), b = r.var(), u = r.var(), e = r.var();
              return std::pair(r.choose(Relation::kLess, a, b, u, e),
                               r.choose(Relation::kLessEqual, a, b, u, e));
            }},
        Law{"other_function",
            [](Ring& r) {
              const Value a = r.var();
              return std::pair(r.apply(op::Tanh{}, {a}), r.apply(op::Erf{}, {a}));
            }}),
    law_name);

// ---- sizes, limits, bounds
// -------------------------------------------------------------------------

TEST(GroupRing, SumOfSigmoidsStaysLinear) {
  Ring r;
  std::vector<Value> terms;
  for (int i = 0; i < 256; ++i) {
    terms.push_back(r.mul(r.apply(kSilu, {r.var()}), r.mul(r.var(), r.var())));
  }
  const Value all = r.sum(terms);
  EXPECT_EQ(r.size_of(all), 256u);
  std::vector<Value> turned(terms.begin() + 100, terms.end());
  turned.insert(turned.end(), terms.begin(), terms.begin() + 100);
  const Value other = r.sum(turned);
  EXPECT_TRUE(r.same(all, other));
  const Value wrong = r.add(other, r.mul(r.sub(terms[0], terms[1]), r.number("0.25")));
  EXPECT_FALSE(r.same(all, wrong));
  EXPECT_LT(r.error_log2(), -30);
}

TEST(GroupRing, ExpansionBeyondTheLimitIsUndecidedAndSaysSo) {
  GroupRing::Limits limits;
  limits.expansion = 50;
  GroupRing r(1, Rounding::kWide, limits);
  // The sum of n sigmoids against n minus the reflected ones: equal, but only over one denominator,
  // which has 2^n terms.
  Value left = r.integer(0), right = r.integer(12);
  for (uint64_t i = 0; i < 12; ++i) {
    const Value x = r.random(i), one = r.integer(1);
    const Value y = r.mul(r.exp(x), r.exp(r.random(100 + i)));
    left = r.add(left, r.div(one, r.add(one, y)));
    right = r.sub(right, r.div(y, r.add(r.add(one, y), r.integer(0))));
  }
  EXPECT_EQ(r.equal(left, right), Sameness::kUndecided);
  EXPECT_TRUE(r.image_only());
  EXPECT_EQ(r.equal(left, r.add(right, r.random(999))), Sameness::kDifferent);
}

TEST(GroupRing, WorkAndTimeAreBounded) {
  for (const bool timed : {false, true}) {
    GroupRing::Limits limits;
    if (timed) {
      limits.seconds = 1e-9;
    } else {
      limits.products = 1 << 16;
    }
    GroupRing r(1, Rounding::kWide, limits);
    Value v = r.integer(0);
    for (uint64_t i = 0; i < 300; ++i) v = r.add(v, r.exp(r.random(i)));
    EXPECT_FALSE(r.failure());
    r.mul(v, v);
    ASSERT_TRUE(r.failure());
    EXPECT_EQ(*r.failure(), timed ? "the time limit was reached" : "products have too many terms");
  }
}

TEST(GroupRing, DivisionByZeroIsUndefined) {
  Ring r;
  const Value a = r.var(), e = r.exp(a);
  const Value zero = r.sub(r.mul(e, e), r.exp(r.add(a, a)));
  const Value bad = r.div(r.integer(1), zero);
  EXPECT_EQ(bad.kind, GroupRing::Kind::kUndefined);
  EXPECT_EQ(r.undefined_reason(), "division by zero");
  EXPECT_EQ(r.equal(bad, bad), Sameness::kUndecided);
  EXPECT_FALSE(r.wants_redraw());
}

TEST(GroupRing, MinusInfinity) {
  Ring r;
  const Value low = r.constant(Number::infinity(true)), a = r.var();
  EXPECT_TRUE(r.is_minus_infinity(low));
  EXPECT_TRUE(r.same(r.max(low, a), a));
  EXPECT_TRUE(r.same(r.exp(low), r.integer(0)));
  EXPECT_TRUE(r.is_minus_infinity(r.add(low, a)));
  EXPECT_TRUE(r.is_minus_infinity(r.mul(low, r.number("0.125"))));
  EXPECT_EQ(r.sub(low, low).kind, GroupRing::Kind::kUndefined);
  EXPECT_EQ(r.mul(low, a).kind, GroupRing::Kind::kUndefined);
}

TEST(GroupRing, CastsAreKeptOnlyWhenEager) {
  Ring wide, eager(1, Rounding::kEager);
  const Value a = wide.var(), b = eager.var(), c = eager.var();
  EXPECT_TRUE(wide.same(wide.cast(DType::kF16, a), a));
  const Value once = eager.cast(DType::kF16, eager.exp(eager.add(b, c)));
  EXPECT_FALSE(eager.same(once, eager.exp(eager.add(b, c))));
  EXPECT_TRUE(eager.same(once, eager.cast(DType::kF16, eager.mul(eager.exp(c), eager.exp(b)))));
  EXPECT_TRUE(eager.same(once, eager.cast(DType::kF16, once)));
  EXPECT_FALSE(eager.same(once, eager.cast(DType::kBF16, once)));
  EXPECT_TRUE(eager.same(eager.cast(DType::kF16, eager.integer(3)), eager.integer(3)));
  const Value whole = wide.cast(DType::kI8, a);
  EXPECT_FALSE(wide.same(whole, a)) << "rounding to integers is a step of the computation";
  EXPECT_TRUE(wide.same(wide.cast(DType::kI8, wide.add(a, a)),
                        wide.cast(DType::kI8, wide.mul(wide.integer(2), a))));
}

TEST(GroupRing, BoundGrowsWithDegree) {
  Ring low, high;
  const Value a = low.var(), b = high.var();
  Value power = b;
  for (int i = 0; i < 12; ++i) power = high.mul(power, power);
  EXPECT_TRUE(low.same(a, a));
  EXPECT_TRUE(high.same(power, power));
  EXPECT_LT(low.error_log2(), -57);
  EXPECT_GT(high.error_log2(), low.error_log2() + 10);
}

TEST(GroupRing, EveryOperatorDiffersFromEveryOther) {
  Ring r;
  const Value x = r.var(), y = r.var();
  std::vector<std::pair<std::string, Value>> results;
  for_each_op([&]<class O>() {
    if constexpr (!std::is_same_v<O, op::Cast> && !std::is_same_v<O, op::Pow>) {
      std::vector<Value> in = {x, y};
      in.resize(O::arity);
      results.emplace_back(O::name, r.apply(O{}, in));
    }
  });
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t j = 0; j < results.size(); ++j) {
      EXPECT_EQ(r.same(results[i].second, results[j].second), i == j)
          << results[i].first << " " << results[j].first;
    }
  }
}

TEST(GroupRing, AbbreviatesAValueWhereverItOccurs) {
  GroupRing::Limits limits;
  limits.growth = 12;
  GroupRing a(5, Rounding::kWide, limits);
  const Value x = a.random(1), y = a.random(2);
  const auto power = [&](Value v, int n) {
    Value result = a.integer(1);
    for (int i = 0; i < n; ++i) result = a.mul(result, v);
    return result;
  };
  const Value large = power(x, 13), small = power(x, 11);
  EXPECT_EQ(a.equal(a.abbreviated(small), small), Sameness::kSame);
  EXPECT_FALSE(a.abbreviates());
  const Value shorter = a.abbreviated(large);
  EXPECT_TRUE(a.abbreviates());
  EXPECT_EQ(a.equal(shorter, large), Sameness::kDifferent);
  EXPECT_EQ(a.equal(shorter, a.abbreviated(a.mul(power(x, 6), power(x, 7)))), Sameness::kSame);
  EXPECT_EQ(a.equal(a.abbreviated(power(y, 13)), shorter), Sameness::kDifferent);
  // A quotient of degree 13/12 that is x, as far as its degree is known.
  const Value quotient = a.div(power(x, 12), power(x, 11));
  EXPECT_EQ(a.equal(a.abbreviated(quotient), x), Sameness::kDifferent);
  EXPECT_EQ(a.equal(a.abbreviated(x), a.abbreviated(quotient)), Sameness::kSame)
      << "x is abbreviated, too, from here on";
  a.abbreviate_less();
  EXPECT_EQ(a.equal(a.abbreviated(power(y, 14)), power(y, 14)), Sameness::kSame);
  EXPECT_EQ(a.equal(a.abbreviated(power(x, 13)), shorter), Sameness::kSame);
  EXPECT_EQ(a.equal(a.abbreviated(power(y, 48)), power(y, 48)), Sameness::kDifferent);
}

}  // namespace
}  // namespace sundog::verify
