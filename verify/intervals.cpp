// Plain intervals know that x <= 9 and M <= 9, and so that x - M <= 18; what makes a softmax safe
// is that M is a maximum over values of which x is one.  So each value also carries a name of the
// term that it is, and a maximum the names of what it is taken over; x - M is at most 0 if x is
// among them.  That is pattern matching, unlike verify/ranges.h, which sees through every rewriting
// but only at small sizes: each is used for what it can do.
//
// A narrowing cast that the program writes is a licence, even where it is dropped: who runs the
// program as it stands gets its overflow.  So a candidate may store the value of that name in that
// type, or in a wider one.  Names of a µGraph's terms are those of the program for this: indices
// and reductions along all factors of an axis are named by the axis.
#include "verify/intervals.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/algebra.h"
#include "core/op.h"

namespace sundog::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How a value grows with inputs that have no declared range.
enum class Reach : uint8_t { kBounded, kPower, kExponential };

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ x >> 32;
}

struct Bounds {
  double low = -kInfinity, high = kInfinity;
  Reach reach = Reach::kPower;
  uint64_t name = 0;                    // of the term; equal names, equal terms
  std::vector<uint64_t> parts;          // of a maximum: names of what it is taken over
  std::optional<uint64_t> negated;      // of -x: the name of x
  std::vector<uint64_t> negated_parts;  // of -max(...): the parts
  bool constant = false;
};

double product_of(double x, double y) { return x == 0 || y == 0 ? 0 : x * y; }

Bounds hull(const Bounds& a, const Bounds& b) {
  Bounds r;
  r.low = std::min(a.low, b.low);
  r.high = std::max(a.high, b.high);
  r.reach = std::max(a.reach, b.reach);
  return r;
}

// Scalars as bounds (core/algebra.h).
class BoundsAlgebra {
 public:
  using Value = Bounds;
  double exponent = 0;             // the largest argument of an exp so far
  double denominator = kInfinity;  // the least distance of a divisor from 0

  std::map<uint64_t, double> licences;  // names of what is cast: the least of the types' largest

  explicit BoundsAlgebra(Rounding rounding) : rounding_(rounding) {}

