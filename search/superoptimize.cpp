// The stages in order: the unfused incumbent; a bank without parts and one for each reduced axis
// that may be cut; placement with one kernel, then two, then three, over all banks in turn so that
// an incumbent of one prunes the others; then the best structures are lowered, checked and offered
// to `accept`.
#include "search/superoptimize.h"

#include <algorithm>
#include <memory>
#include <set>

#include "core/schedule/memory_plan.h"
#include "search/bound.h"
#include "search/describe.h"
#include "search/import.h"
#include "search/place_kernel.h"
#include "search/rewrite.h"
#include "search/rounds.h"
#include "search/unfused.h"

namespace sundog::search {
namespace {

constexpr size_t kVariants = 4;        // sizes looked at for each that is offered
constexpr double kNearlyAsGood = 1.3;  // sizes within this of the best are offered to the clock

class Superoptimizer {
 public:
  Superoptimizer(const Program& program, const Device& device, const SearchSpace& space,
                 const SearchOptions& options)
      : program_(program),
        device_(device),
        machine_(machine_of(device)),
        space_(space),
        options_(options),
        limits_(options.clock, options.budget_s, options.max_states, options.stop),
        workers_(options.threads),
        rounds_(banks_, machine_, space_, options.memory_bytes, limits_, workers_) {}

  Result<SearchReport> run() {
    if (Status s = find_unfused(); !s.ok()) return s.error();
    report_.bound_us = program_bound(program_, machine_);
    add_banks();
    rounds_.begin(report_.unfused.predicted_us);
    while (rounds_.step()) show_progress();
    offer_candidates();
    finish_report();
    return std::move(report_);
  }

 private:
  Status find_unfused() {
    GraphPlan plan = unfused_plan(program_);
    std::vector<std::vector<int64_t>> tiles;
    for (KernelPlan& k : plan.kernels) {
      const auto sized = size_kernel(k, profile(plan.graph, k.kernel, k.wide), {}, machine_);
      if (!sized) return unsupported("kernel '" + k.kernel.name + "' does not fit the device");
      tiles.push_back(sized->tiles);
    }
    report_.unfused = candidate(finish(std::move(plan), tiles, {}, machine_), "unfused");
    return check(report_.unfused.graph, program_);
  }

  Candidate candidate(MuGraph graph, std::string kind) const {
    Candidate c;
    c.predicted_us = predict(graph, machine_);
    c.structure = describe(graph);
    c.kind = std::move(kind);
    c.graph = std::move(graph);
    return c;
  }

  // Sets of reduced axes to cut into parts, single ones first.
  std::vector<AxisSet> part_sets() const {
    std::vector<AxisSet> sets;
    if (banks_.empty() || space_.most_split_axes < 1) return sets;
    const Bank& bank = *banks_[0]->bank;
    std::vector<AxisId> axes;
    for (AxisId a = 0; a < program_.axes.size(); ++a) {
      if (bank.base(a).reduced && !part_candidates(program_.axes[a].extent, machine_).empty() &&
          program_.axes[a].extent > space_.shortest_loop) {
        axes.push_back(a);
      }
    }
    for (AxisId a : axes) sets.push_back(AxisSet::of(a));
    if (space_.most_split_axes < 2) return sets;
    for (size_t i = 0; i < axes.size(); ++i) {
      for (size_t j = i + 1; j < axes.size(); ++j) {
        sets.push_back(AxisSet::of(axes[i]) | AxisSet::of(axes[j]));
      }
    }
    return sets;
  }

  void add_banks() {
    keep(make_bank({}));
    const std::vector<AxisSet> sets = part_sets();
    std::vector<MadeBank> made(sets.size());
    workers_.run(sets.size(), [&](size_t i) { made[i] = make_bank(sets[i]); });
    for (MadeBank& m : made) keep(std::move(m));
  }

  struct MadeBank {
    BankRun run;
    size_t terms = 0;
    bool usable = false;
    std::vector<std::string> notes;
  };

