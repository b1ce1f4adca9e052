// Placement goes backwards.  The last kernel stores the outputs; for each term that it needs,
// greatest rank first, it is decided whether the term is loaded from an earlier kernel or computed
// by one of its nodes.  When nothing is needed any more, the kernel's grid and loops follow
// (search/kernel_shape.h), it is lowered and priced, and what it loads is left for the kernels
// before it.  Deciding the top-ranked needed term and no other builds each structure once.
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
constexpr size_t kMostChoices = 24;    // of part counts
constexpr size_t kMostRemembered = 50000;
constexpr size_t kMostOutputsChosen = 12;

}  // namespace

bool Incumbents::offer(int bank, const Structure& s) {
  const bool best = s.us < best_us_;
  best_us_ = std::min(best_us_, s.us);
  auto& list = by_kind_[s.kind];
  const auto before = [](const Entry& a, const Entry& b) {
    return a.structure.us != b.structure.us ? a.structure.us < b.structure.us
                                            : a.structure.key < b.structure.key;
  };
  // Of one kind and equally fast: the same kernels, reached by another order of decisions.
  for (Entry& e : list) {
    if (std::abs(e.structure.us - s.us) > 1e-6 * s.us) continue;
    if (s.key < e.structure.key && e.bank == bank) e.structure = s;
    return best;
  }
  if (static_cast<int>(list.size()) >= kept_per_kind_ && s.us >= list.back().structure.us)
    return best;
  list.push_back({bank, s});
  std::sort(list.begin(), list.end(), before);
  if (static_cast<int>(list.size()) > kept_per_kind_) list.pop_back();
  return best;
}

std::vector<Incumbents::Entry> Incumbents::sorted() const {
  std::vector<Entry> all;
  for (const auto& [kind, list] : by_kind_) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) {
    return a.structure.us != b.structure.us ? a.structure.us < b.structure.us
                                            : a.structure.key < b.structure.key;
  });
  return all;
}

Placement::Placement(const Bank& bank, const TermTable& table, const Machine& machine,
                     const SearchSpace& space, int bank_number, Incumbents& incumbents,
                     Limits& limits, PlacementCounts& counts)
    : bank_(bank),
      table_(table),
      machine_(machine),
      space_(space),
      bank_number_(bank_number),
      incumbents_(incumbents),
      limits_(limits),
      counts_(counts),
      choices_({{}}),
      readers_(table.terms.size(), 0) {
  for (AxisId base : bank.options().parts) {
    std::vector<std::vector<int64_t>> next;
    for (const auto& choice : choices_) {
      for (int64_t n : part_candidates(bank.program().axes[base].extent, machine)) {
        next.push_back(choice);
        next.back().push_back(n);
      }
    }
    choices_ = std::move(next);
  }
  if (choices_.size() > kMostChoices) choices_.resize(kMostChoices);
  for (const RankedTerm& t : table.terms) {
    if (t.leaf == LeafKind::kInput) input_bytes_ += t.total_bytes;
  }
}

void Placement::run(int most_kernels) {
  most_kernels_ = most_kernels;
  reached_.clear();
  done_.clear();
  done_us_.assign(choices_.size(), 0);
  if (choices_.empty()) return;
  RankSet outputs;
  for (int o : table_.outputs) outputs.insert(o);
  kernels(outputs);
}

double Placement::least(const std::vector<float>& us) const {
  return us.empty() ? kInfinite : *std::min_element(us.begin(), us.end());
}

// Produces `pending` by kernels that run before those in done_.
void Placement::kernels(const RankSet& pending) {
  if (limits_.reached()) return;
  const int top = pending.top();
  if (top < 0) {
    record();
    return;
  }
  if (static_cast<int>(done_.size()) >= most_kernels_) return;
  if (space_.prune_dominated && is_dominated(pending)) {
    ++counts_.cut_as_dominated;
    return;
  }
  std::vector<int> rest = pending.members();
  std::erase(rest, top);
  if (rest.size() > kMostOutputsChosen) return;
  const KernelBody outer_body = body_;
  const AxisSet outer_common = common_;
  // All together first: fewer kernels are better more often than not.
  for (uint64_t s = uint64_t{1} << rest.size(); s-- > 0 && !limits_.reached();) {
    body_ = {};
    body_.outputs.push_back(top);
    for (size_t i = 0; i < rest.size(); ++i) {
      if ((s >> i & 1) != 0) body_.outputs.push_back(rest[i]);
    }
    RankSet outs, later = pending;
    double bytes = 0;
    common_ = AxisSet(~uint64_t{0});
    for (int o : body_.outputs) {
      outs.insert(o);
      bytes += table_.terms[static_cast<size_t>(o)].total_bytes;
      common_ = common_ & table_.terms[static_cast<size_t>(o)].axes;
    }
    later.erase(outs);
    fill(outs, later, bytes, {});
  }
  body_ = outer_body;
  common_ = outer_common;
}