  Bounds constant(const Number& n) const {
    Bounds r;
    r.low = r.high = n.to_double();
    r.reach = Reach::kBounded;
    r.name = mix(std::hash<double>()(r.low), 1);
    r.constant = true;
    return r;
  }
  Bounds add(const Bounds& x, const Bounds& y) const {
    if (y.negated) return difference(x, y.low, y.high, y.reach, *y.negated, y.negated_parts, y);
    if (x.negated) return difference(y, x.low, x.high, x.reach, *x.negated, x.negated_parts, x);
    Bounds r = sum_of(x, y);
    r.name = mix(2, x.name + y.name);
    // max(a) + c is the maximum of a + c, but not of anything that has a name here.
    return r;
  }
  Bounds sub(const Bounds& x, const Bounds& y) const { return add(x, neg(y)); }
  Bounds neg(const Bounds& x) const {
    Bounds r;
    r.low = -x.high;
    r.high = -x.low;
    r.reach = x.reach;
    r.name = mix(3, x.name);
    r.negated = x.name;
    r.negated_parts = x.parts;
    r.constant = x.constant;
    return r;
  }
  Bounds mul(const Bounds& x, const Bounds& y) const {
    Bounds r;
    const double corners[] = {product_of(x.low, y.low), product_of(x.low, y.high),
                              product_of(x.high, y.low), product_of(x.high, y.high)};
    r.low = *std::min_element(std::begin(corners), std::end(corners));
    r.high = *std::max_element(std::begin(corners), std::end(corners));
    if (x.name == y.name) r.low = std::max(r.low, 0.0);
    r.reach = std::max(x.reach, y.reach);
    r.name = mix(4, x.name + y.name);
    const Bounds& factor = x.constant ? x : y;
    const Bounds& other = x.constant ? y : x;
    if (factor.constant && factor.low > 0) {
      for (const uint64_t part : other.parts) r.parts.push_back(mix(4, factor.name + part));
      if (other.negated) r.negated = mix(4, factor.name + *other.negated);
      for (const uint64_t part : other.negated_parts) {
        r.negated_parts.push_back(mix(4, factor.name + part));
      }
    }
    r.constant = x.constant && y.constant;
    return r;
  }
  Bounds div(const Bounds& x, const Bounds& y) {
    denominator = std::min(denominator, y.low > 0 ? y.low : std::max(-y.high, 0.0));
    Bounds inverse;
    inverse.reach = y.reach;
    inverse.name = mix(5, y.name);
    inverse.constant = y.constant;
    if (y.low > 0 || y.high < 0) {
      inverse.low = 1 / y.high;
      inverse.high = 1 / y.low;
      inverse.reach = Reach::kBounded;
    } else if (inverse.reach == Reach::kBounded) {
      inverse.reach = Reach::kPower;
    }
    return mul(x, inverse);
  }
  Bounds exp(const Bounds& x) {
    exponent = std::max(exponent, x.high);
    Bounds r;
    r.low = std::exp(x.low);
    r.high = std::exp(x.high);
    r.reach = std::isfinite(r.high) ? Reach::kBounded : Reach::kExponential;
    r.name = mix(6, x.name);
    return r;
  }
  Bounds log(const Bounds& x) const {
    Bounds r;
    r.low = x.low > 0 ? std::log(x.low) : -kInfinity;
    r.high = x.high > 0 ? std::log(x.high) : kInfinity;
    r.reach = x.reach == Reach::kBounded && x.low > 0 ? Reach::kBounded : Reach::kPower;
    r.name = mix(7, x.name);
    return r;
  }
  Bounds sqrt(const Bounds& x) const {
    Bounds r;
    r.low = std::sqrt(std::max(x.low, 0.0));
    r.high = std::sqrt(std::max(x.high, 0.0));
    r.reach = x.reach;
    r.name = mix(8, x.name);
    return r;
  }
  Bounds max(const Bounds& x, const Bounds& y) const {
    Bounds r;
    r.low = std::max(x.low, y.low);
    r.high = std::max(x.high, y.high);
    r.reach = std::max(x.reach, y.reach);
    r.name = mix(9, x.name + y.name);
    for (const Bounds* each : {&x, &y}) {
      r.parts.push_back(each->name);
      r.parts.insert(r.parts.end(), each->parts.begin(), each->parts.end());
    }
    return r;
  }
  // Rounding is monotone.
  Bounds cast(DType to, const Bounds& x) {
    license(x.name, to);
    if (!keeps_cast(rounding_, to)) return x;
    Bounds r;
    const double low = round_to(to, x.low), high = round_to(to, x.high);
    r.low = std::isnan(low) ? x.low : low;
    r.high = std::isnan(high) ? x.high : high;
    r.reach = std::isfinite(r.low) && std::isfinite(r.high) ? Reach::kBounded : x.reach;
    r.name = mix(mix(18, static_cast<uint64_t>(to)), x.name);
    r.constant = x.constant;
    license(r.name, to);
    return r;
  }
  Bounds call(const Fn& fn, const Bounds& x) const {
    Bounds r;
    if (std::fabs(fn.eval(40)) <= 1 && std::fabs(fn.eval(-40)) <= 1) {  // tanh, erf, sin, cos
      r.low = -1;
      r.high = 1;
      r.reach = Reach::kBounded;
    }
    r.name = mix(mix(10, std::hash<std::string_view>()(fn.name)), x.name);
    return r;
  }
  // `select(m == -inf, 0, m)` is taken from x as m is: where m is -inf so is x, of which it is the
  // maximum, and x less anything finite.
  Bounds choose(Relation relation, const Bounds& l, const Bounds& r, const Bounds& t,
                const Bounds& e) const {
    Bounds result = hull(t, e);
    const bool equal = relation == Relation::kEqual;
    const Bounds &where = equal ? t : e, &elsewhere = equal ? e : t;
    const bool guards = (equal || relation == Relation::kNotEqual) && r.constant &&
                        r.low == -kInfinity && l.name == elsewhere.name && where.constant &&
                        std::isfinite(where.low);
    if (guards) {
      result.name = elsewhere.name;
      result.parts = elsewhere.parts;
      return result;
    }
    result.name = mix(mix(11, l.name), mix(r.name, mix(t.name, e.name)));
    return result;
  }

 private:
  Rounding rounding_;

