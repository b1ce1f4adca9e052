// An algebra is one meaning of scalars.  The operator catalog (core/op.h) writes the body of each
// operator once, as a template over an algebra; float values, field values, views, intervals, work
// counts and CUDA text are algebras, each defined in the folder that owns that meaning.
//
// The primitives are few and closed:
//
//   constant(Number)   an exact constant (may be -inf or +inf)
//   add mul div        arithmetic of real numbers
//   exp log sqrt       with their laws: exp(x + y) = exp x * exp y, sqrt(x)^2 = x, ...
//   max                of two values; -inf is its unit
//   cast(DType, x)     rounding to a storage type
//   call(Fn, x)        a function that no axiom mentions: equal arguments give equal results
//   choose(rel, l, r, t, e)   t where `l rel r`, else e
//
// sub and neg are derived (`sub(a, b) = add(a, mul(-1, b))`) unless the algebra defines them.
#pragma once

#include <concepts>
#include <string_view>

#include "core/axis.h"
#include "core/dtype.h"
#include "core/number.h"

namespace sundog {

// A scalar function that no axiom mentions.
struct Fn {
  std::string_view name;   // in program text
  std::string_view cuda;   // function of one float in CUDA C++ (codegen/primitives.cuh)
  double (*eval)(double);  // its value
  double flops;            // instruction slots of the special function unit that it costs
};

template <class A>
concept Algebra = requires(A& a, typename A::Value x, const Fn& fn, const Number& n, DType t) {
  { a.constant(n) } -> std::same_as<typename A::Value>;
  { a.add(x, x) } -> std::same_as<typename A::Value>;
  { a.mul(x, x) } -> std::same_as<typename A::Value>;
  { a.div(x, x) } -> std::same_as<typename A::Value>;
  { a.exp(x) } -> std::same_as<typename A::Value>;
  { a.log(x) } -> std::same_as<typename A::Value>;
  { a.sqrt(x) } -> std::same_as<typename A::Value>;
  { a.max(x, x) } -> std::same_as<typename A::Value>;
  { a.cast(t, x) } -> std::same_as<typename A::Value>;
  { a.call(fn, x) } -> std::same_as<typename A::Value>;
  { a.choose(Relation::kLess, x, x, x, x) } -> std::same_as<typename A::Value>;
};

template <class A>
auto negate(A& a, const typename A::Value& x) {
  if constexpr (requires { a.neg(x); }) {
    return a.neg(x);
  } else {
    return a.mul(a.constant(Number(-1)), x);
  }
}

template <class A>
auto subtract(A& a, const typename A::Value& x, const typename A::Value& y) {
  if constexpr (requires { a.sub(x, y); }) {
    return a.sub(x, y);
  } else {
    return a.add(x, negate(a, y));
  }
}

}  // namespace sundog
