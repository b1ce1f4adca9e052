// A tape is made by the operators' own bodies (core/op.h) in an algebra whose values are positions
// on the tape, so it knows only primitives.  It runs in blocks of lanes along one axis.  An
// instruction that does not vary along that axis is a scalar; one that does not vary with a loop is
// not repeated in it.  A sum of scalar times vector, the inner loop of every matrix product, is
// done without a temporary; the reduced axis is cut so that the block of the vector operand stays
// in cache while the free loops run over it.
#include "core/evaluate_tape.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "core/check.h"
#include "core/op.h"

namespace sundog::evaluating {
namespace {

constexpr int64_t kLanes = 512;
constexpr int64_t kReducedBlock = 64;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ---- making a tape
// ---------------------------------------------------------------------------------

struct Recorder {
  using Value = uint32_t;
  std::vector<Instruction>& tape;
  Rounding rounding;
  size_t axis_count;

  Value push(Instruction i) {
    for (const uint32_t operand : i.in) {
      if (operand < tape.size()) i.axes |= uses(i) ? tape[operand].axes : AxisSet();
    }
    tape.push_back(std::move(i));
    return static_cast<Value>(tape.size() - 1);
  }
  static bool uses(const Instruction& i) {
    return i.code != Code::kConstant && i.code != Code::kIndex && i.code != Code::kRead;
  }
  Value make(Code code, Value a, Value b, Value c, Value d) {
    Instruction i;
    i.code = code;
    i.in[0] = a, i.in[1] = b, i.in[2] = c, i.in[3] = d;
    return push(std::move(i));
  }
  Value unary(Code code, Value a) { return make(code, a, a, a, a); }
  Value binary(Code code, Value a, Value b) { return make(code, a, b, a, a); }

  Value number(double x) {
    Instruction i;
    i.value = x;
    return push(std::move(i));
  }
  Value constant(const Number& n) { return number(n.to_double()); }
  Value add(Value a, Value b) { return binary(Code::kAdd, a, b); }
  Value sub(Value a, Value b) { return binary(Code::kSub, a, b); }
  Value mul(Value a, Value b) { return binary(Code::kMul, a, b); }
  Value div(Value a, Value b) { return binary(Code::kDiv, a, b); }
  Value neg(Value a) { return unary(Code::kNeg, a); }
  Value exp(Value a) { return unary(Code::kExp, a); }
  Value log(Value a) { return unary(Code::kLog, a); }
  Value sqrt(Value a) { return unary(Code::kSqrt, a); }
  Value max(Value a, Value b) { return binary(Code::kMax, a, b); }
  Value cast(DType to, Value a) {
    if (!keeps_cast(rounding, to)) return a;
    const Value v = unary(Code::kCast, a);
    tape[v].dtype = to;
    return v;
  }
  Value call(const Fn& fn, Value a) {
    const Value v = unary(Code::kCall, a);
    tape[v].fn = &fn;
    return v;
  }
  Value choose(Relation relation, Value l, Value r, Value t, Value e) {
    const Value v = make(Code::kChoose, l, r, t, e);
    tape[v].relation = relation;
    return v;
  }
};

class Compiler {
 public:
  Compiler(const Program& program, Rounding rounding, const std::vector<Range>& ranges,
           const std::function<std::optional<Leaf>(TermId)>& leaf, std::vector<Instruction>* tape)
      : program_(program),
        sizes_(extents(program)),
        ranges_(ranges),
        leaf_(leaf),
        recorder_{*tape, rounding, sizes_.size()} {}

  uint32_t value(TermId id) {
    const auto known = done_.find(id);
    if (known != done_.end()) return known->second;
    const uint32_t v = make(id);
    done_.emplace(id, v);
    return v;
  }

 private:
  Affine affine(const IndexExpr& e) const {
    Affine a;
    a.coefficients.assign(sizes_.size(), 0);
    a.constant = e.constant;
    for (const auto& item : e.axes) a.coefficients[item.axis] += item.coefficient;
    for (const auto& item : e.sizes) a.constant += item.coefficient * sizes_[item.axis];
    return a;
  }