  void license(uint64_t name, DType to) {
    double& most = licences.emplace(name, kInfinity).first->second;
    most = std::min(most, max_finite(to));
  }

  static Bounds sum_of(const Bounds& x, const Bounds& y) {
    Bounds r;
    r.low = x.low == kInfinity || y.low == kInfinity ? kInfinity : x.low + y.low;
    r.high = x.high == -kInfinity || y.high == -kInfinity ? -kInfinity : x.high + y.high;
    r.reach = std::max(x.reach, y.reach);
    r.constant = x.constant && y.constant;
    return r;
  }
  // x - m, where -m has these bounds.
  static Bounds difference(const Bounds& x, double low, double high, Reach reach, uint64_t m,
                           const std::vector<uint64_t>& parts, const Bounds& minus) {
    Bounds other;
    other.low = low;
    other.high = high;
    other.reach = reach;
    other.constant = minus.constant;
    Bounds r = sum_of(x, other);
    r.name = mix(mix(12, x.name), m);
    const bool below = x.name == m || std::find(parts.begin(), parts.end(), x.name) != parts.end();
    if (below) r.high = std::min(r.high, 0.0);
    return r;
  }
};

// What terms are called in a program, and what is the same in a kernel of one of its µGraphs.
class Naming {
 public:
  Naming() = default;  // of a program
  explicit Naming(const Kernel& kernel) : kernel_(&kernel) {}

  uint64_t of(const IndexExpr& e) const { return hash(Term{IndexTerm{along_axes(e)}}); }
  uint64_t of(const InputTerm& input) const {
    uint64_t name = mix(16, input.tensor);
    for (const IndexExpr& e : input.index) name = mix(name, of(e));
    return name;
  }
  // A part of an axis is called what no axis is.
  uint64_t of(const AxisSet& factors) const {
    uint64_t name = 0;
    for (const AxisId f : factors) {
      if (kernel_ == nullptr) {
        name = mix(name, f);
        continue;
      }
      const AxisId axis = kernel_->factors[f].axis;
      const std::vector<AxisId> all = factors_of(*kernel_, axis);
      if (!factors.contains(AxisSet::of(all))) {
        name = mix(name, kPart + f);
      } else if (f == all.front()) {
        name = mix(name, axis);
      }
    }
    return name;
  }

 private:
  static constexpr AxisId kPart = 1 << 20;

  // The index by axes; factors that are not along a whole axis keep their own, as parts.
  IndexExpr along_axes(const IndexExpr& e) const {
    if (kernel_ == nullptr) return e;
    IndexExpr rest = e, result{e.constant, {}, e.sizes};
    for (const auto& item : e.axes) {
      const Factor& factor = kernel_->factors[item.axis];
      if (item.coefficient % factor.stride != 0) continue;
      const IndexExpr whole =
          axis_index(*kernel_, factor.axis) * (item.coefficient / factor.stride);
      const IndexExpr without = rest - whole;
      if (without.axes.size() + whole.axes.size() != rest.axes.size()) continue;
      rest = without;
      result = result + IndexExpr::of(factor.axis) * (item.coefficient / factor.stride);
    }
    for (const auto& item : rest.axes) {
      result = result + IndexExpr::of(kPart + item.axis) * item.coefficient;
    }
    return result;
  }

  const Kernel* kernel_ = nullptr;
};

// The bounds of the terms of one graph; `leaf` knows those that are read.
class TermBounds {
 public:
  TermBounds(BoundsAlgebra& algebra, const TermGraph& terms, Naming naming,
             std::vector<int64_t> extents, std::vector<int64_t> sizes,
             std::function<Bounds(const Term&)> leaf)
      : algebra_(algebra),
        terms_(terms),
        naming_(naming),
        extents_(std::move(extents)),
        sizes_(std::move(sizes)),
        leaf_(std::move(leaf)) {}

  const Bounds& of(TermId id) {
    const auto known = known_.find(id);
    if (known != known_.end()) return known->second;
    return known_.emplace(id, compute(id)).first->second;
  }

