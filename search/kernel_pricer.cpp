// Lowering a kernel and looking for its sizes takes as long as hundreds of states, so most of a
// search is spent here.  Three things keep it short: a kernel is priced once, however many
// structures contain it; kernels that are cut alike are best at much the same tiles, so the search
// for sizes starts where it ended for another; and at those tiles it shows at once when a kernel is
// nowhere near what it would have to be.
#include "search/kernel_pricer.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "search/bound.h"
#include "search/library_kernel.h"
#include "search/sizes.h"

namespace sundog::search {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr size_t kMostChoices = 24;  // of part counts
constexpr double kOutclassed = 1.3;  // times what it has to be, at sizes of another kernel
constexpr double kNoEvidence = 4;    // times what is wanted: sizes of a kernel too slow for it
constexpr double kNotWorthDescending = 1.5;  // times the least of other part counts

}  // namespace

std::vector<std::vector<int64_t>> part_choices(const Bank& bank, const Machine& machine) {
  std::vector<std::vector<int64_t>> choices{{}};
  for (AxisId base : bank.options().parts) {
    std::vector<std::vector<int64_t>> next;
    for (const auto& choice : choices) {
      for (int64_t n : part_candidates(bank.program().axes[base].extent, machine)) {
        next.push_back(choice);
        next.back().push_back(n);
      }
    }
    choices = std::move(next);
  }
  if (choices.size() > kMostChoices) choices.resize(kMostChoices);
  return choices;
}

uint64_t hash_of(const KernelBody& body) {
  uint64_t h = 1;
  for (const BodyItem& i : body.items) {
    h = mix(mix(h, static_cast<uint64_t>(i.term)), static_cast<uint64_t>(i.node));
  }
  for (int o : body.outputs) h = mix(h, static_cast<uint64_t>(o) + 1000003);
  return h;
}

bool uses_absent_split(const Bank& bank, const TermTable& table, AxisSet common,
                       const RankedNode& n) {
  if (!is_reduction(n.node.kind) || bank.axes()[n.node.axis].level == Level::kPart) return false;
  const AxisId part = bank.base(bank.axes()[n.node.axis].base).part;
  if (part == kNoAxis || common.has(part)) return false;
  return std::any_of(n.operands.begin(), n.operands.end(),
                     [&](int o) { return table.terms[static_cast<size_t>(o)].axes.has(part); });
}

KernelPricer::KernelPricer(const Bank& bank, const TermTable& table, const Machine& machine,
                           const SearchSpace& space, PlacementTables& tables)
    : bank_(bank),
      table_(table),
      machine_(machine),
      space_(space),
      tables_(tables),
      choices_(part_choices(bank, machine)),
      lowerer_(bank, table) {}

const std::vector<KernelShape>& KernelPricer::shapes_of(const KernelBody& body, uint64_t hash) {
  if (const auto* known = tables_.shapes().find(hash)) return *known;
  const Nests nests = !space_.nested_loops           ? Nests::kNone
                      : space_.nested_parallel_loops ? Nests::kAny
                                                     : Nests::kReduced;
  return *tables_.shapes().insert(hash, kernel_shapes(bank_, table_, body, nests)).first;
}

const Price& KernelPricer::price(uint64_t hash, const KernelBody& body, const KernelShape& shape) {
  const auto [price, fresh] =
      tables_.prices().insert(hash, work_out(body, shape, most_us_of(body), nullptr));
  if (fresh) counts_ += count_of(*price);
  return *price;
}

// What is wanted at most, less the launches that the kernel's structures have besides: one after it
// if it stores what is no output, one before it if it loads what is no input.
double KernelPricer::most_us_of(const KernelBody& body) const {
  const auto is_output = [&](int o) {
    return std::find(table_.outputs.begin(), table_.outputs.end(), o) != table_.outputs.end();
  };
  const auto is_loaded = [&](const BodyItem& i) {
    return i.node < 0 && table_.terms[static_cast<size_t>(i.term)].leaf == LeafKind::kNone;
  };
  const bool before = std::any_of(body.items.begin(), body.items.end(), is_loaded);
  const bool after = !std::all_of(body.outputs.begin(), body.outputs.end(), is_output);
  const int others = (before ? 1 : 0) + (after ? 1 : 0);
  return most_us_ - (structure_bound(machine_, 1 + others, 0) - structure_bound(machine_, 1, 0));
}

// Kernels that store and load the same in equally many loops could take each other's place.
uint64_t KernelPricer::rivals_of(const KernelBody& body, uint64_t cut) const {
  uint64_t key = mix(cut, 0x71);
  bool online = false;
  for (int o : body.outputs) key = mix(key, static_cast<uint64_t>(o));
  for (const BodyItem& item : body.items) {
    const RankedTerm& t = table_.terms[static_cast<size_t>(item.term)];
    if (item.node < 0) {
      if (t.leaf == LeafKind::kNone) key = mix(key, static_cast<uint64_t>(item.term) + 1000003);
    } else {
      online |= t.nodes[static_cast<size_t>(item.node)].node.kind == NodeKind::kOnlineSum;
    }
  }
  return mix(key, online ? 1 : 0);
}