  uint32_t make(TermId id) {
    if (const std::optional<Leaf> leaf = leaf_(id)) return read(*leaf);
    const Term& term = program_.terms[id];
    if (const auto* constant = std::get_if<ConstantTerm>(&term)) {
      return recorder_.constant(constant->value);
    }
    if (const auto* size = std::get_if<SizeTerm>(&term)) {
      return recorder_.number(static_cast<double>(sizes_[size->axis]));
    }
    if (const auto* index = std::get_if<IndexTerm>(&term))
      return indexed(index->index, Code::kIndex);
    if (const auto* apply_term = std::get_if<ApplyTerm>(&term)) {
      std::vector<uint32_t> in;
      for (const TermId operand : apply_term->operands) in.push_back(value(operand));
      return apply(recorder_, apply_term->op, std::span<const uint32_t>(in));
    }
    if (const auto* select = std::get_if<SelectTerm>(&term)) {
      const uint32_t then = value(select->then), otherwise = value(select->otherwise);
      Instruction i;
      i.code = Code::kSelect;
      i.in[0] = then, i.in[1] = otherwise, i.in[2] = then, i.in[3] = then;
      i.affine = affine(select->condition.expr);
      i.relation = select->condition.relation;
      i.axes = select->condition.expr.axis_set();
      return recorder_.push(std::move(i));
    }
    const auto* compare = std::get_if<CompareTerm>(&term);
    SUNDOG_CHECK(compare != nullptr);
    const uint32_t left = value(compare->left), right = value(compare->right);
    return recorder_.choose(compare->relation, left, right, value(compare->then),
                            value(compare->otherwise));
  }

  uint32_t indexed(const IndexExpr& e, Code code) {
    Instruction i;
    i.code = code;
    i.affine = affine(e);
    i.axes = e.axis_set();
    return recorder_.push(std::move(i));
  }

  uint32_t read(const Leaf& leaf) {
    Instruction i;
    i.code = Code::kRead;
    i.source = leaf.source;
    i.affine.coefficients.assign(sizes_.size(), 0);
    for (size_t d = 0; d < leaf.index.size(); ++d) {
      const Affine at = affine(leaf.index[d]);
      const int64_t stride = leaf.source->strides[d];
      i.affine.constant += stride * at.constant;
      int64_t low = at.constant, high = at.constant;
      for (size_t axis = 0; axis < sizes_.size(); ++axis) {
        const int64_t c = at.coefficients[axis];
        i.affine.coefficients[axis] += stride * c;
        if (c == 0) continue;
        i.axes.insert(static_cast<AxisId>(axis));
        const int64_t first = c * ranges_[axis].begin, last = c * (ranges_[axis].end - 1);
        low += std::min(first, last);
        high += std::max(first, last);
      }
      if (low < 0 || high >= leaf.source->extents[d]) {
        i.checks.emplace_back(at, leaf.source->extents[d]);
      }
    }
    return recorder_.push(std::move(i));
  }

  const Program& program_;
  const std::vector<int64_t> sizes_;
  const std::vector<Range>& ranges_;
  const std::function<std::optional<Leaf>(TermId)>& leaf_;
  Recorder recorder_;
  std::unordered_map<TermId, uint32_t> done_;
};

// ---- running it
// ------------------------------------------------------------------------------------

// to += scale * from.
template <class T>
void add_scaled_plain(double* to, double scale, const T* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += scale * static_cast<double>(from[i]);
}

#if defined(__x86_64__) && defined(__GNUC__)
template <class T>
__attribute__((target("avx2,fma"), optimize("O3"))) void add_scaled_wide(double* to, double scale,
                                                                         const T* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += scale * static_cast<double>(from[i]);
}
template <class T>
void add_scaled(double* to, double scale, const T* from, int64_t n) {
  static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  wide ? add_scaled_wide(to, scale, from, n) : add_scaled_plain(to, scale, from, n);
}
#else
template <class T>
void add_scaled(double* to, double scale, const T* from, int64_t n) {
  add_scaled_plain(to, scale, from, n);
}
#endif

class Machine {
 public:
  Machine(const Nest& nest, double* out) : nest_(nest), out_(out), index_(nest.ranges.size(), 0) {
    const size_t n = nest.tape.size();
    scalar_.resize(n, 0);
    vector_.resize(n, nullptr);
    single_.resize(n, nullptr);
    lane_step_.resize(n, 0);
    for (size_t i = 0; i < n; ++i) {
      varies_.push_back(nest.lanes && nest.tape[i].axes.has(*nest.lanes));
      buffers_.emplace_back(varies_[i] ? kLanes : 0);
      if (nest.lanes && !nest.tape[i].affine.coefficients.empty()) {
        lane_step_[i] = nest.tape[i].affine.coefficients[*nest.lanes];
      }
    }
    const Instruction& root = nest.tape.back();
    fused_ = nest.reduce == ReduceKind::kSum && root.code == Code::kMul && n > 1 &&
             nest.precision == Precision::kF64 && varies_[root.in[0]] != varies_[root.in[1]] &&
             is_free(nest.lanes) && nest.to.coefficients[*nest.lanes] == 1;
  }