 private:
  Bounds compute(TermId id) {
    const Term& term = terms_[id];
    if (const auto* constant = std::get_if<ConstantTerm>(&term)) {
      return algebra_.constant(constant->value);
    }
    if (const auto* size = std::get_if<SizeTerm>(&term)) {
      return algebra_.constant(Number(sizes_[size->axis]));
    }
    if (const auto* index = std::get_if<IndexTerm>(&term)) return index_of(*index);
    if (const auto* apply = std::get_if<ApplyTerm>(&term)) {
      std::vector<Bounds> in;
      for (const TermId operand : apply->operands) in.push_back(of(operand));
      return sundog::apply(algebra_, apply->op, std::span<const Bounds>(in));
    }
    if (const auto* reduce = std::get_if<ReduceTerm>(&term)) return reduced(*reduce);
    if (const auto* select = std::get_if<SelectTerm>(&term)) {
      Bounds r = hull(of(select->then), of(select->otherwise));
      const uint64_t where = mix(static_cast<uint64_t>(select->condition.relation),
                                 naming_.of(select->condition.expr));
      r.name = mix(mix(17, where), mix(of(select->then).name, of(select->otherwise).name));
      return r;
    }
    if (const auto* compare = std::get_if<CompareTerm>(&term)) {
      return algebra_.choose(compare->relation, of(compare->left), of(compare->right),
                             of(compare->then), of(compare->otherwise));
    }
    return leaf_(term);
  }

  Bounds index_of(const IndexTerm& index) {
    Bounds r;
    r.low = r.high = static_cast<double>(index.index.constant);
    for (const auto& item : index.index.sizes) {
      const double value = static_cast<double>(item.coefficient * sizes_[item.axis]);
      r.low += value;
      r.high += value;
    }
    for (const auto& item : index.index.axes) {
      const double far = static_cast<double>(item.coefficient * (extents_[item.axis] - 1));
      r.low += std::min(far, 0.0);
      r.high += std::max(far, 0.0);
    }
    r.reach = Reach::kBounded;
    r.name = mix(13, naming_.of(index.index));
    return r;
  }

  Bounds reduced(const ReduceTerm& reduce) {
    const Bounds operand = of(reduce.operand);
    Bounds r = operand;
    r.name = mix(14 + static_cast<uint64_t>(reduce.kind), operand.name);
    r.name = mix(r.name, naming_.of(reduce.axes));
    r.parts.clear();
    r.negated.reset();
    r.negated_parts.clear();
    r.constant = false;
    if (reduce.kind == ReduceKind::kMax) {
      r.parts = operand.parts;
      r.parts.push_back(operand.name);
      return r;
    }
    double count = 1;
    for (const AxisId axis : reduce.axes) count *= static_cast<double>(extents_[axis]);
    // Partial sums count too, since an accumulator is used while it grows; all have one element.
    r.low = operand.low >= 0 ? operand.low : product_of(count, operand.low);
    r.high = operand.high <= 0 ? operand.high : product_of(count, operand.high);
    return r;
  }

  BoundsAlgebra& algebra_;
  const TermGraph& terms_;
  const Naming naming_;
  const std::vector<int64_t> extents_, sizes_;
  const std::function<Bounds(const Term&)> leaf_;
  std::map<TermId, Bounds> known_;
};

Bounds input_bounds(const TensorDecl& tensor) {
  Bounds r;
  if (tensor.low) r.low = tensor.low->to_double();
  if (tensor.high) r.high = tensor.high->to_double();
  if (std::isfinite(r.low) && std::isfinite(r.high)) r.reach = Reach::kBounded;
  return r;
}

Bounds named(Bounds bounds, uint64_t name) {
  bounds.name = name;
  return bounds;
}

std::string storage_objection(const Kernel& kernel, const Computation& c, const Bounds& bounds) {
  const double most = max_finite(c.dtype);
  const double largest = std::max(std::fabs(bounds.low), std::fabs(bounds.high));
  if (most > 1e38 || bounds.reach == Reach::kPower) return {};
  if (bounds.reach == Reach::kBounded && largest <= most) return {};
  std::string text = "kernel " + kernel.name + ": '" + c.name + "' is stored as " +
                     std::string(name(c.dtype)) + ", which ends at ";
  char number[64];
  std::snprintf(number, sizeof number, "%.6g", most);
  text += number;
  if (bounds.reach == Reach::kExponential) return text + ", and is an exponential without a bound";
  std::snprintf(number, sizeof number, ", and can reach %.3g", largest);
  return text + number;
}

