// Placement goes backwards.  The last kernel stores the outputs; for each term that it needs,
// greatest rank first, it is decided whether the term is loaded from an earlier kernel or computed
// by one of its nodes.  When nothing is needed any more, the kernel's grid and loops follow
// (search/kernel_shape.h), it is lowered and priced, and what it loads is left for the kernels
// before it.  Deciding the top-ranked needed term and no other builds each structure once; so each
// kernel stores the top-ranked term that is still to be stored.  An output may be put off, though,
// where the kernel that stores it stores something for one that then runs behind it: a gradient and
// the parts of a loss are made in one pass over the logits, and the loss joins its parts last.
//
// The reference system goes forwards, one operator at a time, and visits between four and some
// thousand times as many states on the same programs: most of what it builds is needed by nobody.
#include "search/place_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/check.h"
#include "search/bound.h"

namespace sundog::search {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
// Structures this much slower than the best one are still looked at: there is more than one kind to
// keep, and numbers or the clock may refuse the first.
constexpr double kSlack = 1.25;
constexpr double kSlackOfMany = 1.02;  // of more than two kernels: seldom better, and many
constexpr size_t kMostOutputsChosen = 12;
constexpr size_t kMostPutOff = 4;  // outputs of a program of which some are put off

}  // namespace

PlacementCounts& PlacementCounts::operator+=(const PlacementCounts& o) {
  states += o.states;
  kernels_priced += o.kernels_priced;
  structures += o.structures;
  cut_by_bound += o.cut_by_bound;
  cut_as_duplicate += o.cut_as_duplicate;
  cut_as_dominated += o.cut_as_dominated;
  cut_as_outclassed += o.cut_as_outclassed;
  cut_unfit += o.cut_unfit;
  return *this;
}

Placement::Placement(const Bank& bank, const TermTable& table, const Machine& machine,
                     const SearchSpace& space, PlacementTables& tables)
    : bank_(bank),
      table_(table),
      machine_(machine),
      space_(space),
      tables_(tables),
      pricer_(bank, table, machine, space, tables),
      completion_(bank, table, machine, space, tables, pricer_),
      outcome_(Incumbents(1)) {
  for (const RankedTerm& t : table.terms) {
    if (t.leaf == LeafKind::kInput) input_bytes_ += t.total_bytes;
  }
}

PlacementOutcome Placement::run(const PlacementTask& task, double best_us, Quantum& quantum) {
  bank_number_ = task.bank;
  most_kernels_ = task.kernels;
  quantum_ = &quantum;
  outcome_ = PlacementOutcome(Incumbents(std::max(1, space_.kept_per_kind), best_us));
  pricer_.want(best_us * slack());
  RankSet outputs;
  for (int o : table_.outputs) outputs.insert(o);
  for (const Subtree& subtree : task.subtrees) {
    if (pricer_.choices().empty()) break;
    done_.clear();
    put_off_ = {};
    done_us_.assign(pricer_.choices().size(), 0);
    readers_.assign(table_.terms.size(), 0);
    read_bytes_ = 0;
    if (quantum.reached()) {
      decisions_.leave(subtree);
    } else {
      decisions_.begin(subtree, &quantum);
      kernels(outputs);
    }
  }
  outcome_.rest = decisions_.take_rest();
  outcome_.counts.states = quantum.used();
  KernelPricer::Counts priced = pricer_.counts();
  priced += completion_.counts();
  outcome_.counts.kernels_priced = priced.priced;
  outcome_.counts.cut_as_outclassed = priced.outclassed;
  outcome_.counts.cut_unfit = priced.unfit;
  return std::exchange(outcome_, PlacementOutcome(Incumbents(1)));
}

double Placement::least(const std::vector<float>& us) const {
  return us.empty() ? kInfinite : *std::min_element(us.begin(), us.end());
}

