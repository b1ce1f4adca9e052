// Counting, not simulating: sizes are looked for by hundreds of evaluations a kernel.  The interval
// of a block is a few divisions, and there are as many different blocks as the grid factors in the
// conditions have values, of which some are taken, evenly along each factor.  How long the device
// takes for uneven blocks depends on their order.  Places take the next block when they are free,
// so that all are busy until the last block has started, and what then is left is half of a block
// in the mean: of the longest among those that start last.  Even blocks end in waves instead, and
// what lies in between (a window, whose first blocks alone are short) is taken as a mixture.
// Against giving out the blocks one by one this is off by 4 % in the mean
// (tests/search/trimmed_test.cpp).
#include "search/trimmed.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/arithmetic.h"
#include "search/trim_masked.h"

namespace sundog::search {
namespace {

constexpr int64_t kSamples = 64;  // of indices that differ, at most

// Both directions of an equality; a difference bounds nothing.
void add_bounds(const IndexCondition& condition, const std::vector<int64_t>& size_of,
                const std::vector<AxisSet>& strides, std::vector<TrimBound>& out) {
  if (condition.relation == Relation::kNotEqual) return;
  TrimBound bound;
  bound.constant = condition.expr.constant;
  for (const auto& size : condition.expr.sizes) {
    bound.constant += size.coefficient * size_of[size.axis];
  }
  for (const auto& item : condition.expr.axes) {
    bound.items.push_back({item.axis, item.coefficient, strides[item.axis]});
  }
  if (condition.relation == Relation::kLess) ++bound.constant;
  out.push_back(bound);
  if (condition.relation != Relation::kEqual) return;
  bound.constant = -bound.constant;
  for (TrimBound::Item& item : bound.items) item.coefficient = -item.coefficient;
  out.push_back(std::move(bound));
}

template <class ConditionsOf>
void walk(const std::vector<Statement>& body, AxisSet around, const std::vector<int64_t>& size_of,
          const std::vector<AxisSet>& strides, const ConditionsOf& conditions_of, Trims& out) {
  for (const Statement& s : body) {
    const auto* loop = std::get_if<Loop>(&s.node);
    if (loop == nullptr) continue;
    TrimmedLoop trimmed{out.loops.size(), loop->factor, around, {}};
    AxisSet inside = around;
    inside.insert(loop->factor);
    out.loops.push_back(inside);
    for (const IndexCondition& c : conditions_of(*loop)) {
      add_bounds(c, size_of, strides, trimmed.bounds);
    }
    if (!trimmed.bounds.empty()) out.trimmed.push_back(std::move(trimmed));
    walk(loop->body, inside, size_of, strides, conditions_of, out);
  }
}

// Values of factors, slowest first: all, or of the longest ones some that lie evenly.
class Samples {
 public:
  Samples(std::vector<AxisId> factors, const std::vector<int64_t>& extents)
      : factors_(std::move(factors)) {
    for (AxisId f : factors_) {
      extents_.push_back(extents[f]);
      taken_.push_back(extents[f]);
      count_ *= extents[f];
    }
    while (count_ > kSamples) {
      int64_t& most = *std::max_element(taken_.begin(), taken_.end());
      count_ /= most;
      most = ceil_div(most, 2);
      count_ *= most;
    }
  }

  int64_t count() const { return count_; }

  void put(int64_t at, std::vector<int64_t>& index) const {
    for (size_t i = factors_.size(); i-- > 0;) {
      index[factors_[i]] = (2 * (at % taken_[i]) + 1) * extents_[i] / (2 * taken_[i]);
      at /= taken_[i];
    }
  }

 private:
  std::vector<AxisId> factors_;
  std::vector<int64_t> extents_, taken_;
  int64_t count_ = 1;
};

// A bound with its sizes: own * iteration + rest + sum(step * index) <= 0.
struct Line {
  int64_t own = 0, rest = 0;
  std::vector<std::pair<AxisId, int64_t>> steps;
};

// The interval of a trimmed loop at block indices.
class Interval {
 public:
  Interval(const TrimmedLoop& loop, AxisSet grid, const std::vector<int64_t>& extents)
      : extent_(extents[loop.factor]) {
    for (const TrimBound& bound : loop.bounds) {
      Line line;
      line.rest = bound.constant;
      for (const TrimBound::Item& item : bound.items) {
        int64_t step = item.coefficient;
        for (AxisId f : item.stride) step *= extents[f];
        if (item.factor == loop.factor) {
          line.own = step;
        } else if (grid.has(item.factor) || loop.around.has(item.factor)) {
          line.steps.push_back({item.factor, step});
        } else if (step < 0) {
          line.rest += step * (extents[item.factor] - 1);
        }
      }
      lines_.push_back(std::move(line));
    }
  }

