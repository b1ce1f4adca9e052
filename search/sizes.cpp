// Sizes by coordinate descent.  A kernel has one open number a split; the candidates are what the
// hardware likes (multiples of the tensor-core atom, vectors) and what the shape offers (divisors,
// the whole axis, one element).  All combinations would be thousands a kernel; starting from a
// small and a large tile and improving one axis at a time until nothing changes needs some hundred
// evaluations and gives the same best on every kernel where both were run to the end.
#include "search/sizes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "core/arithmetic.h"
#include "core/check.h"
#include "core/schedule/cluster.h"
#include "core/via.h"
#include "search/library_kernel.h"

namespace sundog::search {
namespace {

constexpr int64_t kAtom = 16;           // rows of the tensor-core atom
constexpr int64_t kHalfAtom = 8;        // its columns
constexpr int64_t kWidestTile = 256;    // of an axis that is cut over blocks
constexpr int64_t kLongestRun = 8192;   // likewise, of a kernel without products
constexpr int64_t kLongestStep = 1024;  // of a loop, unless it holds the whole axis
constexpr int64_t kLongestRow = 65536;  // held whole
constexpr int kMostParts = 64;
constexpr int64_t kLongPart = 1024;  // elements of one of more parts than that,
constexpr int64_t kMostLongParts = 1024;
constexpr int kMostSweeps = 6;
constexpr int kMostPairSweeps = 3;
constexpr double kFewCombinations = 64;  // of sizes: all of them are tried

}  // namespace

std::vector<int64_t> tile_candidates(int64_t extent, bool looped, const Machine& machine,
                                     bool alone, bool products) {
  if (extent <= 1) return {std::max<int64_t>(extent, 0)};
  std::vector<int64_t> out;
  if (!looped || !alone) out.push_back(1);
  const int64_t widest = looped ? kLongestStep : kWidestTile;
  if (extent <= (looped ? kLongestRow : kWidestTile)) out.push_back(extent);
  const int64_t longest = looped || products ? widest : kLongestRun;
  for (int64_t t = kAtom; t < extent && t <= longest; t *= 2) out.push_back(t);
  if (!looped || !alone) {
    for (int64_t t : {2, 4, 8}) {
      if (t < extent) out.push_back(t);
    }
  }
  if (!looped) {
    // Multiples of the atom that divide the axis; of an axis that none divides, those that waste
    // little.
    for (int64_t t = kAtom; t < extent && t <= widest; t += kAtom) {
      const int64_t waste = ceil_div(extent, t) * t - extent;
      if (waste == 0 || (extent % kAtom != 0 && waste < kAtom)) out.push_back(t);
    }
    // Tiles of which an axis alone gives every SM the same number, one to four.
    for (int64_t blocks = 1; blocks <= 4; ++blocks) {
      const int64_t even = ceil_div(extent, blocks * static_cast<int64_t>(machine.sms));
      const int64_t t = ceil_div(even, kHalfAtom) * kHalfAtom;
      if (t < extent && t <= widest && t >= kAtom) out.push_back(t);
    }
  } else {
    // Whole rows are also cut to a handful of equal steps, so that long rows stay in registers.
    for (int64_t steps = 2; steps <= 8; steps *= 2) {
      const int64_t t = ceil_div(ceil_div(extent, steps), kAtom) * kAtom;
      if (t > widest && t < extent && t <= kLongestRow) out.push_back(t);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<int64_t> part_candidates(int64_t extent, const Machine& machine) {
  std::set<int64_t> out;
  const int64_t most = std::min<int64_t>(kMostParts, ceil_div(extent, 2 * kAtom));
  // Powers of two, and counts that fill the device evenly whatever else is on the grid.
  for (int64_t n = 2; n <= most; n *= 2) out.insert(n);
  for (int64_t n = 3; n <= most; n *= 2) {
    if (static_cast<int64_t>(machine.sms) % n == 0) out.insert(n);
  }
  for (int64_t n : {static_cast<int64_t>(machine.sms) / 4, static_cast<int64_t>(machine.sms) / 6}) {
    if (n >= 2 && n <= most) out.insert(n);
  }
  // Parts of a very long axis, whose blocks may be all that there are.
  for (int64_t n = static_cast<int64_t>(machine.sms); n * kLongPart <= extent; n *= 2) {
    if (n > kMostLongParts) break;
    out.insert(n);
  }
  std::vector<int64_t> list;
  for (int64_t n : out) {
    if (ceil_div(extent, part_extent(extent, n)) == n) list.push_back(n);  // none is empty
  }
  return list;
}

std::vector<int64_t> priced_extents(const Kernel& kernel) {
  std::vector<int64_t> extents = factor_extents(kernel);
  for (int64_t& extent : extents) extent = std::max<int64_t>(extent, 1);
  return extents;
}

namespace {

class Descent {
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

 public:
  Descent(KernelPlan& plan, const KernelProfile& profile, const std::vector<int64_t>& parts,
          const Machine& machine)
      : plan_(plan), profile_(profile), parts_(parts), machine_(machine) {
    const auto loops = std::count_if(plan.splits.begin(), plan.splits.end(),
                                     [](const Split& s) { return s.looped; });
    const bool products = std::any_of(profile.roles.begin(), profile.roles.end(),
                                      [](const Role& r) { return r.contraction.has_value(); });
    for (Split& s : plan.splits) {
      if (s.whole_part >= 0) s.extent = parts[static_cast<size_t>(s.whole_part)];
      const int64_t extent = part_extent(s.extent, count(s));
      candidates_.push_back(s.outer == kNoFactor
                                ? std::vector<int64_t>{extent}
                                : tile_candidates(extent, s.looped, machine, loops < 2, products));
    }
    candidates_.emplace_back(std::begin(kWarpChoices), std::end(kWarpChoices));
    extents_ = priced_extents(plan.kernel);
    at_.assign(candidates_.size(), 0);
    for (size_t i = 0; i < at_.size(); ++i) move(i, 0);
  }

  std::optional<SizedKernel> run(const std::vector<int64_t>* near, double good_enough = kInfinite) {
    good_enough_ = good_enough;
    if (combinations() <= kFewCombinations) {
      try_all(0);
    } else if (near != nullptr) {
      const Position from = nearest(*near);
      descend(from, true);
      // Of a kernel that needed whole rows, and narrow tiles beside them: no single step leaves
      // that.
      if (best_at_ == from && good_enough_ == kInfinite && holds_rows(from)) {
        descend(start(1), true);
      }
    } else {
      // Where none of four very different choices fits, one descent decides.
      bool any = false;
      for (int which = 0; which < kStarts; ++which) any |= price_of(start(which)) < kInfinite;
      for (int which = 0; which < (any ? kStarts : 1); ++which) descend(start(which), false);
    }
    if (best_ == kInfinite) return {};
    return SizedKernel{best_, tiles_at(best_at_)};
  }

  // At those tiles, or, where a block does not fit with them, at smaller ones.
  double at(const std::vector<int64_t>& tiles) {
    Position at = nearest(tiles);
    double us = price_of(at);
    while (us == kInfinite && shrink(at)) us = price_of(at);
    return us;
  }

  std::vector<SizedKernel> run_all(size_t most) {
    keep_all_ = true;
    run(nullptr);
    improve_pairs();
    std::vector<SizedKernel> all;
    for (const auto& [at, us] : seen_) all.push_back({us, tiles_at(at)});
    std::stable_sort(all.begin(), all.end(),
                     [](const SizedKernel& a, const SizedKernel& b) { return a.us < b.us; });
    if (all.size() > most) all.resize(most);
    return all;
  }

 private:
  using Position = std::vector<size_t>;  // the candidate of each number

  struct Evaluation {
    double us = kInfinite;
    bool warps_vary = false, chained = false;
  };

  int64_t count(const Split& s) const {
    return s.shared_part < 0 ? 1 : parts_[static_cast<size_t>(s.shared_part)];
  }

  double combinations() const {
    double product = 1;
    for (const auto& list : candidates_) product *= static_cast<double>(list.size());
    return product;
  }

  // Whether a loop has but one iteration there.
  bool holds_rows(const Position& at) const {
    for (size_t i = 0; i < plan_.splits.size(); ++i) {
      if (plan_.splits[i].looped && at[i] > 0 && at[i] + 1 == candidates_[i].size()) return true;
    }
    return false;
  }

  // 0: the smallest tiles, which fit if any do; 1: middling ones; 2: whole loops, one element a
  // block.
  Position start(int which) const {
    Position at;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const auto& list = candidates_[i];
      size_t pick = 0;
      if (i == plan_.splits.size()) {
        // Fewer rows a warp, fewer warps.
      } else if (which == 1) {
        while (pick + 1 < list.size() && list[pick] < 4 * kAtom) ++pick;
      } else if (which == 2 && plan_.splits[i].looped) {
        pick = list.size() - 1;
      } else if (which == 3 && !plan_.splits[i].looped) {
        while (pick + 1 < list.size() && list[pick] < 8 * kAtom) ++pick;
      }
      at.push_back(pick);
    }
    return at;
  }

  Position nearest(const std::vector<int64_t>& tiles) const {
    Position at;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      size_t pick = 0;
      while (pick + 1 < candidates_[i].size() && candidates_[i][pick + 1] <= tiles[i]) ++pick;
      at.push_back(pick);
    }
    return at;
  }

  // Makes the tile smaller that is longest; false: none can be.
  bool shrink(Position& at) const {
    size_t longest = at.size();
    for (size_t i = 0; i < plan_.splits.size(); ++i) {
      if (at[i] == 0) continue;
      if (longest == at.size() || candidates_[i][at[i]] > candidates_[longest][at[longest]]) {
        longest = i;
      }
    }
    if (longest == at.size()) return false;
    --at[longest];
    return true;
  }

  // Takes candidate `pick` for number i.
  void move(size_t i, size_t pick) {
    at_[i] = pick;
    if (i >= plan_.splits.size()) return;
    const Split& s = plan_.splits[i];
    const SplitExtents e = extents_at(s, candidates_[i][pick], count(s));
    extents_[s.inner] = std::max<int64_t>(e.inner, 1);
    if (s.outer != kNoFactor) extents_[s.outer] = std::max<int64_t>(e.outer, 1);
    if (s.part != kNoFactor) extents_[s.part] = std::max<int64_t>(e.part, 1);
  }

  // A position is visited by several descents, and by each more than once.
  double evaluate() {
    uint64_t key = 0;
    for (size_t i = 0; i < at_.size(); ++i) key = key * candidates_[i].size() + at_[i];
    const auto [it, fresh] = evaluated_.try_emplace(key);
    Evaluation& e = it->second;
    if (fresh) {
      const int warps = static_cast<int>(candidates_.back()[at_.back()]);
      const KernelPrice p = price(profile_, plan_.kernel, extents_, machine_, warps, level_);
      e = {p.fits ? p.us : kInfinite, p.warps_vary, level_.chained};
      if (e.us < best_) {
        best_ = e.us;
        best_at_ = at_;
      }
      if (keep_all_ && p.fits) seen_[at_] = e.us;
    }
    warps_vary_ = e.warps_vary;
    chained_ = e.chained;
    return e.us;
  }

  std::vector<int64_t> tiles_at(const Position& at) const {
    std::vector<int64_t> tiles;
    for (size_t i = 0; i < at.size(); ++i) tiles.push_back(candidates_[i][at[i]]);
    return tiles;
  }

  void try_all(size_t i) {
    if (i == at_.size()) {
      evaluate();
      return;
    }
    for (size_t c = 0; c < candidates_[i].size(); ++c) {
      move(i, c);
      try_all(i + 1);
    }
  }

  double price_of(const Position& at) {
    for (size_t i = 0; i < at.size(); ++i) move(i, at[i]);
    return evaluate_fitting();
  }

  // Where a block does not fit with the warps chosen, with more of them, except where that choice
  // means more rows a warp.
  double evaluate_fitting() {
    double us = evaluate();
    while (us == kInfinite && warps_vary_ && !chained_ &&
           at_.back() + 1 < candidates_.back().size()) {
      ++at_.back();
      us = evaluate();
    }
    return us;
  }

  void descend(const Position& from, bool warm) {
    double here = price_of(from);
    if (warm && here > good_enough_) return;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      bool moved = false;
      for (size_t i = 0; i < at_.size(); ++i) {
        const Position before = at_;
        if (i == plan_.splits.size()) {
          evaluate();
          if (!warps_vary_) {  // here; elsewhere the choice would make a difference
            move(i, 0);
            moved |= at_ != before;
            continue;
          }
        }
        const Position best = warm ? walk(i, here) : best_of(i, here);
        move(i, best[i]);
        at_.back() = best.back();
        moved |= best != before;
      }
      if (!moved) return;
    }
  }

  // From the best, two numbers at once: what is better of one alone may need more of another, as
  // longer steps need narrower tiles.
  void improve_pairs() {
    if (best_ == kInfinite || combinations() <= kFewCombinations) return;
    for (int sweep = 0; sweep < kMostPairSweeps; ++sweep) {
      const Position from = best_at_;
      for (size_t i = 0; i < from.size(); ++i) {
        for (size_t j = i + 1; j < from.size(); ++j) try_pairs(i, j, from);
      }
      if (best_at_ == from) return;
    }
  }

  void try_pairs(size_t i, size_t j, const Position& from) {
    for (size_t k = 0; k < from.size(); ++k) move(k, from[k]);
    for (size_t a = 0; a < candidates_[i].size(); ++a) {
      for (size_t b = 0; b < candidates_[j].size(); ++b) {
        move(i, a);
        move(j, b);
        evaluate();
      }
    }
  }

  // The price at candidate c of number i, all others as they were in `from`.
  double try_one(size_t i, size_t c, const Position& from) {
    at_.back() = from.back();
    move(i, c);
    return i == plan_.splits.size() ? evaluate() : evaluate_fitting();
  }

  // The best candidate of number i; `here` becomes its price.
  Position best_of(size_t i, double& here) {
    const Position from = at_;
    Position best = from;
    for (size_t c = 0; c < candidates_[i].size(); ++c) {
      if (c == from[i]) continue;
      const double there = try_one(i, c, from);
      if (there < here) here = there, best = at_;
    }
    return best;
  }

  // Likewise, looking no further than kReach beyond the last improvement on either side.
  Position walk(size_t i, double& here) {
    const Position from = at_;
    Position best = from;
    const size_t last = candidates_[i].size() - 1;
    for (const bool up : {true, false}) {
      for (size_t c = from[i], far = 0; far < kReach && c != (up ? last : 0); ++far) {
        c = up ? c + 1 : c - 1;
        const double there = try_one(i, c, from);
        if (there >= here) continue;
        here = there;
        best = at_;
        far = 0;
      }
    }
    return best;
  }

  static constexpr size_t kReach = 3;
  static constexpr int kStarts = 4;
  double good_enough_ = kInfinite;
  bool keep_all_ = false;
  bool warps_vary_ = false, chained_ = false;  // at the position evaluated last
  std::map<Position, double> seen_;
  std::unordered_map<uint64_t, Evaluation> evaluated_;
  KernelPlan& plan_;
  const KernelProfile& profile_;
  const std::vector<int64_t>& parts_;
  const Machine& machine_;
  std::vector<std::vector<int64_t>> candidates_;
  std::vector<int64_t> extents_;
  ThreadLevel level_;
  Position at_, best_at_;
  double best_ = kInfinite;
};

}  // namespace

std::optional<SizedKernel> size_kernel(KernelPlan& plan, const KernelProfile& profile,
                                       const std::vector<int64_t>& part_counts,
                                       const Machine& machine, const std::vector<int64_t>* near,
                                       double good_enough) {
  if (near != nullptr && is_library(*near)) near = nullptr;
  std::optional<SizedKernel> sized;
  if (!plan.library_alone) {
    sized = Descent(plan, profile, part_counts, machine).run(near, good_enough);
  }
  if (plan.library && (!sized || plan.library->us < sized->us)) {
    return SizedKernel{plan.library->us, {}};
  }
  return sized;
}

double price_at(KernelPlan& plan, const KernelProfile& profile,
                const std::vector<int64_t>& part_counts, const Machine& machine,
                const std::vector<int64_t>& tiles) {
  return Descent(plan, profile, part_counts, machine).at(tiles);
}

std::vector<SizedKernel> size_variants(KernelPlan& plan, const KernelProfile& profile,
                                       const std::vector<int64_t>& part_counts,
                                       const Machine& machine, size_t most) {
  std::vector<SizedKernel> all;
  if (!plan.library_alone) all = Descent(plan, profile, part_counts, machine).run_all(most);
  if (!plan.library) return all;
  const auto faster = [&](const SizedKernel& s) { return plan.library->us < s.us; };
  all.insert(std::find_if(all.begin(), all.end(), faster), {plan.library->us, {}});
  return all;
}

namespace {

// The stages of the loops with copies ahead; 0 if there is none.
int stages_of(const std::vector<Statement>& body) {
  int most = 0;
  for (const Statement& s : body) {
    const auto* loop = std::get_if<Loop>(&s.node);
    if (loop == nullptr) continue;
    most = std::max({most, loop->stages > 1 ? loop->stages : 0, stages_of(loop->body)});
  }
  return most;
}

KernelPrice price_of(const MuGraph& graph, const Kernel& kernel, const Machine& machine,
                     Known known) {
  if (kernel.kind == KernelKind::kLibraryGemm) {
    const Result<LibraryGemm> gemm = library_gemm(graph, kernel);
    SUNDOG_CHECK(gemm.ok());
    return library_price(*gemm, machine);
  }
  // A finished kernel has its stages, and its warps: they say which choice was made.
  std::set<std::string> wide;
  for (const Computation& c : kernel.computations) {
    if (c.dtype == DType::kF32) wide.insert(c.name);
  }
  const KernelProfile p = profile(graph, kernel, wide);
  const std::vector<int64_t> extents = priced_extents(kernel);
  known.stages = stages_of(kernel.body);
  known.finished = true;
  KernelPrice priced;
  for (int choice : kWarpChoices) {
    priced = price(p, kernel, extents, machine, choice, known);
    if (priced.warps == kernel.warps) break;
  }
  return priced;
}

bool joined_in_cluster(const MuGraph& graph, size_t kernel) {
  return kernel < graph.kernels.size() && graph.kernels[kernel].via == Via::kCluster;
}

// Of what the blocks of a kernel that is launched keep for one another, if anything.
void note_cluster(const MuGraph& graph, uint32_t joined, Known& known) {
  const Result<Arrival> arrival = arrival_of(graph, joined);
  SUNDOG_CHECK(arrival.ok());
  known.cluster = arrival->count;
  for (const ClusterTensor& kept : cluster_tensors(graph, joined)) {
    known.kept_bytes += static_cast<double>(kept.elements * bytes(DType::kF32));
  }
}

}  // namespace

std::vector<KernelPrice> prices_of(const MuGraph& graph, const Machine& machine,
                                   std::span<const Known> known) {
  const bool in_clusters =
      std::any_of(graph.kernels.begin(), graph.kernels.end(),
                  [](const Kernel& kernel) { return kernel.via == Via::kCluster; });
  const MuGraph placed = in_clusters ? placed_in_clusters(graph) : MuGraph();
  std::vector<KernelPrice> prices;
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    Known of_kernel = k < known.size() ? known[k] : Known();
    if (joined_in_cluster(graph, k)) note_cluster(graph, static_cast<uint32_t>(k), of_kernel);
    if (joined_in_cluster(graph, k + 1)) {
      note_cluster(graph, static_cast<uint32_t>(k + 1), of_kernel);
    }
    prices.push_back(price_of(in_clusters ? placed : graph, graph.kernels[k], machine, of_kernel));
  }
  return prices;
}

double predict(const MuGraph& graph, const Machine& machine, std::span<const Known> known) {
  const std::vector<KernelPrice> prices = prices_of(graph, machine, known);
  double us = 0;
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    us += prices[k].us;
    if (k == 0) continue;
    // What a library launches waits for what is before it, and what is behind it does.
    if (kernel.kind != KernelKind::kGraphDefined ||
        graph.kernels[k - 1].kind != KernelKind::kGraphDefined) {
      continue;
    }
    switch (kernel.via) {
      case Via::kKernel:
        us -= machine.overlap_us;
        break;
      case Via::kLastBlock:
        us -= machine.launch_us - machine.arrive_us;
        break;
      case Via::kCluster:
        us -= machine.launch_us - machine.cluster_us;
        break;
    }
  }
  return us;
}

}  // namespace sundog::search