// Produces `pending` by kernels that run before those in done_.
void Placement::kernels(const RankSet& pending) {
  const int top = pending.top();
  if (top < 0) {
    record();
    return;
  }
  if (static_cast<int>(done_.size()) >= most_kernels_) return;
  if (space_.prune_dominated && is_dominated(pending)) {
    cut(PruneRule::kDominated, outcome_.counts.cut_as_dominated, least(done_us_));
    return;
  }
  std::vector<int> rest = pending.members();
  std::erase(rest, top);
  if (rest.size() > kMostOutputsChosen) return;
  const KernelBody outer_body = body_;
  const AxisSet outer_common = common_;
  const PutOff outer_put_off = put_off_;
  const std::vector<std::vector<int>> without_top = outputs_without_top(pending);
  // All together first: fewer kernels are better more often than not.
  const uint64_t subsets = uint64_t{1} << rest.size();
  for (Choice c(decisions_, subsets + without_top.size()); c.next();) {
    std::vector<int> outputs{top};
    if (c.index() < subsets) {
      const uint64_t s = subsets - 1 - c.index();
      note(TraceKind::kOutputs, top, s);
      for (size_t i = 0; i < rest.size(); ++i) {
        if ((s >> i & 1) != 0) outputs.push_back(rest[i]);
      }
    } else {
      outputs = without_top[c.index() - subsets];
      note(TraceKind::kOutputs, outputs[0], outputs.size() - 1);
      put_off(pending, outputs);
    }
    if (make_put_off(outputs)) kernel_for(outputs, pending);
    put_off_ = outer_put_off;
  }
  body_ = outer_body;
  common_ = outer_common;
}

void Placement::kernel_for(std::vector<int> outputs, const RankSet& pending) {
  body_ = {};
  body_.outputs = std::move(outputs);
  RankSet outs;
  Partial start;
  start.later = pending;
  common_ = AxisSet(~uint64_t{0});
  for (int o : body_.outputs) {
    outs.insert(o);
    start.bytes += table_.terms[static_cast<size_t>(o)].total_bytes;
    common_ = common_ & table_.terms[static_cast<size_t>(o)].axes;
  }
  start.later.erase(outs);
  start.later_us = least_us(start.later);
  fill(outs, start);
}

// What a kernel may store besides that, its first one on top: outputs of the program, of which some
// that rank higher are put off.
std::vector<std::vector<int>> Placement::outputs_without_top(const RankSet& pending) const {
  std::vector<int> outputs;
  for (int o : table_.outputs) {
    if (pending.has(o) && std::find(outputs.begin(), outputs.end(), o) == outputs.end()) {
      outputs.push_back(o);
    }
  }
  std::sort(outputs.rbegin(), outputs.rend());
  const bool may = kernels_left() > 0 && outputs.size() > 1 && outputs[0] == pending.top() &&
                   outputs.size() <= kMostPutOff;
  std::vector<std::vector<int>> out;
  if (!may) return out;
  for (uint64_t s = (uint64_t{1} << (outputs.size() - 1)) - 1; s > 0; --s) {
    out.emplace_back();
    for (size_t i = 1; i < outputs.size(); ++i) {
      if ((s >> (i - 1) & 1) != 0) out.back().push_back(outputs[i]);
    }
  }
  return out;
}

void Placement::put_off(const RankSet& pending, const std::vector<int>& stored) {
  if (put_off_.outputs.top() < 0) {
    put_off_.pending = pending;
    for (int o : stored) put_off_.pending.erase(o);
  }
  for (int o : table_.outputs) {
    if (pending.has(o) && o > stored[0]) put_off_.outputs.insert(o);
  }
}

// Whether a kernel may store that: one that was put off only beside what is for a later kernel,
// since the order of kernels that have nothing to do with each other is no choice.
bool Placement::make_put_off(const std::vector<int>& outputs) {
  bool any = false, is_new = false;
  for (int o : outputs) {
    any = any || put_off_.outputs.has(o);
    is_new = is_new || !put_off_.pending.has(o);
    put_off_.outputs.erase(o);
  }
  return !any || is_new;
}

// The same terms left to make with as many kernels, at no lower cost for any choice of parts.
bool Placement::is_dominated(const RankSet& pending) {
  if (decisions_.repeating()) return false;
  uint64_t h = mix(pending.hash(), done_.size() * 64 + static_cast<uint64_t>(most_kernels_));
  for (size_t i = 0; i < readers_.size(); ++i) h = mix(h, readers_[i] > 0 ? 1 : 0);
  if (put_off_.outputs.top() >= 0) {
    h = mix(mix(h, put_off_.outputs.hash()), put_off_.pending.hash());
  }
  const auto is_cheaper = [&](const auto& us) { return cheaper(us, done_us_); };
  const auto& known = tables_.known().reached;
  if (const auto it = known.find(h);
      it != known.end() && std::any_of(it->second.begin(), it->second.end(), is_cheaper)) {
    return true;
  }
  auto& here = outcome_.news.reached[h];
  if (std::any_of(here.begin(), here.end(), is_cheaper)) return true;
  if (here.size() < kMostReached) here.push_back(done_us_);
  return false;
}