  // Iterations that run.
  int64_t at(const std::vector<int64_t>& index) const {
    int64_t begin = 0, end = extent_;
    for (const Line& line : lines_) {
      int64_t rest = line.rest;
      for (const auto& [factor, step] : line.steps) rest += step * index[factor];
      if (line.own > 0) {
        end = std::min(end, floor_div(-rest, line.own) + 1);
      } else if (line.own < 0) {
        begin = std::max(begin, -floor_div(-rest, -line.own));
      } else if (rest > 0) {
        return 0;
      }
    }
    return std::max<int64_t>(0, end - begin);
  }

 private:
  int64_t extent_;
  std::vector<Line> lines_;
};

class Counter {
 public:
  Counter(const Trims& trims, const std::vector<int64_t>& extents)
      : trims_(trims), extents_(extents), index_(extents.size(), 0) {
    const AxisSet grid = AxisSet::of(trims.grid);
    AxisSet named;
    for (const TrimmedLoop& t : trims.trimmed) {
      intervals_.emplace_back(t, grid, extents);
      std::vector<AxisId> around;
      for (AxisId f : t.around) around.push_back(f);
      around_.emplace_back(around, extents);
      for (const TrimBound& b : t.bounds) {
        for (const TrimBound::Item& i : b.items) named.insert(i.factor);
      }
    }
    for (AxisId f : trims.grid) {
      if (named.has(f) && extents[f] > 1) {
        varying_.push_back(f);
        if (grow_along(f)) growing_.push_back(f);
      } else if (varying_.empty()) {
        out_.periods *= static_cast<double>(extents[f]);
      }
    }
    for (AxisSet factors : trims.loops) {
      counts_.push_back(1);
      for (AxisId f : factors) counts_.back() *= static_cast<double>(extents[f]);
    }
  }

  Iterations run() {
    out_.share.assign(trims_.loops.size(), 0);
    out_.blocks.clear();
    const Samples samples(varying_, extents_);
    const auto each = 1 / static_cast<double>(samples.count());
    for (int64_t i = 0; i < samples.count(); ++i) {
      samples.put(i, index_);
      for (AxisId f : growing_) index_[f] = extents_[f] - 1 - index_[f];
      look_at_block();
      double all = 0;
      for (size_t l = 0; l < shares_.size(); ++l) {
        out_.share[l] += shares_[l] * each;
        all += shares_[l] * counts_[l];
      }
      out_.blocks.push_back(all);
    }
    scale_by_mean();
    return std::move(out_);
  }

 private:
  // Whether blocks run more iterations the later they are along `f`: then code begins with the
  // last.
  bool grow_along(AxisId f) const {
    bool grow = false, shrink = false;
    for (const TrimmedLoop& t : trims_.trimmed) {
      for (const TrimBound& b : t.bounds) {
        for (const TrimBound::Item& i : b.items) {
          grow |= i.factor == f && i.coefficient < 0;
          shrink |= i.factor == f && i.coefficient > 0;
        }
      }
    }
    return grow && !shrink;
  }

  // Of one trimmed loop, in the mean over the iterations of those around it.
  double share_of(size_t trimmed) {
    const int64_t extent = extents_[trims_.trimmed[trimmed].factor];
    // What is left of a loop of one iteration is no loop, and runs in any case.
    if (extent <= 1) return 1;
    const Samples& outer = around_[trimmed];
    double run = 0;
    for (int64_t i = 0; i < outer.count(); ++i) {
      outer.put(i, index_);
      run += static_cast<double>(intervals_[trimmed].at(index_));
    }
    return run / static_cast<double>(outer.count() * extent);
  }

