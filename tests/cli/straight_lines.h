// Every way to compute a program's value by a few operators: the algebra of
// tests/cli/brute_force.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/field.h"
#include "core/program.h"

namespace sundog::search {

// One operator of a straight line; operands are positions among leaves and earlier steps.
struct Step {
  std::optional<Op> op;  // else a reduction
  ReduceKind kind = ReduceKind::kSum;
  AxisSet over;
  std::vector<int> operands;
};

// All straight lines of at most `most` steps that compute the output of a program.
class StraightLines {
 public:
  StraightLines(const Program& program, int most) : program_(program), most_(most) {
    for (TermId t : reachable(program.terms, std::array{program.outputs[0].value})) take(t);
    AxisSet used;
    for (TermId t : leaves_) used |= program.terms.axes(t);
    for (AxisId a = 0; a < program.axes.size(); ++a) {
      extents_.push_back(used.has(a) ? std::min<int64_t>(program.axes[a].extent, 2) : 1);
      cells_ *= extents_.back();
    }
    goal_ = image_of(program.outputs[0].value);
    for (TermId t : leaves_) values_.push_back({program.terms.axes(t), image_of(t)});
    add_op(op::Add{}), add_op(op::Mul{}), add_op(op::Div{});
  }

  std::vector<std::vector<Step>> all() {
    extend();
    return std::move(found_);
  }
  // Those of the lines that compute nothing but terms of the program, as it is written.
  std::vector<std::vector<Step>> as_written(const std::vector<std::vector<Step>>& lines) {
    std::vector<Image> terms;
    for (TermId t : reachable(program_.terms, std::array{program_.outputs[0].value})) {
      terms.push_back(image_of(t));
    }
    std::vector<std::vector<Step>> out;
    for (const std::vector<Step>& steps : lines) {
      std::vector<Image> made;
      for (const Value& v : values_) made.push_back(v.image);
      for (const Step& s : steps) {
        std::vector<const Image*> in;
        for (int o : s.operands) in.push_back(&made[static_cast<size_t>(o)]);
        made.push_back(s.op ? applied(*s.op, in) : reduced(s.kind, s.over, *in[0]));
        if (std::find(terms.begin(), terms.end(), made.back()) == terms.end()) break;
      }
      const bool whole = made.size() == values_.size() + steps.size();
      if (whole && made.back() == goal_) out.push_back(steps);
    }
    return out;
  }
  const std::vector<TermId>& leaves() const { return leaves_; }
  // Whether the output is an input as it is, or zero: then there is nothing to do.
  bool trivial() const {
    const bool zero = std::all_of(goal_.begin(), goal_.end(),
                                  [](const FieldImage::Value& v) { return identity(v) == 0; });
    return zero || std::any_of(values_.begin(), values_.end(),
                               [&](const Value& v) { return v.image == goal_; });
  }
  uint64_t visited() const { return visited_; }

 private:
  using Image = std::vector<FieldImage::Value>;  // over all axes, whichever it depends on
  struct Value {
    AxisSet axes;
    Image image;
    int readers = 0;
  };

  void take(TermId t) {
    const Term& term = program_.terms[t];
    if (operands(term).empty()) leaves_.push_back(t);
    if (const auto* apply = std::get_if<ApplyTerm>(&term)) add_op(apply->op);
    if (const auto* reduce = std::get_if<ReduceTerm>(&term)) kinds_.insert(reduce->kind);
  }
  void add_op(Op op) {
    if (std::find(ops_.begin(), ops_.end(), op) == ops_.end()) ops_.push_back(std::move(op));
  }

  std::vector<int64_t> index_of(int64_t cell) const {
    std::vector<int64_t> index(extents_.size());
    for (size_t a = extents_.size(); a-- > 0;) {
      index[a] = cell % extents_[a];
      cell /= extents_[a];
    }
    return index;
  }

  Image image_of(TermId t) {
    const Term& term = program_.terms[t];
    Image out;
    if (const auto* in = std::get_if<InputTerm>(&term)) {
      for (int64_t c = 0; c < cells_; ++c) {
        uint64_t key = in->tensor;
        for (const IndexExpr& e : in->index) {
          key = mix(key, static_cast<uint64_t>(evaluate(e, index_of(c), extents_)));
        }
        out.push_back(field_.random(key));
      }
    } else if (const auto* constant = std::get_if<ConstantTerm>(&term)) {
      out.assign(static_cast<size_t>(cells_), field_.constant(constant->value));
    } else if (const auto* size = std::get_if<SizeTerm>(&term)) {
      out.assign(static_cast<size_t>(cells_), field_.constant(Number(extents_[size->axis])));
    } else if (const auto* apply = std::get_if<ApplyTerm>(&term)) {
      std::vector<Image> read;
      for (TermId o : apply->operands) read.push_back(image_of(o));
      std::vector<const Image*> in_order;
      for (const Image& image : read) in_order.push_back(&image);
      out = applied(apply->op, in_order);
    } else {
      const auto& reduce = std::get<ReduceTerm>(term);
      out = reduced(reduce.kind, reduce.axes, image_of(reduce.operand));
    }
    return out;
  }