  void run() {
    if (!nest_.lanes) {
      block(0, 1);
      return;
    }
    const Range all = nest_.ranges[*nest_.lanes];
    for (int64_t begin = all.begin; begin < all.end; begin += kLanes) {
      block(begin, std::min(kLanes, all.end - begin));
    }
  }

 private:
  bool is_free(std::optional<AxisId> axis) const {
    return axis && std::find(nest_.free.begin(), nest_.free.end(), *axis) != nest_.free.end();
  }

  // All loops for one block of lanes; the outermost bound loop in pieces.
  void block(int64_t begin, int64_t count) {
    count_ = count;
    if (nest_.lanes) index_[*nest_.lanes] = begin;
    std::vector<AxisId> order;
    for (const AxisId axis : nest_.free) {
      if (axis != nest_.lanes) order.push_back(axis);
    }
    const size_t outer = order.size();
    for (const AxisId axis : nest_.bound) {
      if (axis != nest_.lanes) order.push_back(axis);
    }
    std::vector<Range> ranges;
    for (const AxisId axis : order) {
      ranges.push_back(nest_.ranges[axis]);
      if (ranges.back().begin >= ranges.back().end) return;
    }
    plan(order);
    if (outer == order.size()) {
      loops(order, ranges);
      return;
    }
    const Range whole = ranges[outer];
    for (int64_t at = whole.begin; at < whole.end; at += kReducedBlock) {
      ranges[outer] = {at, std::min(whole.end, at + kReducedBlock)};
      loops(order, ranges);
    }
  }

  // Which instructions to repeat when the loop at a position moves, itself or one outside of it.
  void plan(const std::vector<AxisId>& order) {
    repeat_.assign(order.size() + 1, {});
    for (uint32_t i = 0; i < nest_.tape.size(); ++i) {
      if (fused_ && i + 1 == nest_.tape.size()) break;
      size_t depth = 0;
      for (size_t p = 0; p < order.size(); ++p) {
        if (nest_.tape[i].axes.has(order[p])) depth = p + 1;
      }
      for (size_t p = 0; p <= depth; ++p) repeat_[p].push_back(i);
    }
  }

  void loops(const std::vector<AxisId>& order, const std::vector<Range>& ranges) {
    for (size_t p = 0; p < order.size(); ++p) index_[order[p]] = ranges[p].begin;
    size_t moved = 0;
    while (true) {
      for (const uint32_t i : repeat_[moved]) execute(i);
      sink();
      size_t p = order.size();
      for (; p > 0; --p) {
        if (++index_[order[p - 1]] < ranges[p - 1].end) break;
        index_[order[p - 1]] = ranges[p - 1].begin;
      }
      if (p == 0) return;
      moved = p;
    }
  }

  double round(double x) const {
    return nest_.precision == Precision::kF32 ? static_cast<double>(static_cast<float>(x)) : x;
  }

  double rounded(DType to, double x) const {
    if (is_integer(to)) x += nest_.nudge * std::fabs(x);
    return nest_.precision == Precision::kF32 ? round_to(to, x) : round_settled(to, x);
  }

  // The value of an operand in a lane.
  double lane(uint32_t i, int64_t l) const {
    if (!varies_[i]) return scalar_[i];
    return vector_[i] != nullptr ? vector_[i][l] : static_cast<double>(single_[i][l]);
  }

  template <class F>
  void each(uint32_t i, F&& f) {
    if (!varies_[i]) {
      scalar_[i] = round(f(int64_t{0}));
      return;
    }
    double* to = buffers_[i].data();
    for (int64_t l = 0; l < count_; ++l) to[l] = round(f(l));
    vector_[i] = to;
  }

