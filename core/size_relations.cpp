#include "core/size_relations.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>

#include "core/resize_index.h"

namespace sundog {
namespace {

// Literals no further apart than this are one threshold written in several ways.
constexpr int64_t kClose = 4;
// A literal that moves is no 0 or 1, which conditions have for reasons of their own, nor next to.
constexpr int64_t kLeastMoved = 3;
// More values of a literal are not looked through.
constexpr int64_t kMostValues = 1 << 16;
constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 4;

using Items = std::vector<IndexExpr::Item>;

// An index expression as rest + up - down, where the sides are sums over axes.
struct Sides {
  Items up, down;
};

Sides sides_of(const IndexExpr& e) {
  Sides sides;
  for (const auto& item : e.axes) {
    (item.coefficient > 0 ? sides.up : sides.down)
        .push_back({item.axis, std::abs(item.coefficient)});
  }
  return sides;
}

bool is_plain(const IndexExpr& decl, const std::vector<int64_t>& extents) {
  Items items = decl.axes;
  return decl.constant == 0 && decl.sizes.empty() && !items.empty() &&
         is_mixed_radix(items, extents) && items[0].coefficient == 1;
}

// The literals of programs: which there are, and which must stay.
struct FoundLiterals {
  std::set<int64_t> all, fixed;

  void add(int64_t constant, bool moves) {
    const int64_t size = std::abs(constant);
    if (size <= 1) return;
    all.insert(size);
    if (!moves) fixed.insert(size);
  }
};

void find_literals(const Program& program, FoundLiterals* found) {
  const std::vector<int64_t> sizes = extents(program);
  for (TermId id = 0; id < program.terms.size(); ++id) {
    if (const auto* select = std::get_if<SelectTerm>(&program.terms[id])) {
      const IndexExpr& e = select->condition.expr;
      found->add(e.constant, follows_extents(e, sizes));
    } else if (const auto* input = std::get_if<InputTerm>(&program.terms[id])) {
      const TensorDecl& tensor = program.inputs[input->tensor];
      for (size_t d = 0; d < input->index.size(); ++d) {
        const IndexExpr& e = input->index[d];
        found->add(e.constant, reads_piece(tensor.dims[d], e, sizes));
      }
    }
  }
}

// The relations of one program.
class RelationFinder {
 public:
  RelationFinder(const RelatedProgram& related, const std::map<int64_t, uint32_t>& literals,
                 const std::vector<int64_t>& originals, std::vector<SizeRelation>* relations)
      : program_(related.program),
        extents_(related.extents),
        literals_(literals),
        sizes_(extents(related.program)),
        originals_(originals),
        relations_(relations) {}

  void run() {
    for (TermId id = 0; id < program_.terms.size(); ++id) {
      const auto* select = std::get_if<SelectTerm>(&program_.terms[id]);
      if (select != nullptr && follows_extents(select->condition.expr, sizes_)) {
        add_condition(select->condition);
      }
    }
    for (auto& [side, points] : breakpoints_) {
      add_end_points(side, points);
      for (size_t i = 0; i < points.size(); ++i) {
        for (size_t j = 0; j < i; ++j) keep(points[i] - points[j]);
      }
    }
    for (TermId id = 0; id < program_.terms.size(); ++id) {
      const auto* input = std::get_if<InputTerm>(&program_.terms[id]);
      if (input == nullptr) continue;
      const TensorDecl& tensor = program_.inputs[input->tensor];
      for (size_t d = 0; d < input->index.size(); ++d) add_read(tensor.dims[d], input->index[d]);
    }
  }

 private:
  using Side = std::vector<std::pair<AxisId, int64_t>>;

  static Side key(const Items& items) {
    Side side;
    for (const auto& item : items) side.emplace_back(item.axis, item.coefficient);
    return side;
  }

  // How many values a side has.
  SizeForm count(const Items& items) const {
    Items sorted = items;
    if (is_mixed_radix(sorted, sizes_)) {
      SizeForm product = SizeForm::of_constant(1);
      for (const auto& item : sorted) product = product * extents_[item.axis];
      return product;
    }
    SizeForm sum = SizeForm::of_constant(1);
    for (const auto& item : sorted) sum = sum + extents_[item.axis] - SizeForm::of_constant(1);
    return sum;
  }