// All terms of the program, as the algebra then knows them.
void run_program(const Program& program, BoundsAlgebra* algebra) {
  TermBounds bounds(*algebra, program.terms, {}, extents(program), extents(program),
                    [&](const Term& term) {
                      const auto& input = std::get<InputTerm>(term);
                      return named(input_bounds(program.inputs[input.tensor]), Naming().of(input));
                    });
  for (const Output& output : program.outputs) bounds.of(output.value);
}

// The kernels of a µGraph in order, and what their tensors hold.
class GraphBounds {
 public:
  GraphBounds(const MuGraph& graph, const Program& program, Rounding rounding)
      : graph_(graph), algebra_(rounding) {
    BoundsAlgebra written(rounding);
    run_program(program, &written);
    licences_ = std::move(written.licences);
    for (const DeviceTensor& tensor : graph.tensors) {
      const auto input = find_input(program, tensor.decl.name);
      const bool given = tensor.role == TensorRole::kInput && input;
      tensors_.push_back(given ? input_bounds(program.inputs[*input]) : Bounds());
    }
  }

  Extremes run() {
    for (const Kernel& kernel : graph_.kernels) run_kernel(kernel);
    return {algebra_.exponent, algebra_.denominator, overflow_};
  }

 private:
  void run_kernel(const Kernel& kernel) {
    computations_.assign(kernel.computations.size(), {});
    const Naming naming(kernel);
    TermBounds bounds(algebra_, kernel.terms, naming, factor_extents(kernel), axis_extents(graph_),
                      [&](const Term& term) {
                        if (const auto* input = std::get_if<InputTerm>(&term)) {
                          return named(tensors_[input->tensor], naming.of(*input));
                        }
                        return computations_[std::get<LocalTerm>(term).computation];
                      });
    for (uint32_t c = 0; c < kernel.computations.size(); ++c) {
      const Computation& computation = kernel.computations[c];
      computations_[c] = bounds.of(computation.value);
      if (computation.accumulate_into != kNone) {
        Bounds& into = computations_[computation.accumulate_into];
        into = algebra_.add(into, computations_[c]);
      }
      const auto* load = std::get_if<InputTerm>(&kernel.terms[computation.value]);
      const bool as_read = load != nullptr &&
                           is_widening(graph_.tensors[load->tensor].decl.dtype, computation.dtype);
      if (!as_read) object(kernel, computation, computations_[c]);
    }
    written_.clear();
    run_stores(kernel);
  }

  // What is stored in several places is whatever any of them is.
  void run_stores(const Kernel& kernel) {
    for (const Store* store : stores_of(kernel)) {
      const Bounds& value = computations_[store->computation];
      Bounds& tensor = tensors_[store->tensor];
      tensor = written_.insert(store->tensor).second ? value : hull(tensor, value);
      tensor.parts.clear();
      tensor.negated.reset();
      tensor.negated_parts.clear();
      if (graph_.tensors[store->tensor].role != TensorRole::kIntermediate) continue;
      Computation stored = kernel.computations[store->computation];
      stored.dtype = graph_.tensors[store->tensor].decl.dtype;
      object(kernel, stored, tensor);
    }
  }

  void object(const Kernel& kernel, const Computation& c, const Bounds& bounds) {
    const auto licence = licences_.find(bounds.name);
    if (licence != licences_.end() && licence->second <= max_finite(c.dtype)) return;
    if (overflow_.empty()) overflow_ = storage_objection(kernel, c, bounds);
  }

  const MuGraph& graph_;
  BoundsAlgebra algebra_;
  std::vector<Bounds> tensors_, computations_;
  std::set<uint32_t> written_;           // tensors, by this kernel
  std::map<uint64_t, double> licences_;  // of the program, see BoundsAlgebra
  std::string overflow_;
};

}  // namespace

Extremes extremes_of(const Program& program, Rounding rounding) {
  BoundsAlgebra algebra(rounding);
  run_program(program, &algebra);
  return {algebra.exponent, algebra.denominator, {}};
}

Extremes extremes_of(const MuGraph& graph, const Program& program, Rounding rounding) {
  return GraphBounds(graph, program, rounding).run();
}

}  // namespace sundog::verify