  FieldImage::Value cell(const Op& op, const std::vector<const Image*>& in, size_t c) {
    std::array<FieldImage::Value, 2> at;
    for (size_t i = 0; i < in.size(); ++i) at[i] = (*in[i])[c];
    return apply(field_, op, std::span(at.data(), in.size()));
  }

  Image applied(const Op& op, const std::vector<const Image*>& in) {
    Image out;
    for (size_t c = 0; c < static_cast<size_t>(cells_); ++c) out.push_back(cell(op, in, c));
    return out;
  }

  Image reduced(ReduceKind kind, AxisSet over, const Image& in) {
    std::map<std::vector<int64_t>, FieldImage::Value> totals;
    for (int pass = 0; pass < 2; ++pass) {
      Image out;
      for (int64_t c = 0; c < cells_; ++c) {
        std::vector<int64_t> at = index_of(c);
        for (AxisId a : over) at[a] = 0;
        const FieldImage::Value x = in[static_cast<size_t>(c)];
        const auto known = totals.find(at);
        if (pass == 1) {
          out.push_back(known->second);
        } else if (known == totals.end()) {
          totals.emplace(at, x);
        } else {
          known->second = kind == ReduceKind::kSum ? field_.add(known->second, x)
                                                   : field_.max(known->second, x);
        }
      }
      if (pass == 1) return out;
    }
    return {};
  }

  int unread() const {
    int n = 0;
    for (size_t i = leaves_.size(); i < values_.size(); ++i) n += values_[i].readers == 0 ? 1 : 0;
    return n;
  }

  void extend() {
    if (static_cast<int>(steps_.size()) == most_) return;
    const int n = static_cast<int>(values_.size());
    for (const Op& op : ops_) {
      for (int a = 0; a < n; ++a) {
        if (arity(op) == 1) {
          push({op, ReduceKind::kSum, {}, {a}});
          continue;
        }
        const bool symmetric = std::holds_alternative<op::Add>(op) ||
                               std::holds_alternative<op::Mul>(op) ||
                               std::holds_alternative<op::Max>(op);
        for (int b = symmetric ? a : 0; b < n; ++b) push({op, ReduceKind::kSum, {}, {a, b}});
      }
    }
    for (ReduceKind kind : kinds_) {
      for (int a = 0; a < n; ++a) {
        const uint64_t axes = values_[static_cast<size_t>(a)].axes.bits();
        for (uint64_t s = axes; s != 0; s = (s - 1) & axes) {
          push({std::nullopt, kind, AxisSet(s), {a}});
        }
      }
    }
  }

  // Each value must be read in the end, and a step joins two at most.
  void push(Step step) {
    const int left = most_ - static_cast<int>(steps_.size()) - 1;
    for (int o : step.operands) ++values_[static_cast<size_t>(o)].readers;
    const std::vector<int> read = step.operands;
    if (unread() <= left && ordered(step)) try_step(std::move(step));
    for (int o : read) --values_[static_cast<size_t>(o)].readers;
  }

  // Of two steps in a row that do not depend on each other, the one with the smaller operands comes
  // first.
  bool ordered(const Step& step) const {
    if (steps_.empty()) return true;
    const int last = static_cast<int>(values_.size()) - 1;
    if (std::find(step.operands.begin(), step.operands.end(), last) != step.operands.end()) {
      return true;
    }
    return !(step.operands < steps_.back().operands);
  }

  void try_step(Step step) {
    ++visited_;
    Value made;
    std::vector<const Image*> in;
    for (int o : step.operands) {
      made.axes |= values_[static_cast<size_t>(o)].axes;
      in.push_back(&values_[static_cast<size_t>(o)].image);
    }
    made.axes = made.axes - step.over;
    const bool last = static_cast<int>(steps_.size()) + 1 == most_;
    bool known = last && (unread() > 0 || (step.op && !(cell(*step.op, in, 0) == goal_[0])));
    if (!known) {
      made.image = step.op ? applied(*step.op, in) : reduced(step.kind, step.over, *in[0]);
      known = std::any_of(values_.begin(), values_.end(), [&](const Value& v) {
        return v.axes == made.axes && v.image == made.image;
      });
    }
    field_.reset_failure();
    if (!known) {
      const bool is_goal = made.image == goal_ && unread() == 0;
      steps_.push_back(std::move(step));
      values_.push_back(std::move(made));
      if (is_goal) {
        found_.push_back(steps_);
      } else {
        extend();
      }
      values_.pop_back();
      steps_.pop_back();
    }
  }

  const Program& program_;
  int most_;
  FieldImage field_{12345};
  std::vector<int64_t> extents_;  // small ones
  int64_t cells_ = 1;
  std::vector<TermId> leaves_;
  std::vector<Op> ops_;
  std::set<ReduceKind> kinds_;
  Image goal_;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  std::vector<std::vector<Step>> found_;
  uint64_t visited_ = 0;
};

}  // namespace sundog::search