  // An inner loop runs in the iterations of those around it.
  void look_at_block() {
    shares_.assign(trims_.loops.size(), 1);
    for (size_t t = 0; t < trims_.trimmed.size(); ++t) {
      const double own = share_of(t);
      const size_t loop = trims_.trimmed[t].loop;
      for (size_t l = loop; l < shares_.size(); ++l) {
        if (!trims_.loops[l].contains(trims_.loops[loop])) break;
        shares_[l] *= own;
      }
    }
  }

  void scale_by_mean() {
    double mean = 0;
    for (double b : out_.blocks) mean += b / static_cast<double>(out_.blocks.size());
    if (mean <= 0) {
      out_.blocks.assign(1, 1);
      return;
    }
    for (double& b : out_.blocks) b /= mean;
    out_.longest = *std::max_element(out_.blocks.begin(), out_.blocks.end());
  }

  const Trims& trims_;
  const std::vector<int64_t>& extents_;
  std::vector<Interval> intervals_;  // of each trimmed loop
  std::vector<Samples> around_;      // likewise, of the loops around it
  std::vector<AxisId> varying_;      // grid factors in conditions, slowest first
  std::vector<AxisId> growing_;      // of these, those that start with their last value
  std::vector<double> counts_;       // iterations of each loop of the kernel
  std::vector<double> shares_;       // of these at the block that is looked at
  std::vector<int64_t> index_;
  Iterations out_;
};

}  // namespace

Trims trims_of(const Kernel& kernel, const std::vector<int64_t>& size_of) {
  Trims out;
  out.grid = kernel.grid;
  const std::vector<AxisSet> none(kernel.factors.size());
  walk(
      kernel.body, {}, size_of, none, [](const Loop& loop) { return loop.trim; }, out);
  return out;
}

Trims trims_to_come(const Kernel& kernel, const std::vector<int64_t>& size_of) {
  Trims out;
  out.grid = kernel.grid;
  std::vector<AxisSet> strides;
  for (size_t f = 0; f < kernel.factors.size(); ++f) {
    AxisSet inner;
    for (size_t g = f + 1; g < kernel.factors.size(); ++g) {
      if (kernel.factors[g].axis == kernel.factors[f].axis) inner.insert(static_cast<AxisId>(g));
    }
    strides.push_back(inner);
  }
  walk(
      kernel.body, {}, size_of, strides, [&](const Loop& loop) { return masks_of(kernel, loop); },
      out);
  return out;
}

Iterations iterations_at(const Trims& trims, const std::vector<int64_t>& extents) {
  return Counter(trims, extents).run();
}

double busiest_place(const Iterations& iterations, double blocks, double places) {
  const double each = blocks / places;
  if (each <= 1) return iterations.longest;
  const auto& all = iterations.blocks;
  const double last = std::min(1.0, iterations.periods / each) * static_cast<double>(all.size());
  const auto tail = std::clamp(static_cast<std::ptrdiff_t>(std::ceil(last)), std::ptrdiff_t{1},
                               static_cast<std::ptrdiff_t>(all.size()));
  const double late = *std::max_element(all.end() - tail, all.end());
  const double uneven = std::min(1.0, 2 * (1 - 1 / iterations.longest));
  const double wave = (std::ceil(each) - each) * iterations.longest;
  return std::max(iterations.longest, each + (1 - uneven) * wave + uneven * late / 2);
}

// As if the axis that most conditions have were a loop, and all others a grid.
double kept_share(const std::vector<IndexCondition>& conditions,
                  const std::vector<int64_t>& extents) {
  std::vector<int> uses(extents.size(), 0);
  TrimmedLoop loop;
  for (const IndexCondition& c : conditions) {
    if (c.relation == Relation::kEqual) continue;
    add_bounds(c, extents, std::vector<AxisSet>(extents.size()), loop.bounds);
    for (AxisId a : c.expr.axis_set()) ++uses[a];
  }
  if (loop.bounds.empty()) return 1;
  loop.factor = static_cast<AxisId>(std::max_element(uses.begin(), uses.end()) - uses.begin());
  Trims trims;
  for (AxisId a = 0; a < extents.size(); ++a) {
    if (a != loop.factor) trims.grid.push_back(a);
  }
  trims.loops.push_back(AxisSet::of(loop.factor));
  trims.trimmed.push_back(std::move(loop));
  return iterations_at(trims, extents).share[0];
}

}  // namespace sundog::search