bool Placement::load_is_allowed(int x) const {
  return !constraint_ || !constraint_->nothing_else || constraint_->stored.has(x);
}

bool Placement::meets_constraint() const {
  if (!constraint_) return true;
  RankSet missing = constraint_->stored;
  bool computed = constraint_->computed < 0;
  for (const PlacedKernel& k : done_) {
    for (int o : k.body.outputs) missing.erase(o);
    for (const BodyItem& i : k.body.items) {
      computed = computed || (i.term == constraint_->computed && i.node >= 0);
    }
  }
  return computed && missing.top() < 0;
}

void Placement::note(TraceKind kind, int term, size_t index) {
  if (!tracing_) return;
  const auto depth = static_cast<uint16_t>(decisions_.taken().size() - 1);
  outcome_.trace.push_back({kind, PruneRule::kBound, depth, term, static_cast<uint32_t>(index), 0});
}

void Placement::note_us(TraceKind kind, double us) {
  if (!tracing_) return;
  outcome_.trace.push_back({kind, PruneRule::kBound, 0, -1, 0, static_cast<float>(us)});
}

void Placement::cut(PruneRule rule, uint64_t& count, double us) {
  ++count;
  if (!tracing_) return;
  outcome_.trace.push_back({TraceKind::kCut, rule, 0, -1, 0, static_cast<float>(us)});
}

double Placement::slack() const { return most_kernels_ > 2 ? kSlackOfMany : kSlack; }

// What making `later` takes at least, by the kernels that are left for it.
double Placement::least_us(const RankSet& later) {
  if (later.top() < 0) return 0;
  if (kernels_left() < 1) return kInfinite;
  double stores = 0;
  for (int y : later.members()) stores += table_.terms[static_cast<size_t>(y)].total_bytes;
  const double us = structure_bound(machine_, 1, 0) + stores / hbm_peak(machine_);
  if (kernels_left() > 1 || !space_.prune_by_bound) return us;
  return std::max(us, completion_.least_us(later, *quantum_, outcome_.news));
}

bool Placement::is_cut(int open, const Partial& so_far) {
  if (!space_.prune_by_bound) return so_far.later_us == kInfinite;
  const WorkTime& work = so_far.work;
  double stores = 0;
  for (int y : so_far.later.members()) stores += table_.terms[static_cast<size_t>(y)].total_bytes;
  const int launches = open + (so_far.later.top() >= 0 ? 1 : 0);
  const double moved = so_far.bytes + std::max(0.0, input_bytes_ - read_bytes_) + stores;
  const double busy = std::max({moved / hbm_peak(machine_), work.tensor, work.alu, work.sfu});
  const double here =
      std::max({so_far.bytes / hbm_peak(machine_), work.tensor, work.alu, work.sfu});
  const double overlap = open > 0 && launches > open ? machine_.overlap_us : 0;
  bound_us_ = least(done_us_) +
              std::max(structure_bound(machine_, launches, 0) + busy,
                       structure_bound(machine_, open, 0) + here + so_far.later_us - overlap);
  return bound_us_ >= outcome_.found.best_us() * slack();
}

void Placement::fill(RankSet need, const Partial& so_far) {
  if (!decisions_.repeating()) quantum_->spend();
  if (is_cut(1, so_far)) {
    cut(PruneRule::kBound, outcome_.counts.cut_by_bound, bound_us_);
    return;
  }
  const int x = need.top();
  if (x < 0) {
    leaf(so_far);
    return;
  }
  need.erase(x);
  const RankedTerm& t = table_.terms[static_cast<size_t>(x)];
  if (t.leaf == LeafKind::kConstant) {
    fill(need, so_far);
    return;
  }
  if (t.leaf != LeafKind::kNone) {
    const bool first = readers_[static_cast<size_t>(x)]++ == 0;
    if (first) read_bytes_ += t.total_bytes;
    body_.items.push_back({x, -1});
    Partial next = so_far;
    next.bytes += t.total_bytes;
    fill(need, next);
    body_.items.pop_back();
    if (--readers_[static_cast<size_t>(x)] == 0) read_bytes_ -= t.total_bytes;
    return;
  }
  compute(x, need, so_far);
}