  // Arithmetic of whole lanes, without a test a lane.
  template <class F>
  void two(uint32_t i, const Instruction& t, F&& f) {
    const uint32_t a = t.in[0], b = t.in[1];
    if (!varies_[i]) {
      scalar_[i] = round(f(scalar_[a], scalar_[b]));
      return;
    }
    const double* x = widened(a);
    const double* y = widened(b);
    double* to = buffers_[i].data();
    const double u = scalar_[a], v = scalar_[b];
    if (x != nullptr && y != nullptr) {
      for (int64_t l = 0; l < count_; ++l) to[l] = f(x[l], y[l]);
    } else if (x != nullptr) {
      for (int64_t l = 0; l < count_; ++l) to[l] = f(x[l], v);
    } else {
      for (int64_t l = 0; l < count_; ++l) to[l] = f(u, y[l]);
    }
    if (nest_.precision == Precision::kF32) {
      for (int64_t l = 0; l < count_; ++l) to[l] = static_cast<double>(static_cast<float>(to[l]));
    }
    vector_[i] = to;
  }

  // Lanes of an operand as doubles; null for a scalar.
  const double* widened(uint32_t i) {
    if (!varies_[i]) return nullptr;
    if (vector_[i] == nullptr) {
      double* to = buffers_[i].data();
      for (int64_t l = 0; l < count_; ++l) to[l] = static_cast<double>(single_[i][l]);
      vector_[i] = to;
    }
    return vector_[i];
  }

  void execute(uint32_t i) {
    const Instruction& t = nest_.tape[i];
    const uint32_t a = t.in[0];
    switch (t.code) {
      case Code::kConstant:
        scalar_[i] = round(t.value);
        return;
      case Code::kIndex: {
        const int64_t first = t.affine.at(index_), step = lane_step_[i];
        return each(i, [&](int64_t l) { return static_cast<double>(first + l * step); });
      }
      case Code::kRead:
        return read(i, t);
      case Code::kAdd:
        return two(i, t, [](double x, double y) { return x + y; });
      case Code::kSub:
        return two(i, t, [](double x, double y) { return x - y; });
      case Code::kMul:
        return two(i, t, [](double x, double y) { return x * y; });
      case Code::kDiv:
        return two(i, t, [](double x, double y) { return x / y; });
      case Code::kMax:
        return two(i, t, [](double x, double y) { return x > y || x != x ? x : y; });
      case Code::kNeg:
        return each(i, [&](int64_t l) { return -lane(a, l); });
      case Code::kExp:
        return each(i, [&](int64_t l) { return std::exp(lane(a, l)); });
      case Code::kLog:
        return each(i, [&](int64_t l) { return std::log(lane(a, l)); });
      case Code::kSqrt:
        return each(i, [&](int64_t l) { return std::sqrt(lane(a, l)); });
      case Code::kCast:
        return each(i, [&](int64_t l) { return rounded(t.dtype, lane(a, l)); });
      case Code::kCall:
        return each(i, [&](int64_t l) { return t.fn->eval(lane(a, l)); });
      case Code::kChoose:
        return each(i, [&](int64_t l) {
          const bool taken = holds(t.relation, lane(a, l), lane(t.in[1], l));
          return lane(taken ? t.in[2] : t.in[3], l);
        });
      case Code::kSelect: {
        const int64_t first = t.affine.at(index_), step = lane_step_[i];
        return each(i, [&](int64_t l) {
          const bool taken = holds(t.relation, first + l * step, int64_t{0});
          return lane(taken ? a : t.in[1], l);
        });
      }
    }
    SUNDOG_CHECK(false);
  }

  void read(uint32_t i, const Instruction& t) {
    const int64_t first = t.affine.at(index_), step = lane_step_[i];
    const Source& s = *t.source;
    const auto element = [&](int64_t offset) {
      return s.f64 != nullptr ? s.f64[offset] : static_cast<double>(s.f32[offset]);
    };
    if (t.checks.empty() && (!varies_[i] || step == 1)) {
      if (!varies_[i]) {
        scalar_[i] = element(first);
      } else {
        vector_[i] = s.f64 != nullptr ? s.f64 + first : nullptr;
        single_[i] = s.f64 != nullptr ? nullptr : s.f32 + first;
      }
      return;
    }
    std::vector<std::pair<int64_t, int64_t>> checked;  // index at lane 0, step
    for (const auto& [affine, extent] : t.checks) {
      checked.emplace_back(affine.at(index_), nest_.lanes ? affine.coefficients[*nest_.lanes] : 0);
    }
    each(i, [&](int64_t l) {
      for (size_t c = 0; c < checked.size(); ++c) {
        const int64_t at = checked[c].first + l * checked[c].second;
        if (at < 0 || at >= t.checks[c].second) return kNaN;
      }
      return element(first + l * step);
    });
  }