  MadeBank make_bank(AxisSet parts) {
    BankOptions o;
    o.parts = parts;
    o.seed = options_.seed;
    o.shortest_loop = space_.shortest_loop;
    o.keep_casts = space_.keep_casts;
    MadeBank made;
    made.run.bank = std::make_unique<Bank>(program_, o);
    Bank& bank = *made.run.bank;
    const auto outputs = import_program(bank);
    if (!outputs.ok()) {
      made.notes.push_back(outputs.error().message);
      return made;
    }
    const RewriteReport r = saturate(bank, space_, [&] { return limits_.check(); });
    if (bank.failure()) {
      made.notes.push_back("the program is not searched: " + *bank.failure());
      return made;
    }
    if (!r.complete) made.notes.push_back("rewriting stopped before it was complete");
    if (r.wrong > 0) {
      made.notes.push_back("rewriting proposed " + std::to_string(r.wrong) + " unequal terms");
    }
    made.run.table = term_table(bank, *outputs, machine_);
    made.terms = made.run.table.terms.size();
    made.usable = !made.run.table.too_large;
    if (!made.usable) {
      made.notes.push_back("a bank of " + std::to_string(made.terms) +
                           " terms is too large to search");
    }
    return made;
  }

  void keep(MadeBank made) {
    for (std::string& text : made.notes) note(std::move(text));
    report_.terms = std::max<uint64_t>(report_.terms, made.terms);
    if (made.usable) banks_.push_back(std::make_unique<BankRun>(std::move(made.run)));
  }

  void note(std::string text) {
    if (std::find(report_.notes.begin(), report_.notes.end(), text) == report_.notes.end()) {
      report_.notes.push_back(std::move(text));
    }
  }

  // A structure with its kernels lowered, and the part counts of a choice as its plan numbers them.
  GraphPlan lower(const Incumbents::Entry& entry) const {
    const BankRun& run = *banks_[static_cast<size_t>(entry.bank)];
    const Structure& s = entry.structure;
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

  std::vector<int64_t> part_counts(const Incumbents::Entry& entry, const GraphPlan& plan,
                                   size_t choice) const {
    const BankRun& run = *banks_[static_cast<size_t>(entry.bank)];
    const auto choices = part_choices(*run.bank, machine_);
    std::vector<int64_t> counts;
    for (const Part& part : plan.parts) {
      size_t at = 0;
      for (AxisId base : run.bank->options().parts) {
        if (base == part.axis) counts.push_back(choices[choice][at]);
        ++at;
      }
    }
    return counts;
  }

  // The structure at its best sizes and at some that are nearly as good: the best part counts, and
  // for each the best tiles of its dearest kernel.
  std::vector<Candidate> at_sizes(const Incumbents::Entry& entry) const {
    const Structure& s = entry.structure;
    std::vector<std::pair<double, size_t>> choices;
    for (size_t c = 0; c < s.kernels[0].us.size(); ++c) {
      double us = 0;
      for (const PlacedKernel& k : s.kernels) us += k.us[c];
      if (us < s.us * kNearlyAsGood) choices.push_back({us, c});
    }
    std::stable_sort(choices.begin(), choices.end());
    GraphPlan plan = lower(entry);
    const size_t wanted = static_cast<size_t>(std::max(1, space_.sizes_per_structure));
    if (plan.parts.empty()) choices.resize(1);
    std::vector<Candidate> out;
    for (const auto& [us, choice] : choices) {
      size_t dearest = 0;
      for (size_t k = 0; k < s.kernels.size(); ++k) {
        if (s.kernels[k].us[choice] > s.kernels[dearest].us[choice]) dearest = k;
      }
      std::vector<std::vector<int64_t>> tiles;
      for (const PlacedKernel& k : s.kernels) tiles.push_back(k.tiles[choice]);
      const std::vector<int64_t> counts = part_counts(entry, plan, choice);
      KernelPlan& kernel = plan.kernels[dearest];
      const KernelProfile p = profile(plan.graph, kernel.kernel, kernel.wide);
      for (const SizedKernel& sized :
           size_variants(kernel, p, counts, machine_, kVariants * wanted)) {
        if (sized.us > s.us * kNearlyAsGood) break;
        tiles[dearest] = sized.tiles;
        out.push_back(candidate(finish(plan, tiles, counts, machine_), s.kind));
      }
    }
    std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
      return a.predicted_us < b.predicted_us;
    });
    std::erase_if(out, [&](const Candidate& c) { return !fits_device(c.graph); });
    const auto same = [](const Candidate& a, const Candidate& b) { return a.graph == b.graph; };
    out.erase(std::unique(out.begin(), out.end(), same), out.end());
    return varied(std::move(out), wanted);
  }

