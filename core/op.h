// The operator catalog.  One struct says everything about one elementwise operator:
//
//   name    the word for it in program text and in messages
//   arity   how many terms it reads
//   apply   what it does to scalars, written once against any algebra (core/algebra.h)
//
// Float evaluation, field values, views, intervals, work counts and CUDA text are all `apply` in
// some algebra, so no other file has a case per operator.  To add an operator, add a struct here
// and its name in `Op` below, and a row in tests/core/op_test.cpp.  Attributes are fields, so that
// they take part in equality, and are listed by `attributes` for parsing, printing and storing.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/algebra.h"

namespace sundog::op {

// An operator of N operands without attributes.
template <int N>
struct Plain {
  static constexpr int arity = N;
  static constexpr auto attributes() { return std::tuple<>(); }
  constexpr bool operator==(const Plain&) const = default;
};

// How program text writes an operator; functions are `name(a, b)`.
enum class Notation : uint8_t { kFunction, kInfix, kPrefix };

struct Add : Plain<2> {
  static constexpr std::string_view name = "add", symbol = "+";
  static constexpr Notation notation = Notation::kInfix;
  auto apply(auto& a, auto x, auto y) const { return a.add(x, y); }
};

struct Sub : Plain<2> {
  static constexpr std::string_view name = "sub", symbol = "-";
  static constexpr Notation notation = Notation::kInfix;
  auto apply(auto& a, auto x, auto y) const { return subtract(a, x, y); }
};

struct Mul : Plain<2> {
  static constexpr std::string_view name = "mul", symbol = "*";
  static constexpr Notation notation = Notation::kInfix;
  auto apply(auto& a, auto x, auto y) const { return a.mul(x, y); }
};

struct Div : Plain<2> {
  static constexpr std::string_view name = "div", symbol = "/";
  static constexpr Notation notation = Notation::kInfix;
  auto apply(auto& a, auto x, auto y) const { return a.div(x, y); }
};

struct Neg : Plain<1> {
  static constexpr std::string_view name = "neg", symbol = "-";
  static constexpr Notation notation = Notation::kPrefix;
  auto apply(auto& a, auto x) const { return negate(a, x); }
};

struct Exp : Plain<1> {
  static constexpr std::string_view name = "exp";
  auto apply(auto& a, auto x) const { return a.exp(x); }
};

struct Log : Plain<1> {
  static constexpr std::string_view name = "log";
  auto apply(auto& a, auto x) const { return a.log(x); }
};

struct Sqrt : Plain<1> {
  static constexpr std::string_view name = "sqrt";
  auto apply(auto& a, auto x) const { return a.sqrt(x); }
};

struct Rsqrt : Plain<1> {
  static constexpr std::string_view name = "rsqrt";
  auto apply(auto& a, auto x) const { return a.div(a.constant(Number(1)), a.sqrt(x)); }
};

struct Max : Plain<2> {
  static constexpr std::string_view name = "max";
  auto apply(auto& a, auto x, auto y) const { return a.max(x, y); }
};

struct Min : Plain<2> {
  static constexpr std::string_view name = "min";
  auto apply(auto& a, auto x, auto y) const { return negate(a, a.max(negate(a, x), negate(a, y))); }
};

struct Square : Plain<1> {
  static constexpr std::string_view name = "square";
  auto apply(auto& a, auto x) const { return a.mul(x, x); }
};

// x to a constant power: repeated products and a square root for multiples of 1/2 up to 32, else
// exp(exponent * log x), which is defined for positive x only.
struct Pow {
  static constexpr std::string_view name = "pow";
  static constexpr int arity = 1;
  Number exponent{1};
  constexpr auto attributes() { return std::tie(exponent); }
  constexpr auto attributes() const { return std::tie(exponent); }
  constexpr bool operator==(const Pow&) const = default;