// A choice of part counts as a plan numbers those that it uses.
std::vector<int64_t> KernelPricer::counts_of(size_t choice, const std::vector<Part>& parts) const {
  std::vector<int64_t> counts;
  for (const Part& part : parts) {
    size_t at = 0;
    for (AxisId base : bank_.options().parts) {
      if (base == part.axis) counts.push_back(choices_[choice][at]);
      ++at;
    }
  }
  return counts;
}

KernelPricer::Counts& KernelPricer::Counts::operator+=(const Counts& o) {
  priced += o.priced;
  outclassed += o.outclassed;
  unfit += o.unfit;
  return *this;
}

KernelPricer::Counts KernelPricer::count_of(const Price& price) {
  return {1, price.outclassed ? 1U : 0U, !price.outclassed && !price.fits() ? 1U : 0U};
}

Price KernelPricer::price_below(double most_us, const GoodSizesByKey& besides,
                                const KernelBody& body, const KernelShape& shape) {
  return work_out(body, shape, most_us, &besides);
}

void KernelPricer::note_sizes(const Price& price, GoodSizesByKey& sizes) {
  if (!price.fits()) return;
  const auto best = std::min_element(price.us.begin(), price.us.end()) - price.us.begin();
  const auto at = static_cast<size_t>(best);
  if (is_library(price.tiles[at])) return;  // no sizes
  const GoodSizes good{price.tiles[at], static_cast<uint32_t>(at), price.us[at]};
  for (uint64_t key : {price.cut, price.rivals}) keep_better(key, good, sizes);
}

// At the best sizes of a rival, or of any kernel that is cut alike, or at smaller ones where this
// one does not fit at those: that it does not fit says nothing of how long it takes.  Neither do
// sizes at which the kernel that they are of is far from wanted.
bool KernelPricer::is_outclassed(KernelPlan& plan, const KernelProfile& profile,
                                 const std::vector<Part>& parts, const GoodSizes* rival,
                                 const GoodSizes* alike, double most_us) const {
  if (!space_.prune_outclassed) return false;
  const double limit = rival != nullptr ? std::min<double>(most_us, rival->us) : most_us;
  const GoodSizes* best = rival != nullptr ? rival : alike;
  if (best == nullptr) return false;
  const bool possible = most_us > structure_bound(machine_, 1, 0);
  if (possible && best->us > kNoEvidence * most_us) return false;
  if (plan.library && plan.library->us <= kOutclassed * limit) return false;
  return price_at(plan, profile, counts_of(best->choice, parts), machine_, best->tiles) >
         kOutclassed * limit;
}

// A pure function of the kernel, of what was known when the round began, and of `besides`.
Price KernelPricer::work_out(const KernelBody& body, const KernelShape& shape, double most_us,
                             const GoodSizesByKey* besides) {
  Price out;
  out.round = tables_.round();
  lowerer_.clear();
  lowerer_.add_kernel(body, shape, {});
  KernelPlan& plan = lowerer_.plan().kernels[0];
  const KernelProfile p = profile(lowerer_.plan().graph, plan);
  const auto& parts = lowerer_.plan().parts;
  out.cut = mix(plan.splits.size(), shape.inner_factors.bits());
  for (const Split& s : plan.splits) {
    out.cut = mix(out.cut, uint64_t{s.axis} * 8 + (s.looped ? 1 : 0) +
                               (s.outer == kNoFactor ? 2 : 0) + (s.part == kNoFactor ? 4 : 0));
  }
  out.rivals = rivals_of(body, out.cut);
  if (space_.library_gemm) offer_library(lowerer_.plan().graph, machine_, plan);
  const auto known = [&](uint64_t key) -> const GoodSizes* {
    const GoodSizesByKey& earlier = tables_.known().good_sizes;
    const auto it = earlier.find(key);
    if (besides != nullptr) {
      const auto mine = besides->find(key);
      const bool better =
          mine != besides->end() && (it == earlier.end() || mine->second.us < it->second.us);
      if (better) return &mine->second;
    }
    return it == earlier.end() ? nullptr : &it->second;
  };
  const GoodSizes* rival = known(out.rivals);
  const GoodSizes* alike = known(out.cut);
  out.outclassed = is_outclassed(plan, p, parts, rival, alike, most_us);
  if (out.outclassed) {
    out.us.assign(choices_.size(), kInfinite);
    out.tiles.resize(choices_.size());
    return out;
  }
  const GoodSizes* start = rival != nullptr ? rival : alike;
  std::optional<SizedKernel> sized;
  double least = kInfinite;
  for (size_t c = 0; c < choices_.size(); ++c) {
    if (c == 0 || !parts.empty()) {
      const std::vector<int64_t>* near = sized              ? &sized->tiles
                                         : start != nullptr ? &start->tiles
                                                            : nullptr;
      const std::vector<int64_t> counts = counts_of(c, parts);
      auto next = size_kernel(plan, p, counts, machine_, near, kNotWorthDescending * least);
      if (!next && near != nullptr) next = size_kernel(plan, p, counts, machine_);
      sized = std::move(next);
      if (sized) least = std::min(least, sized->us);
    }
    out.us.push_back(sized ? static_cast<float>(sized->us) : kInfinite);
    out.tiles.push_back(sized ? sized->tiles : std::vector<int64_t>{});
  }
  return out;
}

}  // namespace sundog::search