  // What an index expression has besides its axes.
  SizeForm rest(const IndexExpr& e) const {
    SizeForm form = SizeForm::of_constant(e.constant);
    if (std::abs(e.constant) > 1) {
      form = SizeForm::of(literals_.at(std::abs(e.constant))) * (e.constant < 0 ? -1 : 1);
    }
    for (const auto& item : e.sizes) form = form + extents_[item.axis] * item.coefficient;
    return form;
  }

  void keep(const SizeForm& form) {
    if (form.items.empty()) return;
    const int64_t value = form.at(originals_);
    SizeRelation relation{form, value, value};
    if (value > 1) relation = {form, 2, kUnbounded};
    if (value < -1) relation = {form, -kUnbounded, -2};
    if (std::find(relations_->begin(), relations_->end(), relation) == relations_->end()) {
      relations_->push_back(std::move(relation));
    }
  }

  void add_condition(const IndexCondition& c) {
    const Sides sides = sides_of(c.expr);
    const SizeForm at_zero = rest(c.expr), one = SizeForm::of_constant(1);
    const SizeForm up = count(sides.up) - one, down = count(sides.down) - one;
    for (const bool last_up : {false, true}) {
      for (const bool last_down : {false, true}) {
        SizeForm corner = at_zero;
        if (last_up) corner = corner + up;
        if (last_down) corner = corner - down;
        keep(corner);
      }
    }
    if (sides.up.empty() == sides.down.empty()) return;
    // The first index of either part: where `up + rest` or `rest - down` reaches 0 or passes it.
    const bool rises = sides.down.empty();
    std::vector<SizeForm>& points = breakpoints_[key(rises ? sides.up : sides.down)];
    const SizeForm zero = rises ? at_zero * -1 : at_zero;
    const bool at = c.relation == Relation::kLess ? rises : !rises;
    const bool both = c.relation == Relation::kEqual || c.relation == Relation::kNotEqual;
    if (at || both) points.push_back(zero);
    if (!at || both) points.push_back(zero + one);
  }

  void add_end_points(const Side& side, std::vector<SizeForm>& points) const {
    Items items;
    for (const auto& [axis, coefficient] : side) items.push_back({axis, coefficient});
    points.push_back(SizeForm::of_constant(0));
    points.push_back(count(items));
  }

  void add_read(const IndexExpr& decl, const IndexExpr& read) {
    if (!is_plain(decl, sizes_)) return;
    const Sides sides = sides_of(read);
    if (sides.up.empty() == sides.down.empty()) return;
    const bool rises = sides.down.empty();
    const Items& items = rises ? sides.up : sides.down;
    const bool piece = reads_piece(decl, read, sizes_);
    if (!piece && (read.constant != 0 || !read.sizes.empty())) return;
    const auto found = breakpoints_.find(key(items));
    std::vector<SizeForm> points;
    if (found != breakpoints_.end()) points = found->second;
    if (points.empty()) add_end_points(key(items), points);
    const SizeForm start = rest(read), dimension = count(decl.axes);
    for (const SizeForm& point : points) {
      // A falling index is one past what it is at the point, where an end is compared with an end.
      const SizeForm at = rises ? start + point : start - point + SizeForm::of_constant(1);
      keep(at);
      keep(at - dimension);
    }
  }

