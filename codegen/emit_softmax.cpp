// What softmax asks of maxima: one of scaled values is a scaled one of values, and accumulators
// that share a running maximum are rescaled by the same factors as it moves.
#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {

// The value of a scalar that is known now; without `constant` if it is not.
Text KernelEmitter::folded(TermId term) {
  const Term& t = kernel_.terms[term];
  if (const auto* constant = std::get_if<ConstantTerm>(&t)) return text_.constant(constant->value);
  if (const auto* size = std::get_if<SizeTerm>(&t)) {
    return text_.constant(Number(graph_.axes[size->axis].extent));
  }
  if (const auto* local = std::get_if<LocalTerm>(&t)) {
    const Computation& c = computation(local->computation);
    return c.axes.empty() && c.dtype == DType::kF32 ? folded(c.value) : Text{};
  }
  const auto* apply = std::get_if<ApplyTerm>(&t);
  if (apply == nullptr) return {};
  std::vector<Text> operands;
  for (TermId operand : apply->operands) {
    operands.push_back(folded(operand));
    if (!operands.back().constant) return {};
  }
  const Text result = text_.apply(apply->op, std::move(operands));
  return result.constant ? result : Text{};
}

// Of max(x * c), or of max(select(.., x * c, -inf)).  Rounding keeps order, so that the result is
// the same bit by bit.
std::optional<KernelEmitter::MaxOfMultiples> KernelEmitter::max_of_multiples(uint32_t id) {
  const ReduceTerm& reduce = *reduce_of(id);
  if (reduce.kind != ReduceKind::kMax) return std::nullopt;
  TermId product = reduce.operand;
  if (const auto* select = std::get_if<SelectTerm>(&kernel_.terms[product])) {
    const std::optional<double> otherwise = folded(select->otherwise).constant;
    if (!otherwise || *otherwise != -std::numeric_limits<double>::infinity()) return std::nullopt;
    product = select->then;
  }
  const auto* apply = std::get_if<ApplyTerm>(&kernel_.terms[product]);
  if (apply == nullptr || !std::holds_alternative<op::Mul>(apply->op)) return std::nullopt;
  for (size_t i : {1, 0}) {
    const TermId factor = apply->operands[i], rest = apply->operands[1 - i];
    const Text known = folded(factor);
    const float c = static_cast<float>(known.constant.value_or(0));
    if (!std::isfinite(c) || c < std::numeric_limits<float>::min()) continue;
    const auto* local = std::get_if<LocalTerm>(&kernel_.terms[factor]);
    if (local == nullptr) return MaxOfMultiples{product, rest, known.text};
    if (!plan(local->computation).in_registers) continue;
    return MaxOfMultiples{product, rest, result_array(local->computation).element({})};
  }
  return std::nullopt;
}

// --- rescaling

// Which rows of its running maximum a thread's part of accumulator `id` belongs to.
Layout KernelEmitter::rescaled_rows(uint32_t id) const {
  const ComputationPlan& p = plan(id);
  return slice(p.deferred ? p.partial : p.layout, tile_axes(computation(id).rescale));
}

// The first accumulator beside `id` with the same maximum and rows: it finds the factors for all.
uint32_t KernelEmitter::rescaled_first(uint32_t id) const {
  uint32_t first = id;
  for (uint32_t other = 0; other < kernel_.computations.size(); ++other) {
    const bool alike = computation(other).rescale == computation(id).rescale &&
                       scan_.computations[other].around == scan_.computations[id].around &&
                       rescaled_rows(other) == rescaled_rows(id);
    if (alike && plan(other).position < plan(first).position) first = other;
  }
  return first;
}

RegisterArray KernelEmitter::row_array(uint32_t id, const std::string& suffix) const {
  return {names_[id] + suffix, DType::kF32, slots(rescaled_rows(id)), 1, false};
}

// Before the block of statements that adds to `id`.
void KernelEmitter::declare_scale(uint32_t id) {
  if (rescaled_first(id) == id) out_.line(row_array(id, "_scale").declaration());
}

// The factors exp(m' - m) of the rows, m' being the maximum in the iteration before.
void KernelEmitter::find_scale(uint32_t id) {
  const uint32_t maximum = computation(id).rescale;
  const Layout rows = rescaled_rows(id);
  const Slots row(out_, kernel_, rows);
  const RegisterArray last = row_array(id, "_last"), scale = row_array(id, "_scale");
  Scope scope{id, &row, {}};
  row.for_each(out_, {}, nullptr, [&] {
    const Text now = read_local(scope, kNoTerm, LocalTerm{maximum, tile_axes(maximum)}, "");
    const Linear index = row.index_in(rows);
    const std::string before = last.element(index);
    out_.line("const float now = " + now.text + ";");
    out_.line(scale.element(index) + " = " + before +
              " == " + literal(-std::numeric_limits<double>::infinity()) +
              " ? 0.0f : " + exp_difference(before, "now") + ";");
    out_.line(before + " = now;");
  });
}

// Multiplies what a thread has of accumulator `id` by the factors of its rows.
void KernelEmitter::rescale(uint32_t id, const RegisterArray& array) {
  const ComputationPlan& p = plan(id);
  const Layout& own = p.deferred ? p.partial : p.layout;
  const AxisSet rows = tile_axes(computation(id).rescale);
  const uint32_t first = rescaled_first(id);
  out_.open("");
  if (first == id) find_scale(id);
  const Layout row_layout = rescaled_rows(id);
  const Slots row(out_, kernel_, row_layout);
  const RegisterArray scale = row_array(first, "_scale");
  row.for_each(out_, {}, nullptr, [&] {
    const std::string factor = scale.element(row.index_in(row_layout));
    // The registers of this row.
    std::vector<RegisterLoop> digits = row.loops();
    int open = 0;
    for (const Mode& m : own.modes) {
      if (m.holder != Holder::kReg || m.extent <= 1 || rows.has(m.axis)) continue;
      const std::string var = out_.fresh("r");
      out_.line("#pragma unroll");
      out_.open("for (int " + var + " = 0; " + var + " < " + std::to_string(m.extent) + "; ++" +
                var + ")");
      digits.push_back({m, var});
      ++open;
    }
    out_.line(array.element(register_index(own, digits)) + " *= " + factor + ";");
    for (; open > 0; --open) out_.close();
  });
  out_.close();
}

std::string KernelEmitter::exp_difference(const std::string& x, const std::string& y) {
  return text_.exp({x + " - " + y, 2, {}, {}, {}, {}, x, y}).text;
}

}  // namespace sundog::codegen
