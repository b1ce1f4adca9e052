// Sizes were chosen while structure was enumerated, each kernel by itself and by estimates.  Here
// the few structures that are left get their whole µGraph: lowered together, so that a term which
// one kernel stores and another loads is one tensor, and measured against the exact limits.
#include "search/candidate.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/schedule/cluster.h"
#include "core/schedule/memory_plan.h"
#include "core/via.h"
#include "search/describe.h"
#include "search/finish.h"
#include "search/library_kernel.h"
#include "search/lower.h"
#include "search/size_plan.h"
#include "search/sizes.h"

namespace sundog::search {
namespace {

constexpr size_t kVariants = 4;        // sizes looked at for each that is offered
constexpr size_t kMostVariants = 64;   // looked at where none of these fits the device
constexpr double kNearlyAsGood = 1.3;  // sizes within this of the best are offered to the clock

// A structure with its kernels lowered.
GraphPlan lower(const Structure& s, const BankRun& run) {
  Lowerer lowerer(*run.bank, run.table);
  for (size_t k = 0; k < s.kernels.size(); ++k) {
    RankSet later;
    for (size_t j = k + 1; j < s.kernels.size(); ++j) {
      for (const BodyItem& i : s.kernels[j].body.items) {
        if (i.node < 0 && run.table.terms[static_cast<size_t>(i.term)].leaf == LeafKind::kNone) {
          later.insert(i.term);
        }
      }
    }
    lowerer.add_kernel(s.kernels[k].body, s.kernels[k].shape, later);
  }
  return lowerer.take();
}

// The part counts of a choice as the plan numbers them.
std::vector<int64_t> part_counts(const BankRun& run, const GraphPlan& plan,
                                 const std::vector<int64_t>& choice) {
  std::vector<int64_t> counts;
  for (const Part& part : plan.parts) {
    size_t at = 0;
    for (AxisId base : run.bank->options().parts) {
      if (base == part.axis) counts.push_back(choice[at]);
      ++at;
    }
  }
  return counts;
}

// The best of each length of step first, then the best of each number of blocks, then the rest: of
// these the cost model is least sure, so the clock should see several.
std::vector<Candidate> varied(std::vector<Candidate> all, size_t wanted) {
  std::array<std::vector<Candidate>, 3> picked;
  std::set<std::vector<int64_t>> steps_seen, blocks_seen;
  for (Candidate& c : all) {
    std::vector<int64_t> steps, blocks;
    for (const Kernel& k : c.graph.kernels) {
      steps.push_back(-static_cast<int64_t>(k.via));
      for (const AxisId f : k.grid) blocks.push_back(k.factors[f].extent);
      for (const Statement& s : k.body) {
        const auto* loop = std::get_if<Loop>(&s.node);
        if (loop != nullptr) steps.push_back(k.factors[loop->factor].extent);
      }
    }
    const bool new_steps = steps_seen.insert(steps).second;
    const bool new_blocks = blocks_seen.insert(blocks).second;
    picked[new_steps ? 0 : new_blocks ? 1 : 2].push_back(std::move(c));
  }
  for (size_t i : {1, 2}) {
    std::move(picked[i].begin(), picked[i].end(), std::back_inserter(picked[0]));
  }
  if (picked[0].size() > wanted) picked[0].resize(wanted);
  return std::move(picked[0]);
}

// The plan of a kernel, if it fits; that of a library's says nothing.
std::optional<sundog::KernelPlan> fitting_plan(const MuGraph& graph, const Kernel& kernel,
                                               const Device& device) {
  if (kernel.kind != KernelKind::kGraphDefined) return sundog::KernelPlan();
  Result<sundog::KernelPlan> plan = plan_kernel(graph, kernel);
  if (!plan.ok() || !fits(kernel, *plan, device).ok()) return std::nullopt;
  return std::move(*plan);
}

bool kernel_fits(const MuGraph& graph, const Kernel& kernel, const Device& device) {
  return fitting_plan(graph, kernel, device).has_value();
}

}  // namespace

bool fits_device(const MuGraph& unplaced, const Device& device) {
  if (!clusters_run_on(device, unplaced).ok()) return false;
  const bool joined = launch_count(unplaced) < static_cast<int>(unplaced.kernels.size());
  const MuGraph placed = joined ? placed_in_clusters(unplaced) : MuGraph();
  const MuGraph& graph = joined ? placed : unplaced;
  std::optional<sundog::KernelPlan> before;
  for (uint32_t k = 0; k < graph.kernels.size(); ++k) {
    std::optional<sundog::KernelPlan> plan = fitting_plan(graph, graph.kernels[k], device);
    if (!plan) return false;
    if (graph.kernels[k].via != Via::kKernel) {  // its blocks are those of the kernel before it
      std::vector<ClusterTensor> kept = cluster_tensors(graph, k);
      if (arena_of({*before, *plan}, kept).bytes > device.shared_per_block) return false;
    }
    before = std::move(plan);
  }
  return true;
}

Candidate candidate_of(MuGraph graph, std::string kind, const Machine& machine) {
  Candidate c;
  c.predicted_us = predict(graph, machine);
  c.structure = describe(graph);
  c.kind = std::move(kind);
  c.graph = std::move(graph);
  return c;
}

namespace {

// Of what kernels compute for tensor cores: copies of sums, which grow with what they sum over, or
// everything.
enum class KeptWide { kSums, kAll };

// Keeps that as wide as the kernels compute it.  Whether there was anything that would have been
// narrow.
bool widen(GraphPlan& plan, KeptWide what) {
  bool any = false;
  for (KernelPlan& k : plan.kernels) {
    const KernelProfile p = profile(plan.graph, k);
    for (size_t i = 0; i < p.roles.size(); ++i) {
      const Role& role = p.roles[i];
      if (role.is_load || !role.is_operand || role.operand_dtype == DType::kF32) continue;
      const Computation& c = k.kernel.computations[i];
      const bool copies = std::holds_alternative<LocalTerm>(k.kernel.terms[c.value]);
      if (what == KeptWide::kSums && !copies) continue;
      any |= k.wide.insert(c.name).second;
    }
  }
  return any;
}

std::vector<SizedKernel> variants(const GraphPlan& plan, size_t k,
                                  const std::vector<int64_t>& counts, const Machine& machine) {
  KernelPlan kernel = plan.kernels[k];
  const KernelProfile p = profile(plan.graph, kernel);
  return size_variants(kernel, p, counts, machine, kMostVariants);
}

// Registers were guessed when kernel k was sized: other tiles where the guess was too low.
void make_fit(const GraphPlan& plan, size_t k, std::vector<std::vector<int64_t>>& tiles,
              const std::vector<int64_t>& counts, const Machine& machine, const Device& device) {
  const auto fits = [&] {
    const MuGraph graph = finish(plan, tiles, counts, machine);
    return kernel_fits(graph, graph.kernels[k], device);
  };
  if (fits()) return;
  for (const SizedKernel& sized : variants(plan, k, counts, machine)) {
    tiles[k] = sized.tiles;
    if (fits()) return;
  }
}

// A structure that was widened, at the best of its part counts: where numbers refuse what is stored
// in 16 bits, this is what is left of it.
std::optional<Candidate> wide_candidate(const std::string& kind, GraphPlan plan,
                                        const std::vector<std::vector<int64_t>>& counts,
                                        const Machine& machine, const Device& device) {
  std::optional<SizedKernels> best;
  std::vector<int64_t> best_counts;
  PlanSizer sizer(plan, machine);
  for (const std::vector<int64_t>& at : counts) {
    auto sized = sizer.at(at);
    if (!sized || (best && sized->us >= best->us)) continue;
    best = std::move(sized);
    best_counts = at;
  }
  if (!best) return {};
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    make_fit(plan, k, best->tiles, best_counts, machine, device);
  }
  MuGraph graph = finish(std::move(plan), best->tiles, best_counts, machine);
  if (!fits_device(graph, device)) return {};
  return candidate_of(std::move(graph), kind, machine);
}

// The candidates of one structure, a choice of part counts at a time.
class Offerer {
 public:
  Offerer(const Structure& s, GraphPlan& plan, const SearchSpace& space, const Machine& machine,
          const Device& device)
      : s_(s), plan_(plan), space_(space), machine_(machine), device_(device) {}