// The same terms left to make with as many kernels, at no lower cost for any choice of parts.
bool Placement::is_dominated(const RankSet& pending) {
  uint64_t h = mix(pending.hash(), done_.size());
  for (size_t i = 0; i < readers_.size(); ++i) h = mix(h, readers_[i] > 0 ? 1 : 0);
  auto& known = reached_[h];
  for (const auto& us : known) {
    bool dominated = true;
    for (size_t i = 0; i < us.size(); ++i) dominated = dominated && us[i] < done_us_[i] * 0.9999F;
    if (dominated) return true;
  }
  if (known.size() < 16) known.push_back(done_us_);
  return false;
}

double Placement::slack() const { return most_kernels_ > 2 ? kSlackOfMany : kSlack; }

bool Placement::is_cut(const RankSet& later, double bytes, const WorkTime& work) {
  if (!space_.prune_by_bound) return false;
  double stores = 0;
  for (int y : later.members()) stores += table_.terms[static_cast<size_t>(y)].total_bytes;
  const int launches = later.top() >= 0 ? 2 : 1;
  const double moved = bytes + std::max(0.0, input_bytes_ - read_bytes_) + stores;
  const double busy = std::max({moved / hbm_peak(machine_), work.tensor, work.alu, work.sfu});
  const double us = least(done_us_) + structure_bound(machine_, launches, 0) + busy;
  return us >= incumbents_.best_us() * slack();
}

// A sum over a step or tile of a term with a part, where the outputs lack the part: the split is
// not used as one.
bool Placement::uses_absent_split(const RankedNode& n) const {
  if (!is_reduction(n.node.kind) || bank_.axes()[n.node.axis].level == Level::kPart) return false;
  const AxisId part = bank_.base(bank_.axes()[n.node.axis].base).part;
  if (part == kNoAxis || common_.has(part)) return false;
  return std::any_of(n.operands.begin(), n.operands.end(),
                     [&](int o) { return table_.terms[static_cast<size_t>(o)].axes.has(part); });
}

void Placement::fill(RankSet need, RankSet later, double bytes, WorkTime work) {
  if (limits_.spend()) return;
  ++counts_.states;
  if (is_cut(later, bytes, work)) {
    ++counts_.cut_by_bound;
    return;
  }
  const int x = need.top();
  if (x < 0) {
    leaf(later, work);
    return;
  }
  need.erase(x);
  const RankedTerm& t = table_.terms[static_cast<size_t>(x)];
  if (t.leaf == LeafKind::kConstant) {
    fill(need, later, bytes, work);
    return;
  }
  if (t.leaf != LeafKind::kNone) {
    const bool first = readers_[static_cast<size_t>(x)]++ == 0;
    if (first) read_bytes_ += t.total_bytes;
    body_.items.push_back({x, -1});
    fill(need, later, bytes + t.total_bytes, work);
    body_.items.pop_back();
    if (--readers_[static_cast<size_t>(x)] == 0) read_bytes_ -= t.total_bytes;
    return;
  }
  for (size_t i = 0; i < t.nodes.size(); ++i) {
    if (t.nodes[i].dropped) continue;
    if (space_.prune_duplicates && uses_absent_split(t.nodes[i])) {
      ++counts_.cut_as_duplicate;
      continue;
    }
    RankSet next = need;
    for (int o : t.nodes[i].operands) next.insert(o);
    body_.items.push_back({x, static_cast<int>(i)});
    WorkTime more = work;
    more += t.nodes[i].work;
    fill(next, later, bytes, more);
    body_.items.pop_back();
    if (limits_.reached()) return;
  }
  const bool is_output =
      std::find(body_.outputs.begin(), body_.outputs.end(), x) != body_.outputs.end();
  if (!t.storable || is_output || static_cast<int>(done_.size()) + 1 >= most_kernels_) return;
  later.insert(x);
  body_.items.push_back({x, -1});
  fill(need, later, bytes + t.total_bytes, work);
  body_.items.pop_back();
}

// Whether a kernel that stores, loads and reduces the same, in the same loops, was seen with no
// more work of any kind in no more steps.  What is left are variations of elementwise terms.
bool Placement::does_more(const KernelBody& body, const KernelShape& shape, const WorkTime& work) {
  uint64_t key = mix(shape.looped.bits(), shape.grid_parts.bits());
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
  }
  for (int o : body.outputs) key = mix(key, static_cast<uint64_t>(o) + 1000003);
  auto& seen = efforts_[key];
  for (const Effort& e : seen) {
    if (e.items <= body.items.size() && e.work.tensor <= work.tensor && e.work.alu <= work.alu &&
        e.work.sfu <= work.sfu) {
      return true;
    }
  }
  seen.push_back({work, body.items.size()});
  return false;
}