  // The best of each length of step first, then the rest: the length of a step is what the cost
  // model is least sure of, so the clock should see several.
  static std::vector<Candidate> varied(std::vector<Candidate> all, size_t wanted) {
    std::vector<Candidate> picked, rest;
    std::set<std::vector<int64_t>> seen;
    for (Candidate& c : all) {
      std::vector<int64_t> iterations;
      for (const Kernel& k : c.graph.kernels) {
        for (const Statement& s : k.body) {
          const auto* loop = std::get_if<Loop>(&s.node);
          if (loop != nullptr) iterations.push_back(k.factors[loop->factor].extent);
        }
      }
      (seen.insert(iterations).second ? picked : rest).push_back(std::move(c));
    }
    std::move(rest.begin(), rest.end(), std::back_inserter(picked));
    if (picked.size() > wanted) picked.resize(wanted);
    return picked;
  }

  // Exact shared memory and registers, which the cost model only estimates.
  bool fits_device(const MuGraph& graph) const {
    return std::all_of(graph.kernels.begin(), graph.kernels.end(), [&](const Kernel& k) {
      const auto plan = plan_kernel(graph, k);
      return plan.ok() && fits(k, *plan, device_).ok();
    });
  }

  void offer_candidates() {
    std::vector<Candidate> found;
    for (const Incumbents::Entry& entry : rounds_.state().incumbents.sorted()) {
      std::vector<Candidate> sized = at_sizes(entry);
      if (sized.empty()) ++unfit_;
      std::move(sized.begin(), sized.end(), std::back_inserter(found));
    }
    std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
      return a.predicted_us < b.predicted_us;
    });
    for (Candidate& c : found) {
      if (static_cast<int>(report_.candidates.size()) >= options_.top_k) {
        ++report_.kept_undecided;
        continue;
      }
      if (const Status s = check(c.graph, program_); !s.ok()) {
        note("a structure was lowered wrongly: " + s.error().message);
        ++report_.rejected;
      } else if (options_.accept && !options_.accept(c)) {
        ++report_.rejected;
      } else {
        report_.candidates.push_back(std::move(c));
      }
    }
    report_.candidates.push_back(report_.unfused);
    std::stable_sort(
        report_.candidates.begin(), report_.candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.predicted_us < b.predicted_us; });
  }

  void show_progress() const {
    if (!options_.progress) return;
    options_.progress({limits_.seconds(), limits_.states(), rounds_.state().incumbents.best_us(),
                       report_.bound_us});
  }

  void finish_report() {
    const PlacementCounts& counts = rounds_.state().counts;
    report_.states = counts.states;
    report_.kernels_priced = counts.kernels_priced;
    report_.structures = counts.structures;
    report_.rounds = rounds_.state().rounds;
    report_.seconds = limits_.seconds();
    report_.time_to_best = rounds_.time_to_best();
    report_.stop_reason = limits_.reason();
    report_.gap = report_.candidates.front().predicted_us / report_.bound_us - 1;
    report_.pruned = {{"bound", counts.cut_by_bound},
                      {"duplicate", counts.cut_as_duplicate},
                      {"dominated", counts.cut_as_dominated},
                      {"does not fit", counts.cut_unfit + unfit_}};
  }

  const Program& program_;
  const Device& device_;
  Machine machine_;
  SearchSpace space_;
  const SearchOptions& options_;
  Limits limits_;
  Workers workers_;
  std::vector<std::unique_ptr<BankRun>> banks_;
  Rounds rounds_;
  SearchReport report_;
  uint64_t unfit_ = 0;  // structures of which no size fits exactly
};

}  // namespace

Result<SearchReport> superoptimize(const Program& program, const Device& device,
                                   const SearchSpace& space, const SearchOptions& options) {
  SUNDOG_RETURN_IF_ERROR(check(program));
  return Superoptimizer(program, device, space, options).run();
}

}  // namespace sundog::search