  void offer(size_t choice, const std::vector<int64_t>& counts) {
    size_t dearest = 0;
    for (size_t k = 0; k < s_.kernels.size(); ++k) {
      if (s_.kernels[k].us[choice] > s_.kernels[dearest].us[choice]) dearest = k;
    }
    tiles_.clear();
    for (size_t k = 0; k < s_.kernels.size(); ++k) {
      // Placement looked no further than was needed to compare.
      KernelPlan& other = plan_.kernels[k];
      tiles_.push_back(s_.kernels[k].tiles[choice]);
      const KernelProfile p = profile(plan_.graph, other);
      const auto sized = size_kernel(other, p, counts, machine_);
      // A kernel that stores for later ones, too, may be none of a library's any more.
      const bool lost = is_library(tiles_[k]) && !other.library;
      if (lost && !sized) return;
      if (sized && (lost || sized->us < s_.kernels[k].us[choice])) tiles_[k] = sized->tiles;
    }
    for (size_t k = 0; k < s_.kernels.size(); ++k) {
      if (k != dearest) make_fit(plan_, k, tiles_, counts, machine_, device_);
    }
    offer_variants(dearest, counts);
  }

  std::vector<Candidate> take() { return std::move(out_); }
  std::optional<Candidate> best_cluster() { return std::move(cluster_); }