// Each node of x in turn, then loading it from an earlier kernel.
void Placement::compute(int x, const RankSet& need, const Partial& so_far) {
  const RankedTerm& t = table_.terms[static_cast<size_t>(x)];
  const bool is_output =
      std::find(body_.outputs.begin(), body_.outputs.end(), x) != body_.outputs.end();
  const bool must_load = constraint_ && constraint_->stored.has(x) && !is_output;
  for (Choice c(decisions_, t.nodes.size() + 1); c.next();) {
    Partial next = so_far;
    if (c.index() == t.nodes.size()) {
      if (!t.storable || is_output || kernels_left() < 1 || !load_is_allowed(x)) return;
      note(TraceKind::kLoad, x, 0);
      next.bytes += t.total_bytes;
      next.later.insert(x);
      next.later_us = least_us(next.later);
      body_.items.push_back({x, -1});
      fill(need, next);
      body_.items.pop_back();
      continue;
    }
    const RankedNode& n = t.nodes[c.index()];
    if (n.dropped || must_load) continue;
    note(TraceKind::kCompute, x, c.index());
    if (space_.prune_duplicates && uses_absent_split(bank_, table_, common_, n)) {
      cut(PruneRule::kDuplicate, outcome_.counts.cut_as_duplicate, 0);
      continue;
    }
    RankSet needed = need;
    for (int o : n.operands) needed.insert(o);
    next.work += n.work;
    body_.items.push_back({x, static_cast<int>(c.index())});
    fill(needed, next);
    body_.items.pop_back();
  }
}

// Whether a kernel that stores, loads and reduces the same, in the same loops, was seen with no
// more work of any kind in no more steps.  What is left are variations of elementwise terms.
bool Placement::does_more(uint64_t hash, const KernelShape& shape, const WorkTime& work) {
  const KernelBody& body = body_;
  uint64_t key = mix(shape.looped.bits(), shape.grid_parts.bits());
  key = mix(key, shape.inner_factors.bits());
  std::set<int> summed_products;  // how a summed product is cut decides what is a matrix product
  for (const BodyItem& item : body.items) {
    if (item.node < 0) continue;
    const RankedNode& n =
        table_.terms[static_cast<size_t>(item.term)].nodes[static_cast<size_t>(item.node)];
    if (is_reduction(n.node.kind)) summed_products.insert(n.operands.back());
  }
  for (size_t i = 0; i < body.items.size(); ++i) {
    const BodyItem& item = body.items[i];
    const RankedTerm& t = table_.terms[static_cast<size_t>(item.term)];
    const bool reduces =
        item.node >= 0 && is_reduction(t.nodes[static_cast<size_t>(item.node)].node.kind);
    const bool summed = i > 0 && item.node >= 0 && summed_products.contains(item.term);
    if (item.node >= 0 && !reduces && !summed) continue;
    key = mix(mix(key, static_cast<uint64_t>(item.term)), static_cast<uint64_t>(item.node));
    key = mix(mix(key, static_cast<uint64_t>(shape.stage[i])), shape.events[i]);
    key = mix(key, static_cast<uint64_t>(shape.inner_at[i]));
  }
  for (int o : body.outputs) key = mix(key, static_cast<uint64_t>(o) + 1000003);
  const Effort mine{work, static_cast<uint32_t>(body.items.size()), hash};
  bool listed = false;
  const auto beats = [&](const Effort& e) {
    listed = listed || e.owner == hash;
    return e.owner != hash && no_more(e, mine);
  };
  const auto& known = tables_.known().efforts;
  const auto it = known.find(key);
  if (it != known.end() && std::any_of(it->second.begin(), it->second.end(), beats)) return true;
  auto& here = outcome_.news.efforts[key];
  if (std::any_of(here.begin(), here.end(), beats)) return true;
  if (!listed) here.push_back(mine);
  return false;
}