  auto apply(auto& a, auto x) const {
    const double twice = 2 * exponent.to_double();
    if (twice != std::floor(twice) || std::fabs(twice) > 64) {
      return a.exp(a.mul(a.constant(exponent), a.log(x)));
    }
    int halves = static_cast<int>(std::fabs(twice));
    auto result = halves % 2 == 1 ? a.sqrt(x) : a.constant(Number(1));
    bool is_one = halves % 2 == 0;
    auto power = x;
    for (int rest = halves / 2; rest > 0; rest /= 2) {
      if (rest % 2 == 1) {
        result = is_one ? power : a.mul(result, power);
        is_one = false;
      }
      if (rest > 1) power = a.mul(power, power);
    }
    return twice < 0 ? a.div(a.constant(Number(1)), result) : result;
  }
};

struct Abs : Plain<1> {
  static constexpr std::string_view name = "abs";
  auto apply(auto& a, auto x) const { return a.max(x, negate(a, x)); }
};

struct Relu : Plain<1> {
  static constexpr std::string_view name = "relu";
  auto apply(auto& a, auto x) const { return a.max(x, a.constant(Number(0))); }
};

struct Sigmoid : Plain<1> {
  static constexpr std::string_view name = "sigmoid";
  auto apply(auto& a, auto x) const {
    const auto one = a.constant(Number(1));
    return a.div(one, a.add(one, a.exp(negate(a, x))));
  }
};

struct Silu : Plain<1> {
  static constexpr std::string_view name = "silu";
  auto apply(auto& a, auto x) const {
    return a.div(x, a.add(a.constant(Number(1)), a.exp(negate(a, x))));
  }
};

// log(1 + exp(x)), written so that no exponent is positive.
struct Softplus : Plain<1> {
  static constexpr std::string_view name = "softplus";
  auto apply(auto& a, auto x) const {
    const auto one = a.constant(Number(1));
    const auto tail = a.log(a.add(one, a.exp(negate(a, a.max(x, negate(a, x))))));
    return a.add(a.max(x, a.constant(Number(0))), tail);
  }
};

struct Tanh : Plain<1> {
  static constexpr std::string_view name = "tanh";
  static constexpr Fn fn{"tanh", "sd::tanh", [](double x) { return std::tanh(x); }, 2};
  auto apply(auto& a, auto x) const { return a.call(fn, x); }
};

struct Erf : Plain<1> {
  static constexpr std::string_view name = "erf";
  static constexpr Fn fn{"erf", "sd::erf", [](double x) { return std::erf(x); }, 6};
  auto apply(auto& a, auto x) const { return a.call(fn, x); }
};

struct Sin : Plain<1> {
  static constexpr std::string_view name = "sin";
  static constexpr Fn fn{"sin", "sinf", [](double x) { return std::sin(x); }, 8};
  auto apply(auto& a, auto x) const { return a.call(fn, x); }
};

struct Cos : Plain<1> {
  static constexpr std::string_view name = "cos";
  static constexpr Fn fn{"cos", "cosf", [](double x) { return std::cos(x); }, 8};
  auto apply(auto& a, auto x) const { return a.call(fn, x); }
};

// x * (1 + erf(x / sqrt 2)) / 2.
struct Gelu : Plain<1> {
  static constexpr std::string_view name = "gelu";
  auto apply(auto& a, auto x) const {
    static const Number one_half = Number::ratio(1, 2);
    const auto half = a.constant(one_half);
    const auto arg = a.mul(x, a.sqrt(half));
    return a.mul(a.mul(x, half), a.add(a.constant(Number(1)), a.call(Erf::fn, arg)));
  }
};

// The tanh approximation: x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2.
struct GeluTanh : Plain<1> {
  static constexpr std::string_view name = "gelu_tanh";
  auto apply(auto& a, auto x) const {
    static const Number one_half = Number::ratio(1, 2);
    const auto half = a.constant(one_half);
    static const Number root = *Number::parse("0.7978845608028654");
    static const Number share = *Number::parse("0.044715");
    const auto scale = a.constant(root);
    const auto cubic = a.mul(a.constant(share), a.mul(x, a.mul(x, x)));
    const auto arg = a.mul(scale, a.add(x, cubic));
    return a.mul(a.mul(x, half), a.add(a.constant(Number(1)), a.call(Tanh::fn, arg)));
  }
};

// min(max(x, low), high).
struct Clamp {
  static constexpr std::string_view name = "clamp";
  static constexpr int arity = 1;
  Number low{0}, high{1};
  constexpr auto attributes() { return std::tie(low, high); }
  constexpr auto attributes() const { return std::tie(low, high); }
  constexpr bool operator==(const Clamp&) const = default;

  auto apply(auto& a, auto x) const {
    const auto raised = a.max(x, a.constant(low));
    return negate(a, a.max(negate(a, raised), negate(a, a.constant(high))));
  }
};

// Rounds to a storage type: `cast(x, f16)`.
struct Cast {
  static constexpr std::string_view name = "cast";
  static constexpr int arity = 1;
  DType to = DType::kF32;
  constexpr auto attributes() { return std::tie(to); }
  constexpr auto attributes() const { return std::tie(to); }
  constexpr bool operator==(const Cast&) const = default;
  auto apply(auto& a, auto x) const { return a.cast(to, x); }
};

}  // namespace sundog::op

namespace sundog {

using Op = std::variant<op::Add, op::Sub, op::Mul, op::Div, op::Neg, op::Exp, op::Log, op::Sqrt,
                        op::Rsqrt, op::Max, op::Min, op::Square, op::Pow, op::Abs, op::Relu,
                        op::Sigmoid, op::Silu, op::Softplus, op::Tanh, op::Erf, op::Sin, op::Cos,
                        op::Gelu, op::GeluTanh, op::Clamp, op::Cast>;

template <class O>
concept Operator = std::equality_comparable<O> && std::default_initializable<O> && requires(O o) {
  { O::name } -> std::convertible_to<std::string_view>;
  { O::arity } -> std::convertible_to<int>;
  o.attributes();
};

// Calls f.template operator()<O>() for every operator O of the catalog, in order.
constexpr void for_each_op(auto&& f) {
  [&]<class... Os>(std::type_identity<std::variant<Os...>>) {
    static_assert((Operator<Os> && ...), "an entry of Op is not an Operator");
    (f.template operator()<Os>(), ...);
  }(std::type_identity<Op>{});
}

inline std::string_view name(const Op& op) {
  return std::visit([](const auto& o) { return std::remove_cvref_t<decltype(o)>::name; }, op);
}

inline int arity(const Op& op) {
  return std::visit([](const auto& o) { return std::remove_cvref_t<decltype(o)>::arity; }, op);
}

// The operator's scalar body in algebra A.  `in` has arity(op) values.
template <Algebra A>
typename A::Value apply(A& a, const Op& op, std::span<const typename A::Value> in) {
  return std::visit(
      [&]<class O>(const O& o) -> typename A::Value {
        return [&]<size_t... I>(std::index_sequence<I...>) { return o.apply(a, in[I]...); }
        (std::make_index_sequence<static_cast<size_t>(O::arity)>{});
      },
      op);
}

}  // namespace sundog