 private:
  size_t wanted() const { return static_cast<size_t>(std::max(1, space_.sizes_per_structure)); }

  // The best tiles of one kernel and those nearly as good; others only where none of these fits.
  void offer_variants(size_t k, const std::vector<int64_t>& counts) {
    size_t looked = 0;
    bool any = false;
    for (const SizedKernel& sized : variants(plan_, k, counts, machine_)) {
      const bool good = sized.us <= s_.us * kNearlyAsGood && looked++ < kVariants * wanted();
      if (!good && any) return;
      tiles_[k] = sized.tiles;
      any |= keep(candidate_of(finish(plan_, tiles_, counts, machine_), s_.kind, machine_));
      for (size_t j = 1; j < s_.kernels.size(); ++j) offer_joined(j, counts);
    }
  }

  void offer_joined(size_t joined, const std::vector<int64_t>& counts) {
    if (space_.last_block) {
      auto last = finish_joined(plan_, tiles_, counts, machine_, joined);
      if (last) keep(candidate_of(std::move(*last), s_.kind + "/last", machine_));
    }
    if (space_.cluster && may_be_clusters(counts)) {
      auto cluster = finish_in_cluster(plan_, tiles_, counts, machine_, joined);
      if (cluster) note_cluster(candidate_of(std::move(*cluster), s_.kind + "/cluster", machine_));
    }
  }

  void note_cluster(Candidate c) {
    if (cluster_ && c.predicted_us >= cluster_->predicted_us) return;
    if (fits_device(c.graph, device_)) cluster_ = std::move(c);
  }

  static bool may_be_clusters(const std::vector<int64_t>& counts) {
    return std::any_of(counts.begin(), counts.end(),
                       [](int64_t n) { return n > 1 && n <= kMostClusterBlocks; });
  }

  bool keep(Candidate c) {
    if (!fits_device(c.graph, device_)) return false;
    out_.push_back(std::move(c));
    return true;
  }

  const Structure& s_;
  GraphPlan& plan_;
  const SearchSpace& space_;
  const Machine& machine_;
  const Device& device_;
  std::vector<std::vector<int64_t>> tiles_;  // of each kernel
  std::vector<Candidate> out_;
  std::optional<Candidate> cluster_;
};

}  // namespace

// The best part counts, and for each the best tiles of its dearest kernel.
std::vector<Candidate> candidates_of(const Structure& s, const BankRun& run,
                                     const SearchSpace& space, const Machine& machine,
                                     const Device& device) {
  const auto parts = part_choices(*run.bank, machine);
  std::vector<std::pair<double, size_t>> choices;
  for (size_t c = 0; c < s.kernels[0].us.size(); ++c) {
    double us = -machine.overlap_us * static_cast<double>(s.kernels.size() - 1);
    for (const PlacedKernel& k : s.kernels) us += k.us[c];
    if (us < s.us * kNearlyAsGood) choices.push_back({us, c});
  }
  std::stable_sort(choices.begin(), choices.end());
  GraphPlan plan = lower(s, run);
  for (KernelPlan& k : plan.kernels) {
    if (space.library_gemm) offer_library(plan.graph, machine, k);
  }
  const size_t wanted = static_cast<size_t>(std::max(1, space.sizes_per_structure));
  if (plan.parts.empty()) choices.resize(1);
  std::vector<std::vector<int64_t>> all_counts;
  Offerer offerer(s, plan, space, machine, device);
  for (const auto& [us, choice] : choices) {
    all_counts.push_back(part_counts(run, plan, parts[choice]));
    offerer.offer(choice, all_counts.back());
  }
  std::vector<Candidate> out = offerer.take();
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return a.predicted_us < b.predicted_us;
  });
  const auto same = [](const Candidate& a, const Candidate& b) { return a.graph == b.graph; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  std::optional<Candidate> cluster = offerer.best_cluster();
  out = varied(std::move(out), wanted);
  if (cluster) {
    const auto slower = [&](const Candidate& c) { return c.predicted_us > cluster->predicted_us; };
    out.insert(std::find_if(out.begin(), out.end(), slower), std::move(*cluster));
  }
  const bool any_sums = widen(plan, KeptWide::kSums);
  const GraphPlan with_sums = any_sums ? plan : GraphPlan();
  const bool more = widen(plan, KeptWide::kAll);
  std::optional<Candidate> sums, all;
  if (any_sums && more) {
    sums = wide_candidate(s.kind + " f32 sums", with_sums, all_counts, machine, device);
  }
  if (any_sums || more) {
    all = wide_candidate(s.kind + " f32", std::move(plan), all_counts, machine, device);
  }
  if (sums && !(all && all->graph == sums->graph)) out.push_back(std::move(*sums));
  if (all) out.push_back(std::move(*all));
  return out;
}

}  // namespace sundog::search