void Placement::leaf(const Partial& whole) {
  const uint64_t h = hash_of(body_);
  const std::vector<KernelShape>& shapes = pricer_.shapes_of(body_, h);
  if (shapes.empty()) cut(PruneRule::kDuplicate, outcome_.counts.cut_as_duplicate, 0);
  const KernelBody saved_body = body_;
  const AxisSet saved_common = common_;
  const std::vector<float> before = done_us_;
  Partial rest;
  rest.later = whole.later;
  rest.later_us = whole.later_us;
  for (Choice c(decisions_, shapes.size()); c.next();) {
    const KernelShape& shape = shapes[c.index()];
    const uint64_t hash = mix(h, c.index());
    note(TraceKind::kShape, -1, c.index());
    if (space_.prune_dominated && does_more(hash, shape, whole.work)) {
      cut(PruneRule::kDominated, outcome_.counts.cut_as_dominated, least(done_us_));
      continue;
    }
    const Price& price = price_of(hash, shape);
    if (!price.fits()) {
      uint64_t counted_when_priced = 0;
      cut(PruneRule::kDoesNotFit, counted_when_priced, 0);
      continue;
    }
    // Behind others it starts before they are done.
    const auto saved = static_cast<float>(rest.later.top() >= 0 ? machine_.overlap_us : 0);
    for (size_t i = 0; i < done_us_.size(); ++i) done_us_[i] = before[i] + price.us[i] - saved;
    if (is_cut(0, rest)) {
      cut(PruneRule::kBound, outcome_.counts.cut_by_bound, bound_us_);
    } else {
      done_.push_back({body_, shape, static_cast<uint32_t>(c.index()), price.us, price.tiles});
      kernels(rest.later);
      done_.pop_back();
      body_ = saved_body;
      common_ = saved_common;
    }
    done_us_ = before;
  }
}

// What tiles are good is news even where another task has priced the kernel: what a task finds must
// not depend on which of them came first.
const Price& Placement::price_of(uint64_t hash, const KernelShape& shape) {
  const Price* known = pricer_.known(hash);
  if (known == nullptr) {
    quantum_->check();
    known = &pricer_.price(hash, body_, shape);
  }
  if (known->round != tables_.round()) return *known;
  quantum_->spend_work(kStatesOfPrice);
  note_us(TraceKind::kPrice, least(known->us));
  KernelPricer::note_sizes(*known, outcome_.news.good_sizes);
  return *known;
}

std::string Placement::kind() const {
  std::string out = std::to_string(done_.size()) + "k";
  for (size_t i = done_.size(); i-- > 0;) {
    out += "/";
    for (AxisId a : done_[i].shape.looped) out += bank_.program().axes[a].name + ",";
    for (AxisId a : done_[i].shape.inner_factors) {
      out += "in:" + bank_.program().axes[bank_.axes()[a].base].name + ",";
    }
    for (AxisId p : done_[i].shape.grid_parts) out += "s" + std::to_string(p);
    for (const BodyItem& item : done_[i].body.items) {
      const RankedTerm& t = table_.terms[static_cast<size_t>(item.term)];
      if (item.node < 0) continue;
      if (t.nodes[static_cast<size_t>(item.node)].node.kind == NodeKind::kOnlineSum) {
        out += "o";
        break;
      }
    }
  }
  return out;
}

std::string Placement::key() const {
  std::string out;
  for (const PlacedKernel& k : done_) {
    for (const BodyItem& i : k.body.items) {
      out += std::to_string(i.term) + "." + std::to_string(i.node) + " ";
    }
    out += "|";
  }
  return out;
}

void Placement::record() {
  ++outcome_.counts.structures;
  const auto best = std::min_element(done_us_.begin(), done_us_.end());
  note_us(TraceKind::kStructure, *best);
  if (*best == kInfinite || !meets_constraint()) return;
  Structure s;
  s.us = *best;
  if (s.us >= outcome_.found.best_us() * slack()) return;
  s.choice = static_cast<size_t>(best - done_us_.begin());
  s.kernels.assign(done_.rbegin(), done_.rend());
  s.kind = kind();
  s.key = std::to_string(bank_number_) + ":" + key();
  if (outcome_.found.offer(bank_number_, s)) outcome_.best_at = quantum_->seconds();
}

}  // namespace sundog::search
