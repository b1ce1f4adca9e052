#include "core/resize_literals.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/resize_index.h"

namespace sundog {
namespace {

// Literals no further apart than this are one threshold written in several ways.
constexpr int64_t kClose = 4;
// A literal that moves is no 0 or 1, which conditions have for reasons of their own, nor next to.
constexpr int64_t kLeastMoved = 3;

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

// How far beside the ends of its two axes the condition has its edge, if that is at most one: by
// k - q - 44 the last k goes with the last q, by k - q - 45 < 0 too.
std::optional<int64_t> beside_ends(const IndexExpr& e, const std::vector<int64_t>& extents) {
  if (!compares_two_axes(e)) return std::nullopt;
  int64_t beside = e.constant;
  for (const auto& item : e.axes) beside += item.coefficient * extents[item.axis];
  if (std::abs(beside) > 1) return std::nullopt;
  return beside;
}

bool aligns(const IndexExpr& e, const std::vector<int64_t>& extents) {
  return beside_ends(e, extents).has_value();
}

// Whether literals that align the ends of two axes still do.
bool keeps_alignment(const ResizedProgram& resized, const Literals& literals) {
  const std::vector<int64_t> before = extents(resized.program);
  bool kept = true;
  for_each_literal(resized.program, [&](IndexCondition c) {
    const auto was = beside_ends(c.expr, before);
    if (!was) return;
    c.expr.constant = literals.moved(c.expr.constant).value_or(0);
    kept = kept && beside_ends(c.expr, resized.new_extents) == was;
  });
  return kept;
}

// Magnitudes of the constants of shifted reads: conditions that guard those have the same ones.
std::set<int64_t> shifts_of_reads(const Program& program) {
  std::set<int64_t> shifts;
  for (TermId id = 0; id < program.terms.size(); ++id) {
    const auto* input = std::get_if<InputTerm>(&program.terms[id]);
    if (input == nullptr) continue;
    for (const IndexExpr& e : input->index) {
      if (!e.axes.empty() && e.constant != 0) shifts.insert(std::abs(e.constant));
    }
  }
  return shifts;
}

// Values for the literals from `first` on, each the next one `apart` from the one before if it was
// farther than close.
Literals spread(const std::set<int64_t>& all, int64_t first, int64_t apart, int64_t modulus,
                const std::set<int64_t>& fixed) {
  std::vector<std::pair<int64_t, int64_t>> moved;
  for (const int64_t literal : all) {
    int64_t now = first;
    if (fixed.contains(literal)) {
      now = literal;
    } else if (!moved.empty()) {
      const int64_t gap = literal - moved.back().first;
      now = moved.back().second + (gap <= kClose ? gap : std::min(gap, apart));
      while (gap > kClose && (literal - now) % modulus != 0) ++now;
    }
    moved.emplace_back(literal, now);
  }
  return Literals(std::move(moved));
}

bool is_ordered(const Literals& literals, const std::set<int64_t>& all) {
  int64_t before = 0;
  for (const int64_t literal : all) {
    const int64_t now = literals.moved(literal).value_or(0);
    if (now <= before) return false;
    before = now;
  }
  return true;
}

}  // namespace

bool Literals::moves() const {
  return std::any_of(moved_.begin(), moved_.end(),
                     [](const auto& each) { return each.first != each.second; });
}

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
    if (from == to) continue;
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

bool compares_two_axes(const IndexExpr& e) {
  return e.axes.size() == 2 && e.sizes.empty() &&
         e.axes[0].coefficient * e.axes[1].coefficient == -1;
}

int64_t room_between_compared(const Program& program) {
  const std::vector<int64_t> now = extents(program);
  bool any = false;
  for_each_literal(program, [&](const IndexCondition& c) { any = any || aligns(c.expr, now); });
  const auto literals = static_cast<int64_t>(scalable_literals(program).size());
  return any ? kLeastMoved + (literals - 1) * (kClose + 1) : 1;
}

std::optional<Literals> fit_literals(std::span<const ResizedProgram> programs, int64_t step) {
  std::set<int64_t> all, fixed;
  int64_t most = 8;
  for (const ResizedProgram& p : programs) {
    for (const int64_t literal : scalable_literals(p.program)) all.insert(literal);
    for (const int64_t shift : shifts_of_reads(p.program)) fixed.insert(shift);
    for (const AxisId axis : axes_of_literals(p.program)) most += p.new_extents[axis];
  }
  if (all.empty()) return Literals();
  const Literals same = spread(all, 0, 0, 1, all);
  const auto keep = [&](const Literals& literals, bool aligned) {
    return std::all_of(programs.begin(), programs.end(), [&](const ResizedProgram& p) {
      return keeps_conditions(p, literals) && (!aligned || keeps_alignment(p, literals));
    });
  };
  for (const bool aligned : {true, false}) {
    if (keep(same, aligned)) return same;
    for (const int64_t modulus : {step, int64_t{1}}) {
      for (const int64_t apart : {kClose + 1, kClose + 2 * step, kClose + 4 * step}) {
        for (int64_t first = kLeastMoved; first <= most; ++first) {
          if ((*all.begin() - first) % modulus != 0) continue;
          Literals literals = spread(all, first, apart, modulus, fixed);
          if (is_ordered(literals, all) && keep(literals, aligned)) return literals;
        }
      }
      if (step == 1) break;
    }
  }
  return std::nullopt;
}

}  // namespace sundog