  const Program& program_;
  const std::vector<SizeForm>& extents_;
  const std::map<int64_t, uint32_t>& literals_;
  const std::vector<int64_t> sizes_;
  const std::vector<int64_t>& originals_;
  std::vector<SizeRelation>* relations_;
  std::map<Side, std::vector<SizeForm>> breakpoints_;
};

std::vector<int64_t> values_of_literal(int64_t literal, bool fixed) {
  if (fixed) return {literal};
  std::vector<int64_t> values;
  const int64_t first = std::min(literal, kLeastMoved);
  for (int64_t v = first; v < std::min(literal, first + kMostValues); ++v) values.push_back(v);
  values.push_back(literal);
  return values;
}

}  // namespace

bool reads_piece(const IndexExpr& decl, const IndexExpr& read,
                 const std::vector<int64_t>& extents) {
  if (!is_plain(decl, extents) || read.axes.empty()) return false;
  const Sides sides = sides_of(read);
  if (!sides.up.empty() && !sides.down.empty()) return false;
  Items items = sides.up.empty() ? sides.down : sides.up;
  if (!is_mixed_radix(items, extents) || items[0].coefficient != 1) return false;
  if (!sides.up.empty() && read.constant == 0 && read.sizes.empty()) {
    return items.size() == 1 && decl.axes.size() == 1 &&
           extents[items[0].axis] != extents[decl.axes[0].axis];
  }
  const bool reversed = sides.up.empty() && items.size() == 1 && decl.axes.size() == 1 &&
                        read.constant == -1 && read.sizes.size() == 1 &&
                        read.sizes[0].coefficient == 1;
  return !reversed;
}

SizeSystem::SizeSystem(const std::vector<int64_t>& extents,
                       std::span<const RelatedProgram> programs)
    : extents_(extents.size()) {
  FoundLiterals found;
  for (const RelatedProgram& p : programs) find_literals(p.program, &found);
  for (const int64_t extent : extents) unknowns_.push_back({extent, {extent}, true});
  std::map<int64_t, uint32_t> ids;
  std::vector<int64_t> originals = extents;
  for (const int64_t literal : found.all) {
    ids[literal] = static_cast<uint32_t>(unknowns_.size());
    literals_.push_back(literal);
    originals.push_back(literal);
    unknowns_.push_back({literal, values_of_literal(literal, found.fixed.contains(literal))});
  }
  for (size_t i = 1; i < literals_.size(); ++i) {
    const auto after = static_cast<uint32_t>(extents_ + i);
    const int64_t gap = literals_[i] - literals_[i - 1];
    relations_.push_back({SizeForm::of(after) - SizeForm::of(after - 1), std::min(gap, kClose + 1),
                          gap <= kClose ? gap : kUnbounded});
  }
  for (const RelatedProgram& p : programs) RelationFinder(p, ids, originals, &relations_).run();
}

bool SizeSystem::concerns(uint32_t unknown) const {
  return std::any_of(relations_.begin(), relations_.end(), [&](const SizeRelation& relation) {
    return std::any_of(relation.form.items.begin(), relation.form.items.end(),
                       [&](const SizeForm::Item& item) {
                         return std::find(item.unknowns.begin(), item.unknowns.end(), unknown) !=
                                item.unknowns.end();
                       });
  });
}

void SizeSystem::allow(uint32_t unknown, std::vector<int64_t> extents) {
  SizeUnknown& u = unknowns_[unknown];
  if (extents.empty() || extents.back() != u.original) extents.push_back(u.original);
  u.values = std::move(extents);
}

std::optional<SizeSystem::Choice> SizeSystem::choose(const std::set<int64_t>& taken,
                                                     int64_t step) const {
  std::vector<SizeUnknown> unknowns = unknowns_;
  for (uint32_t u = 0; u < unknowns.size(); ++u) {
    unknowns[u].step = step;
    if (u < extents_ && !concerns(u)) unknowns[u].values = {unknowns[u].original};
  }
  const auto found = solve(unknowns, relations_, taken);
  if (!found) return std::nullopt;
  Choice choice;
  std::vector<std::pair<int64_t, int64_t>> moved;
  bool changed = false;
  for (uint32_t u = 0; u < unknowns.size(); ++u) {
    changed = changed || (*found)[u] != unknowns[u].original;
    if (u < extents_) {
      choice.extents.push_back((*found)[u]);
    } else {
      moved.emplace_back(unknowns[u].original, (*found)[u]);
    }
  }
  if (!changed) return std::nullopt;
  choice.literals = Literals(std::move(moved));
  return choice;
}

bool SizeSystem::allows(const std::vector<int64_t>& extents, const Literals& literals) const {
  std::vector<int64_t> sizes = extents;
  for (const int64_t literal : literals_) {
    sizes.push_back(literals.moved(literal).value_or(literal));
  }
  return std::all_of(relations_.begin(), relations_.end(), [&](const SizeRelation& relation) {
    const int64_t value = relation.form.at(sizes);
    return relation.low <= value && value <= relation.high;
  });
}

}  // namespace sundog