  void sink() {
    const auto root = static_cast<uint32_t>(nest_.tape.size() - 1);
    double* to = out_ + nest_.to.at(index_);
    if (fused_) {
      const Instruction& t = nest_.tape[root];
      const uint32_t s = varies_[t.in[0]] ? t.in[1] : t.in[0], v = t.in[0] + t.in[1] - s;
      if (vector_[v] != nullptr) {
        add_scaled(to, scalar_[s], vector_[v], count_);
      } else {
        add_scaled(to, scalar_[s], single_[v], count_);
      }
      return;
    }
    const int64_t step = nest_.lanes ? nest_.to.coefficients[*nest_.lanes] : 0;
    const bool lanes_free = is_free(nest_.lanes);
    if (nest_.lanes && !lanes_free) {
      across(root, to);
      return;
    }
    for (int64_t l = 0; l < count_; ++l) put(to[l * step], lane(root, l));
  }

  void put(double& to, double x) const {
    if (!nest_.reduce) {
      to = x;
    } else if (*nest_.reduce == ReduceKind::kSum) {
      to = round(to + x);
    } else {
      to = to > x || to != to ? to : x;
    }
  }

  // Reduces the lanes themselves.
  void across(uint32_t root, double* to) {
    const double* x = widened(root);
    if (x == nullptr) {
      for (int64_t l = 0; l < count_; ++l) put(*to, scalar_[root]);
      return;
    }
    if (nest_.precision == Precision::kF32 || *nest_.reduce == ReduceKind::kMax || count_ < 8) {
      for (int64_t l = 0; l < count_; ++l) put(*to, x[l]);
      return;
    }
    double part[4] = {0, 0, 0, 0};
    int64_t l = 0;
    for (; l + 4 <= count_; l += 4) {
      for (int j = 0; j < 4; ++j) part[j] += x[l + j];
    }
    for (; l < count_; ++l) part[0] += x[l];
    *to += (part[0] + part[1]) + (part[2] + part[3]);
  }

  const Nest& nest_;
  double* out_;
  std::vector<int64_t> index_;
  int64_t count_ = 1;
  bool fused_ = false;
  std::vector<uint8_t> varies_;  // along the lanes
  std::vector<double> scalar_;
  std::vector<const double*> vector_;  // buffer or view
  std::vector<const float*> single_;   // view of single precision, where vector_ is null
  std::vector<std::vector<double>> buffers_;
  std::vector<int64_t> lane_step_;
  std::vector<std::vector<uint32_t>> repeat_;
};

}  // namespace

std::vector<Instruction> compile(const Program& program, TermId root, Rounding rounding,
                                 const std::vector<Range>& ranges,
                                 const std::function<std::optional<Leaf>(TermId)>& leaf) {
  std::vector<Instruction> tape;
  Compiler compiler(program, rounding, ranges, leaf, &tape);
  const uint32_t result = compiler.value(root);
  if (result + 1 != tape.size()) {  // the result must be last: an earlier value plus nothing
    Instruction copy = tape[result];
    tape.push_back(std::move(copy));
  }
  return tape;
}

std::optional<AxisId> choose_lanes(const Nest& nest) {
  std::optional<AxisId> best;
  double best_score = -1;
  const auto consider = [&](AxisId axis, bool free) {
    const auto extent = static_cast<double>(nest.ranges[axis].end - nest.ranges[axis].begin);
    if (extent < 2) return;
    double score = std::min(extent, 64.0) / 64;
    for (const Instruction& t : nest.tape) {
      if (t.code != Code::kRead) continue;
      const int64_t step = t.affine.coefficients[axis];
      const double weight = t.axes.size();
      if (step == 1) score += 2 * weight;
      if (step != 0 && step != 1) score -= weight;
    }
    if (free) score += 1;
    if (free && nest.to.coefficients[axis] != 1) score -= 1.5;
    if (score > best_score) {
      best = axis;
      best_score = score;
    }
  };
  for (const AxisId axis : nest.free) consider(axis, true);
  for (const AxisId axis : nest.bound) consider(axis, false);
  return best;
}

void run(const Nest& nest, double* out) { Machine(nest, out).run(); }

}  // namespace sundog::evaluating