void Placement::leaf(const RankSet& later, const WorkTime& work) {
  const std::vector<PlacedKernel> placed = place(body_, work);
  const KernelBody saved_body = body_;
  const AxisSet saved_common = common_;
  for (const PlacedKernel& k : placed) {
    const std::vector<float> before = done_us_;
    for (size_t i = 0; i < done_us_.size(); ++i) done_us_[i] += k.us[i];
    if (is_cut(later, 0, {})) {
      ++counts_.cut_by_bound;
    } else {
      done_.push_back(k);
      kernels(later);
      done_.pop_back();
    }
    done_us_ = before;
    if (limits_.reached()) break;
  }
  body_ = saved_body;
  common_ = saved_common;
}

const std::vector<PlacedKernel>& Placement::place(const KernelBody& body, const WorkTime& work) {
  static const std::vector<PlacedKernel> kNone;
  uint64_t h = 1;
  for (const BodyItem& i : body.items)
    h = mix(mix(h, static_cast<uint64_t>(i.term)), static_cast<uint64_t>(i.node));
  for (int o : body.outputs) h = mix(h, static_cast<uint64_t>(o) + 1000003);
  if (const auto it = placed_.find(h); it != placed_.end()) return it->second;
  std::vector<PlacedKernel> out;
  const std::vector<KernelShape> shapes = kernel_shapes(bank_, table_, body);
  if (shapes.empty()) ++counts_.cut_as_duplicate;
  for (const KernelShape& shape : shapes) {
    if (space_.prune_dominated && does_more(body, shape, work)) {
      ++counts_.cut_as_dominated;
      continue;
    }
    PlacedKernel k{body, shape, {}, {}};
    ++counts_.kernels_priced;
    if (price(k)) {
      out.push_back(std::move(k));
    } else {
      ++counts_.cut_unfit;
    }
  }
  if (placed_.size() >= kMostRemembered) placed_.clear();
  return placed_[h] = std::move(out);
}

bool Placement::price(PlacedKernel& kernel) {
  Lowerer lowerer(bank_, table_);
  lowerer.add_kernel(kernel.body, kernel.shape, {});
  KernelPlan& plan = lowerer.plan().kernels[0];
  const KernelProfile p = profile(lowerer.plan().graph, plan.kernel, plan.wide);
  const auto& parts = lowerer.plan().parts;
  bool any = false;
  std::optional<SizedKernel> sized;
  // Kernels that are cut alike are best at much the same tiles.
  std::vector<uint64_t> cut;
  for (const Split& s : plan.splits) {
    cut.push_back(uint64_t{s.axis} * 8 + (s.looped ? 1 : 0) + (s.outer == kNoFactor ? 2 : 0) +
                  (s.part == kNoFactor ? 4 : 0));
  }
  const auto known = good_tiles_.find(cut);
  for (size_t c = 0; c < choices_.size(); ++c) {
    // The plan numbers the parts that it uses; a choice counts those of the bank.
    std::vector<int64_t> counts;
    for (const Part& part : parts) {
      size_t at = 0;
      for (AxisId base : bank_.options().parts) {
        if (base == part.axis) counts.push_back(choices_[c][at]);
        ++at;
      }
    }
    if (c == 0 || !parts.empty()) {
      const bool first = !sized.has_value();
      const bool warm = !first || known != good_tiles_.end();
      const std::vector<int64_t> near = !first ? sized->tiles
                                        : warm ? known->second
                                               : std::vector<int64_t>{};
      sized = size_kernel(plan, p, counts, machine_, warm ? &near : nullptr);
      if (!sized && warm) sized = size_kernel(plan, p, counts, machine_);
      if (sized && first) good_tiles_[cut] = sized->tiles;
    }
    kernel.us.push_back(sized ? static_cast<float>(sized->us) : kInfinite);
    kernel.tiles.push_back(sized ? sized->tiles : std::vector<int64_t>{});
    any = any || sized.has_value();
  }
  return any;
}

std::string Placement::kind() const {
  std::string out = std::to_string(done_.size()) + "k";
  for (size_t i = done_.size(); i-- > 0;) {
    out += "/";
    for (AxisId a : done_[i].shape.looped) out += bank_.program().axes[a].name + ",";
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
  ++counts_.structures;
  const auto best = std::min_element(done_us_.begin(), done_us_.end());
  if (*best == kInfinite) return;
  Structure s;
  s.us = *best;
  if (s.us >= incumbents_.best_us() * slack()) return;
  s.choice = static_cast<size_t>(best - done_us_.begin());
  s.kernels.assign(done_.rbegin(), done_.rend());
  s.kind = kind();
  s.key = std::to_string(bank_number_) + ":" + key();
  if (incumbents_.offer(bank_number_, s)) limits_.note_best();
}

}  // namespace sundog::search
