#include "core/text_terms.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/index_limit.h"
#include "core/join.h"
#include "core/text_limits.h"
#include "core/text_suggest.h"

namespace sundog::text {
namespace {

constexpr TermId kMaxTerms = 200'000;

constexpr std::string_view kReductions[] = {"sum", "max",     "min",       "mean",
                                            "var", "softmax", "logsumexp", "rms"};
constexpr std::string_view kForms[] = {"size", "index", "value", "ratio", "select"};

bool is_reduction(std::string_view word) {
  return std::find(std::begin(kReductions), std::end(kReductions), word) != std::end(kReductions);
}

// Words of other systems, and what to do instead.
struct Foreign {
  std::vector<std::string_view> words;
  std::string_view what;  // empty: merely written differently here
  std::string_view hint;
};
const std::vector<Foreign>& foreign_words() {
  static const std::vector<Foreign> words = {
      {{"gather", "scatter", "take", "index_select", "embedding", "one_hot", "bincount"},
       "reads or writes at indices that are data",
       "Sundog covers indices that are affine in the axes only"},
      {{"sort", "argsort", "topk", "argmax", "argmin", "unique", "nonzero", "kthvalue", "median"},
       "sorts or selects by value",
       "sorts and searches are not covered; max[h](x) gives the largest value itself"},
      {{"cumsum", "cumprod", "cummax", "scan", "associative_scan", "prefix_sum", "logcumsumexp"},
       "is a scan",
       "scans are not covered; a masked sum, sum[j](select(j <= i, x[j], 0)), says the same"},
      {{"rand", "randn", "random", "dropout", "bernoulli", "uniform", "normal", "multinomial"},
       "draws random numbers",
       "make the random tensor an input"},
      {{"reshape", "view", "transpose", "permute", "flatten", "squeeze", "unsqueeze", "expand",
        "broadcast", "rearrange"},
       "",
       "axes have names: no operator is needed to move them; factor one with split"},
      {{"matmul", "mm", "bmm", "dot", "einsum", "linear", "tensordot"},
       "",
       "write a product and a sum over the common axis: sum[k](a * b)"},
      {{"where", "if", "ifelse"}, "", "write select(condition, a, b)"},
      {{"concat", "cat", "stack", "slice", "roll", "flip", "pad"},
       "",
       "write an index: x[i + 1], or select(i < a, x[i], y[i - a])"},
      {{"layernorm", "layer_norm", "rmsnorm", "rms_norm", "batchnorm"},
       "",
       "write it out with mean[h](x) and rsqrt, or rms[h](x, eps)"},
  };
  return words;
}

// How an operator is written; a struct of the catalog says so only if it is no function.
template <class O>
constexpr op::Notation notation_of() {
  if constexpr (requires { O::notation; }) {
    return O::notation;
  } else {
    return op::Notation::kFunction;
  }
}

std::vector<std::string> function_names() {
  std::vector<std::string> names(std::begin(kForms), std::end(kForms));
  names.insert(names.end(), std::begin(kReductions), std::end(kReductions));
  for_each_op([&]<class O>() {
    if (notation_of<O>() == op::Notation::kFunction) names.emplace_back(O::name);
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool read_attribute(const Expr& e, Number& to) {
  const auto number = literal(e);
  if (number) to = *number;
  return number.has_value();
}

bool read_attribute(const Expr& e, DType& to) {
  const auto dtype = e.is_plain_name() ? parse_dtype(e.text) : std::nullopt;
  if (dtype) to = *dtype;
  return dtype.has_value();
}

bool is_index_side(const Expr& e, const std::function<bool(std::string_view)>& is_index) {
  switch (e.kind) {
    case Expr::Kind::kNumber: {
      const auto number = Number::parse(e.text);
      return number && number->is_integer();
    }
    case Expr::Kind::kName:
      if (e.is_plain_name()) return is_index(e.text);
      return e.text == "size" && !e.has_index && e.args.size() == 1 && e.args[0].is_plain_name();
    case Expr::Kind::kNegate:
      return is_index_side(e.args[0], is_index);
    case Expr::Kind::kBinary:
      return (e.text == "+" || e.text == "-" || e.text == "*") &&
             is_index_side(e.args[0], is_index) && is_index_side(e.args[1], is_index);
    case Expr::Kind::kCompare:
      return false;
  }
  return false;
}

// Coefficients stay far from overflow, whatever is added or multiplied next.
constexpr int64_t kMaxCoefficient = int64_t{1} << 53;

int64_t magnitude(const IndexExpr& e) {
  int64_t largest = std::abs(e.constant);
  for (const auto* items : {&e.axes, &e.sizes}) {
    for (const auto& item : *items) largest = std::max(largest, std::abs(item.coefficient));
  }
  return largest;
}

// What is said of an index that the emitted code could not compute.
void fail_reach(Diagnostics& diagnostics, Place at, double reach) {
  char size[32];
  std::snprintf(size, sizeof size, "%.3g", reach);
  diagnostics.fail(at,
                   "this index may reach " + std::string(size) +
                       " and kernels compute indices in 32 bits, up to " +
                       std::to_string(kMostIndex),
                   "make its numbers or the extents of its axes smaller, or split an axis",
                   ErrorCode::kUnsupported);
}

}  // namespace

bool is_index_condition(const Expr& compare,
                        const std::function<bool(std::string_view)>& is_index) {
  return compare.kind == Expr::Kind::kCompare && is_index_side(compare.args[0], is_index) &&
         is_index_side(compare.args[1], is_index);
}

std::optional<Number> literal(const Expr& e) {
  if (e.kind == Expr::Kind::kNumber) return Number::parse(e.text);
  if (e.kind == Expr::Kind::kNegate && e.args[0].kind == Expr::Kind::kNumber &&
      !e.args[0].parenthesised) {
    return Number::parse("-" + e.args[0].text);
  }
  if (e.kind == Expr::Kind::kName && e.text == "ratio" && !e.has_index && e.args.size() == 2) {
    const auto a = literal(e.args[0]), b = literal(e.args[1]);
    if (!a || !b || !a->is_integer() || !b->is_integer()) return std::nullopt;
    if (a->exponent() != 0 || b->exponent() != 0 || b->numerator() == 0) return std::nullopt;
    return Number::ratio(a->numerator(), b->numerator());
  }
  return std::nullopt;
}

TermId TermBuilder::push(Term term) {
  if (scope_.terms().size() >= kMaxTerms) {
    diagnostics_.fail(at_, "the program has more than " + std::to_string(kMaxTerms) + " terms",
                      "shifted reads of shifted reads multiply", ErrorCode::kLimit);
  }
  return diagnostics_.failed() ? nothing() : scope_.terms().push(std::move(term));
}

TermId TermBuilder::push(Op op, std::vector<TermId> operands) {
  return push(Term(ApplyTerm{std::move(op), std::move(operands)}));
}

namespace {

// A number that is another one in the arithmetic of kernels.
void warn_of_range(Diagnostics& diagnostics, const Number& number, Place at) {
  const double size = std::fabs(number.to_double());
  if (!number.is_infinite() && size > std::numeric_limits<float>::max()) {
    diagnostics.warn(at, "this number is infinite in f32, in which kernels compute",
                     "infinity is written inf");
  }
  constexpr double kLeast = std::numeric_limits<float>::denorm_min();
  if (size <= kLeast / 2 && number != Number(0)) {
    diagnostics.warn(at, "this number is 0 in f32, in which kernels compute");
  }
}

}  // namespace

TermId TermBuilder::value(const Expr& e, AxisSet bound) {
  if (diagnostics_.failed()) return nothing();
  at_ = e.at;
  if (const auto number = literal(e)) {
    warn_of_range(diagnostics_, *number, e.at);
    return push(ConstantTerm{*number});
  }
  switch (e.kind) {
    case Expr::Kind::kNumber:
      diagnostics_.fail(e.at, "the number " + excerpt(e.text) + " cannot be kept exactly",
                        "constants have at most 18 significant digits and exponents to 1000");
      return nothing();
    case Expr::Kind::kName:
      return name(e, bound);
    case Expr::Kind::kNegate:
      return push(op::Neg{}, {value(e.args[0], bound)});
    case Expr::Kind::kBinary:
      return binary(e, bound);
    case Expr::Kind::kCompare:
      diagnostics_.fail(e.at, kNoValue, kWhereConditionsStand);
      return nothing();
  }
  return nothing();
}

TermId TermBuilder::binary(const Expr& e, AxisSet bound) {
  const TermId left = value(e.args[0], bound);
  if (e.text == "^") {
    if (const auto exponent = literal(e.args[1])) return push(op::Pow{*exponent}, {left});
    diagnostics_.fail(e.args[1].at, "an exponent must be a number",
                      "write exp(b * log(a)) for a variable one");
    return nothing();
  }
  const TermId right = value(e.args[1], bound);
  const auto* divisor = std::get_if<ConstantTerm>(&scope_.terms()[right]);
  if (e.text == "/" && divisor != nullptr && divisor->value == Number(0) &&
      !diagnostics_.failed()) {
    diagnostics_.fail(e.args[1].at, "a division by zero has no value",
                      "guard a divisor that can be zero: select(x == 0, 0, 1 / x)");
  }
  TermId result = kNoTerm;
  for_each_op([&]<class O>() {
    if constexpr (notation_of<O>() == op::Notation::kInfix) {
      if (O::symbol == e.text && !diagnostics_.failed()) result = push(O{}, {left, right});
    }
  });
  return result == kNoTerm ? nothing() : result;
}

TermId TermBuilder::name(const Expr& e, AxisSet bound) {
  if (e.has_index && (e.has_args || is_reduction(e.text)) && !e.device) return reduction(e, bound);
  if (e.has_args) return call(e, bound);
  return scope_.read(e, bound, guards_, *this);
}

bool TermBuilder::wants(const Expr& e, size_t count, std::string_view form) {
  if (e.args.size() == count) return true;
  diagnostics_.fail(e.at,
                    e.text + " takes " + std::to_string(count) +
                        (count == 1 ? " argument, not " : " arguments, not ") +
                        std::to_string(e.args.size()),
                    "write " + std::string(form));
  return false;
}

std::vector<AxisId> TermBuilder::axis_list(const std::vector<Ident>& names) {
  std::vector<AxisId> result;
  AxisSet seen;
  for (const Ident& ident : names) {
    for (AxisId axis : scope_.axes(ident)) {
      if (diagnostics_.failed()) return {};
      if (seen.has(axis)) {
        diagnostics_.fail(ident.at, "the axis '" + ident.text + "' stands twice in the list");
        return {};
      }
      seen.insert(axis);
      result.push_back(axis);
    }
  }
  return result;
}

TermId TermBuilder::mean(const std::vector<Ident>& names, AxisSet axes, TermId operand) {
  const TermId total = push(ReduceTerm{ReduceKind::kSum, axes, operand});
  TermId count = kNoTerm;
  for (const Ident& ident : names) {
    const TermId size = scope_.size(ident);
    count = count == kNoTerm ? size : push(op::Mul{}, {count, size});
  }
  return count == kNoTerm ? total : push(op::Div{}, {total, count});
}

TermId TermBuilder::reduction(const Expr& e, AxisSet bound) {
  if (!is_reduction(e.text)) return unknown_function(e);
  const bool takes_eps = e.text == "rms";
  if (!e.has_args || !(takes_eps && e.args.size() == 2)) {
    if (!wants(e, 1, e.text + "[h](x)" + (takes_eps ? " or rms[h](x, eps)" : ""))) return nothing();
  }
  if (e.index.empty()) {
    diagnostics_.fail(e.at, e.text + "[] reduces no axis",
                      "write " + e.text + "[h](x) with the axes in brackets");
    return nothing();
  }
  std::vector<Ident> names;
  for (const Expr& axis : e.index) {
    if (!axis.is_plain_name()) {
      diagnostics_.fail(axis.at, "expected the name of an axis to reduce");
      return nothing();
    }
    names.push_back({axis.text, axis.at});
  }
  AxisSet axes;
  for (AxisId axis : axis_list(names)) axes.insert(axis);
  const int hidden = guards_.hide(axes);
  const TermId x = value(e.args[0], bound | axes);
  for (int i = 0; i < hidden; ++i) guards_.pop();
  if (diagnostics_.failed()) return nothing();
  if (e.text == "sum") return push(ReduceTerm{ReduceKind::kSum, axes, x});
  if (e.text == "max") return push(ReduceTerm{ReduceKind::kMax, axes, x});
  if (e.text == "min") {
    const TermId negated = push(op::Neg{}, {x});
    return push(op::Neg{}, {push(ReduceTerm{ReduceKind::kMax, axes, negated})});
  }
  if (e.text == "mean") return mean(names, axes, x);
  if (e.text == "var") {
    const TermId centred = push(op::Sub{}, {x, mean(names, axes, x)});
    return mean(names, axes, push(op::Mul{}, {centred, centred}));
  }
  if (e.text == "softmax" || e.text == "logsumexp") {
    const TermId top = push(ReduceTerm{ReduceKind::kMax, axes, x});
    const TermId p = push(op::Exp{}, {push(op::Sub{}, {x, top})});
    const TermId total = push(ReduceTerm{ReduceKind::kSum, axes, p});
    if (e.text == "softmax") return push(op::Div{}, {p, total});
    return push(op::Add{}, {top, push(op::Log{}, {total})});
  }
  TermId square = mean(names, axes, push(op::Mul{}, {x, x}));
  if (e.args.size() == 2) square = push(op::Add{}, {square, value(e.args[1], bound)});
  return push(op::Mul{}, {x, push(op::Rsqrt{}, {square})});
}

TermId TermBuilder::call(const Expr& e, AxisSet bound) {
  if (e.device) {
    diagnostics_.fail(e.at, "'@" + e.text + "' is a tensor, not a function");
    return nothing();
  }
  if (e.text == "size") {
    if (!wants(e, 1, "size(h)")) return nothing();
    if (e.args[0].is_plain_name()) return scope_.size({e.args[0].text, e.args[0].at});
    diagnostics_.fail(e.args[0].at, "size takes the name of an axis", "write size(h)");
    return nothing();
  }
  if (e.text == "index") {
    if (!wants(e, 1, "index(i + 1)")) return nothing();
    IndexExpr expr = index(e.args[0], bound);
    check_reach(e.args[0].at, expr);
    return push(IndexTerm{std::move(expr)});
  }
  if (e.text == "value") return wants(e, 1, "value(a)") ? value(e.args[0], bound) : nothing();
  if (e.text == "select") return select(e, bound);
  if (e.text == "ratio") {
    diagnostics_.fail(e.at, "ratio takes two integers, the second not 0", "write ratio(1, 3)");
    return nothing();
  }
  bool known = false;
  const TermId result = operation(e, bound, &known);
  if (known) return result;
  if (is_reduction(e.text)) {
    diagnostics_.fail(e.at, e.text + " needs the axes to reduce",
                      "write " + e.text + "[h](x) with the axes in brackets");
    return nothing();
  }
  return unknown_function(e);
}

TermId TermBuilder::operation(const Expr& e, AxisSet bound, bool* known) {
  TermId result = kNoTerm;
  for_each_op([&]<class O>() {
    if (*known || notation_of<O>() != op::Notation::kFunction || e.text != O::name) return;
    *known = true;
    O op;
    constexpr size_t kCount =
        static_cast<size_t>(O::arity) + std::tuple_size_v<decltype(op.attributes())>;
    if (e.args.size() != kCount && is_reduction(e.text) && e.args.size() == 1) {
      diagnostics_.fail(e.at, e.text + " of one value needs the axes to reduce",
                        "write " + e.text + "[h](x) with the axes in brackets");
      return;
    }
    if (!wants(e, kCount, std::string(O::name) + " with its operands, then its attributes")) return;
    std::vector<TermId> operands;
    for (size_t i = 0; i < static_cast<size_t>(O::arity); ++i) {
      operands.push_back(value(e.args[i], bound));
    }
    size_t at = static_cast<size_t>(O::arity);
    const auto read = [&](auto& attribute) {
      if (!read_attribute(e.args[at], attribute)) {
        diagnostics_.fail(e.args[at].at, "argument " + std::to_string(at + 1) + " of " + e.text +
                                             " must be a literal number or a type");
      }
      ++at;
    };
    std::apply([&](auto&... attribute) { (read(attribute), ...); }, op.attributes());
    if (!diagnostics_.failed()) result = push(std::move(op), std::move(operands));
  });
  return result == kNoTerm ? nothing() : result;
}

TermId TermBuilder::unknown_function(const Expr& e) {
  for (const Foreign& foreign : foreign_words()) {
    if (std::find(foreign.words.begin(), foreign.words.end(), e.text) == foreign.words.end()) {
      continue;
    }
    const std::string message =
        foreign.what.empty()
            ? "there is no operator '" + e.text + "'"
            : "'" + e.text + "' " + std::string(foreign.what) + ", which Sundog does not cover";
    diagnostics_.fail(e.at, message, std::string(foreign.hint),
                      foreign.what.empty() ? ErrorCode::kBadInput : ErrorCode::kUnsupported);
    return nothing();
  }
  const auto guess = nearest(e.text, function_names());
  diagnostics_.fail(
      e.at, "unknown function '" + e.text + "'",
      guess ? "did you mean '" + *guess + "'?" : "functions: " + join(function_names()));
  return nothing();
}

TermId TermBuilder::select(const Expr& e, AxisSet bound) {
  if (!wants(e, 3, "select(condition, a, b)")) return nothing();
  const Expr& test = e.args[0];
  if (test.kind != Expr::Kind::kCompare) {
    diagnostics_.fail(test.at, "the first argument of select must be a condition",
                      "write a comparison: select(i < 4, a, b) or select(x < 0, a, b)");
    return nothing();
  }
  const auto branch = [&](const Expr& x, const IndexCondition* guard, bool holds) {
    guard == nullptr ? guards_.push_unknown() : guards_.push(*guard, holds);
    const TermId result = value(x, bound);
    guards_.pop();
    return result;
  };
  if (is_index_condition(test, [&](std::string_view n) { return scope_.is_index_name(n); })) {
    IndexCondition test_index = condition(test, bound);
    const TermId then = branch(e.args[1], &test_index, true);
    const TermId otherwise = branch(e.args[2], &test_index, false);
    return push(SelectTerm{std::move(test_index), then, otherwise});
  }
  TermId left = value(test.args[0], bound), right = value(test.args[1], bound);
  if (test.text[0] == '>') std::swap(left, right);
  const Relation relation = test.text == "=="       ? Relation::kEqual
                            : test.text == "!="     ? Relation::kNotEqual
                            : test.text.size() == 2 ? Relation::kLessEqual
                                                    : Relation::kLess;
  const TermId then = branch(e.args[1], nullptr, true);
  const TermId otherwise = branch(e.args[2], nullptr, false);
  return push(CompareTerm{relation, left, right, then, otherwise});
}

IndexCondition TermBuilder::condition(const Expr& e, AxisSet bound) {
  if (e.kind != Expr::Kind::kCompare) {
    diagnostics_.fail(e.at, "expected a condition on indices, such as i < 4");
    return {};
  }
  IndexExpr left = index(e.args[0], bound), right = index(e.args[1], bound);
  if (e.text[0] == '>') std::swap(left, right);
  const Relation relation = e.text == "=="       ? Relation::kEqual
                            : e.text == "!="     ? Relation::kNotEqual
                            : e.text.size() == 2 ? Relation::kLessEqual
                                                 : Relation::kLess;
  check_reach(e.at, left - right);
  return {left - right, relation};
}

void TermBuilder::check_reach(Place at, const IndexExpr& index) {
  if (diagnostics_.failed()) return;
  const double reach = scope_.reach(index);
  if (reach > static_cast<double>(kMostIndex)) fail_reach(diagnostics_, at, reach);
}

void fail_numbers(Diagnostics& diagnostics, Place at) {
  diagnostics.fail(at, "the numbers in this index are too large",
                   "indices of indices multiply; they are integers of at most 2^31");
}

void check_substituted(const Expr& name, const TermGraph& terms, TermId first,
                       const std::vector<int64_t>& extents, Diagnostics& diagnostics) {
  if (!coefficients_fit(terms, first)) {
    diagnostics.fail(name.at, "the numbers in the indices of '" + name.text + "' grow too large",
                     "indices of indices multiply; they are at most 2^31");
  }
  const double reach = index_reach(terms, first, extents, extents);
  if (reach > static_cast<double>(kMostIndex)) fail_reach(diagnostics, name.at, reach);
}

IndexExpr TermBuilder::index(const Expr& e, AxisSet bound) {
  if (diagnostics_.failed()) return {};
  switch (e.kind) {
    case Expr::Kind::kNumber: {
      const auto number = Number::parse(e.text);
      if (number && number->is_integer() && number->exponent() == 0 &&
          number->numerator() <= kMaxCoefficient) {
        return IndexExpr::of_constant(number->numerator());
      }
      diagnostics_.fail(e.at, "an index is made of integers, not of " + excerpt(e.text));
      return {};
    }
    case Expr::Kind::kName:
      if (e.is_plain_name()) return scope_.index({e.text, e.at}, bound);
      if (e.text == "size" && !e.has_index && e.args.size() == 1 && e.args[0].is_plain_name()) {
        return scope_.extent({e.args[0].text, e.args[0].at});
      }
      diagnostics_.fail(
          e.at, "'" + e.text + "' makes the index depend on data",
          "indices are affine in the axes: gather and scatter by data are not covered",
          ErrorCode::kUnsupported);
      return {};
    case Expr::Kind::kNegate:
      return index(e.args[0], bound) * -1;
    case Expr::Kind::kBinary:
      break;
    case Expr::Kind::kCompare:
      diagnostics_.fail(e.at, "a condition is no index");
      return {};
  }
  const IndexExpr a = index(e.args[0], bound), b = index(e.args[1], bound);
  if (diagnostics_.failed()) return {};
  IndexExpr result;
  if (e.text == "+" || e.text == "-") {
    result = e.text == "+" ? a + b : a - b;
  } else {
    const bool a_constant = a.axes.empty() && a.sizes.empty();
    const bool b_constant = b.axes.empty() && b.sizes.empty();
    if (e.text != "*" || (!a_constant && !b_constant)) {
      diagnostics_.fail(e.at, "an index must be affine: '" + e.text + "' of two indices is not",
                        "integers times axes may be added; split an axis to divide it");
      return {};
    }
    const long double product = static_cast<long double>(magnitude(a)) * magnitude(b);
    if (product <= kMaxCoefficient) {
      result = a_constant ? b * a.constant : a * b.constant;
    } else {
      result.constant = kMaxCoefficient + 1;
    }
  }
  if (magnitude(result) > kMaxCoefficient) {
    diagnostics_.fail(e.at, "the numbers in this index are too large",
                      "they are integers of at most 2^53");
    return {};
  }
  return result;
}

std::optional<int64_t> integer_value(
    const Expr& e, const std::function<std::optional<int64_t>(const Ident&)>& value_of,
    Diagnostics& diagnostics) {
  if (diagnostics.failed()) return std::nullopt;
  const auto number = e.kind == Expr::Kind::kName ? std::nullopt : literal(e);
  if (number && number->is_integer() && number->exponent() == 0) {
    return number->numerator();
  }
  if (e.is_plain_name()) return value_of({e.text, e.at});
  int64_t result = 0;
  if (e.kind == Expr::Kind::kNegate) {
    const auto a = integer_value(e.args[0], value_of, diagnostics);
    if (!a) return std::nullopt;
    if (!__builtin_sub_overflow(int64_t{0}, *a, &result)) return result;
  } else if (e.kind == Expr::Kind::kBinary && e.text != "^") {
    const auto a = integer_value(e.args[0], value_of, diagnostics);
    const auto b = integer_value(e.args[1], value_of, diagnostics);
    if (!a || !b) return std::nullopt;
    if (e.text == "/") {
      if (*b != 0 && *b != -1 && *a % *b == 0) return *a / *b;
      diagnostics.fail(e.at, std::to_string(*a) + " / " + std::to_string(*b) + " is no integer");
      return std::nullopt;
    }
    const bool overflow = e.text == "+"   ? __builtin_add_overflow(*a, *b, &result)
                          : e.text == "-" ? __builtin_sub_overflow(*a, *b, &result)
                                          : __builtin_mul_overflow(*a, *b, &result);
    if (!overflow) return result;
  } else {
    diagnostics.fail(e.at, "expected an integer expression",
                     "integers and earlier parameters, with + - * /");
    return std::nullopt;
  }
  diagnostics.fail(e.at, "the value does not fit into 64 bits");
  return std::nullopt;
}

std::string integer_text(const Expr& e) {
  std::string result;
  if (e.kind == Expr::Kind::kNegate) {
    result = "-" + integer_text(e.args[0]);
  } else if (e.kind == Expr::Kind::kBinary) {
    result = integer_text(e.args[0]) + " " + e.text + " " + integer_text(e.args[1]);
  } else {
    result = e.text;
  }
  return e.parenthesised ? "(" + result + ")" : result;
}

}  // namespace sundog::text
