#include "core/resize_literals.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/resize_index.h"

namespace sundog {
namespace {

// Literals no further apart than this are one threshold written in several ways.
constexpr int64_t kClose = 4;

// Calls visit(condition) for the conditions of a program that a literal alone keeps from following.
template <class Visit>
void for_each_literal(const Program& program, Visit visit) {
  const std::vector<int64_t> sizes = extents(program);
  for (TermId id = 0; id < program.terms.size(); ++id) {
    const auto* select = std::get_if<SelectTerm>(&program.terms[id]);
    if (select == nullptr || std::abs(select->condition.expr.constant) <= 1) continue;
    if (follows_extents(select->condition.expr, sizes)) visit(select->condition);
  }
}

enum class Holds : uint8_t { kNever, kSometimes, kAlways };

Holds where(const IndexCondition& c, const std::vector<int64_t>& extents) {
  int64_t low = c.expr.constant, high = c.expr.constant;
  for (const auto& item : c.expr.sizes) {
    low += item.coefficient * extents[item.axis];
    high += item.coefficient * extents[item.axis];
  }
  for (const auto& item : c.expr.axes) {
    const int64_t far = item.coefficient * std::max<int64_t>(extents[item.axis] - 1, 0);
    low += std::min<int64_t>(far, 0);
    high += std::max<int64_t>(far, 0);
  }
  const auto of = [](bool all, bool none) {
    return all ? Holds::kAlways : none ? Holds::kNever : Holds::kSometimes;
  };
  switch (c.relation) {
    case Relation::kLess:
      return of(high < 0, low >= 0);
    case Relation::kLessEqual:
      return of(high <= 0, low > 0);
    case Relation::kEqual:
      return of(low == 0 && high == 0, low > 0 || high < 0);
    case Relation::kNotEqual:
      return of(low > 0 || high < 0, low == 0 && high == 0);
  }
  SUNDOG_CHECK(false);
}

// Whether every condition holds as often with the new extents and literals as it did.
bool keeps_conditions(const ResizedProgram& resized, const Literals& literals) {
  const std::vector<int64_t> before = extents(resized.program);
  bool kept = true;
  for_each_literal(resized.program, [&](IndexCondition c) {
    const Holds was = where(c, before);
    c.expr = sundog::resized(c.expr, before, resized.new_extents);
    const std::optional<int64_t> now = literals.moved(c.expr.constant);
    c.expr.constant = now.value_or(c.expr.constant);
    kept = kept && now.has_value() && where(c, resized.new_extents) == was;
  });
  return kept;
}

}  // namespace

std::optional<int64_t> Literals::moved(int64_t constant) const {
  if (moved_.empty()) return constant;
  const int64_t size = std::abs(constant);
  const std::pair<int64_t, int64_t>* nearest = nullptr;
  for (const auto& each : moved_) {
    if (std::abs(each.first - size) > 1) continue;
    if (nearest == nullptr || each.first == size) nearest = &each;
  }
  if (nearest == nullptr) return std::nullopt;
  const int64_t now = nearest->second + (size - nearest->first);
  return constant < 0 ? -now : now;
}

std::string Literals::text() const {
  std::string text;
  for (const auto& [from, to] : moved_) {
    text += (text.empty() ? "" : ", ") + std::to_string(from) + " as " + std::to_string(to);
  }
  return text;
}

std::vector<int64_t> scalable_literals(const Program& program) {
  std::set<int64_t> literals;
  for_each_literal(program,
                   [&](const IndexCondition& c) { literals.insert(std::abs(c.expr.constant)); });
  return {literals.begin(), literals.end()};
}

AxisSet axes_of_literals(const Program& program) {
  AxisSet axes;
  for_each_literal(program, [&](const IndexCondition& c) {
    axes |= c.expr.axis_set();
    for (const auto& item : c.expr.sizes) axes.insert(item.axis);
  });
  return axes;
}

std::optional<Literals> fit_literals(std::span<const ResizedProgram> programs, int64_t step) {
  std::set<int64_t> all;
  int64_t most = 8;
  for (const ResizedProgram& p : programs) {
    for (const int64_t literal : scalable_literals(p.program)) all.insert(literal);
    for (const AxisId axis : axes_of_literals(p.program)) most += p.new_extents[axis];
  }
  if (all.empty()) return Literals();
  const auto keep = [&](const Literals& literals) {
    return std::all_of(programs.begin(), programs.end(),
                       [&](const ResizedProgram& p) { return keeps_conditions(p, literals); });
  };
  for (const int64_t modulus : {step, int64_t{1}}) {
    for (const int64_t apart : {kClose + 1, kClose + 2 * step, kClose + 4 * step}) {
      for (int64_t first = 3; first <= most; ++first) {
        if ((*all.begin() - first) % modulus != 0) continue;
        std::vector<std::pair<int64_t, int64_t>> moved;
        for (const int64_t literal : all) {
          int64_t now = first;
          if (!moved.empty()) {
            const int64_t gap = literal - moved.back().first;
            now = moved.back().second + (gap <= kClose ? gap : std::min(gap, apart));
            while (gap > kClose && (literal - now) % modulus != 0) ++now;
          }
          moved.emplace_back(literal, now);
        }
        Literals literals(std::move(moved));
        if (keep(literals)) return literals;
      }
    }
    if (step == 1) break;
  }
  return std::nullopt;
}

}  // namespace sundog
