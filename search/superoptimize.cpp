// The stages in order: the unfused incumbent; a bank without parts and one for each reduced axis
// that may be cut; placement with one kernel, then two, then three, over all banks in turn so that
// an incumbent of one prunes the others; then the best structures are lowered, checked and offered
// to `accept`.
//
// Where memory runs out, the tables go first and the search ends there: what is needed for an
// answer is small and was there from the beginning.
#include "search/superoptimize.h"

#include <algorithm>
#include <memory>
#include <new>

#include "core/text.h"
#include "search/as_written.h"
#include "search/bound.h"
#include "search/checkpoint.h"
#include "search/finish.h"
#include "search/make_bank.h"
#include "search/offers.h"
#include "search/partition.h"
#include "search/rounds.h"
#include "search/search_parts.h"
#include "search/sizes.h"
#include "search/space_text.h"
#include "search/term_text.h"
#include "search/unfused.h"

namespace sundog::search {
namespace {

constexpr double kNothingToBeat = 1e30;
constexpr uint64_t kTermsOfABlock = 80;  // in the bank of a program that is searched in parts, too
constexpr double kShareOfParts = 0.4;    // of the budget
constexpr double kShareApart = 0.8;      // where a kernel cannot make all outputs

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
    Result<Baseline> plain = baseline(program_, device_, space_);
    if (!plain.ok()) return plain.error();
    report_.unfused = std::move(plain->unfused);
    report_.bound_us = plain->bound_us;
    try {
      if (space_.as_written && !options_.only)
        as_written_ = as_written(program_, machine_, device_);
      add_banks();
      if (!options_.only) {
        identity_ = checkpoint_identity(program_, device_, space_, options_.seed,
                                        options_.memory_bytes, banks_);
        if (!options_.resume.empty()) resume();
      }
      const bool is_large = banks_.empty() || report_.terms > kTermsOfABlock;
      const bool apart = !outputs_share_a_grid(program_, machine_);
      if ((is_large || apart) && !options_.only) {
        search_by_parts(banks_.empty() ? 1 : apart ? kShareApart : kShareOfParts);
      }
      search();
    } catch (const std::bad_alloc&) {
      limits_.end(StopReason::kMemory);
    }
    report_.seconds = before_.seconds + limits_.seconds();
    if (limits_.reached()) rounds_.forget();
    offer_candidates();
    finish_report();
    return std::move(report_);
  }

 private:
  void add_banks() {
    const auto make = [&](AxisSet parts) {
      return make_bank(program_, parts, options_.seed, space_, machine_,
                       [&] { return limits_.check(); });
    };
    keep(make({}));
    if (banks_.empty()) return;
    const std::vector<AxisSet> sets = part_sets(*banks_[0]->bank, space_, machine_);
    std::vector<MadeBank> made(sets.size());
    workers_.run(sets.size(), [&](size_t i) { made[i] = make(sets[i]); });
    for (MadeBank& m : made) keep(std::move(m));
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

  // A program that is much for one search, or too much for it: `share` of the budget for its parts.
  void search_by_parts(double share) {
    const auto states = static_cast<uint64_t>(share * static_cast<double>(options_.max_states));
    std::function<void(const PartsState&)> save_parts;
    if (options_.save) {
      save_parts = [this](const PartsState& parts) {
        point_.parts = parts;
        if (is_stopped() || is_time_to_save()) save();
      };
    }
    PartsFound found = search_parts(program_, device_, space_, options_, share * options_.budget_s,
                                    states, std::move(point_.parts), save_parts);
    point_.parts = std::move(found.state);
    // What was cut short is in the answer only.
    broken_ = is_stopped();
    if (found.candidates.empty()) return;
    note("also searched in parts: " + std::to_string(point_.parts.searches) + " searches, " +
         std::to_string(point_.parts.states) + " states");
    by_parts_ = std::move(found.candidates);
    if (!point_.begun) before_.to_best = before_.seconds + limits_.seconds_at(found.best_at);
  }

  void search() {
    if (options_.only) constrain(*options_.only);
    double incumbent = report_.unfused.predicted_us;
    size_t kernels = report_.unfused.graph.kernels.size();
    const auto consider = [&](const Candidate& c) {
      if (c.predicted_us >= incumbent) return;
      incumbent = c.predicted_us;
      // What blocks of a cluster join is worth looking for as a structure of fewer.
      kernels = static_cast<size_t>(
          std::count_if(c.graph.kernels.begin(), c.graph.kernels.end(),
                        [](const Kernel& kernel) { return kernel.via != Via::kCluster; }));
    };
    if (as_written_) consider(*as_written_);
    for (const Candidate& c : by_parts_) consider(c);
    if (options_.most_us < incumbent) {
      incumbent = options_.most_us;
      kernels = 1;
    }
    if (options_.only) {
      incumbent = kNothingToBeat;
      kernels = options_.only->stored.size() + 1;
    }
    rounds_.begin(incumbent, static_cast<int>(kernels));
    if (options_.trace.head) options_.trace.head(trace_head());
    if (options_.trace.task) rounds_.trace(options_.trace.task);
    if (point_.begun) {
      limits_.add_states(point_.rounds.counts.states);
      rounds_.resume(std::move(point_.rounds));
    }
    point_.begun = true;
    while (!limits_.check() && rounds_.run()) {
      // What is saved is what an unbroken search would have come by.
      const bool broke = !rounds_.whole() && !broken_;
      if (broke) save();
      broken_ = !rounds_.whole();
      rounds_.merge();
      if (!broken_ && is_time_to_save()) save();
      show_progress();
    }
    if (!broken_) save();
    if (rounds_.state().cut) {
      note("structures of " + std::to_string(rounds_.state().kernels) +
           " kernels were not searched to the end");
    }
  }

  // Banks that lack a term of the question have no such structure, and go.
  void constrain(const StructureQuestion& question) {
    std::erase_if(banks_, [&](const std::unique_ptr<BankRun>& run) {
      const auto rank = [&](const std::string& name) {
        int r = run->table.size() - 1;
        while (r >= 0 && term_name(*run->bank, run->table, r) != name) --r;
        return r;
      };
      Constraint c;
      c.nothing_else = question.nothing_else;
      bool known = true;
      for (const std::string& name : question.stored) {
        known = known && rank(name) >= 0;
        if (known) c.stored.insert(rank(name));
      }
      if (!question.computed.empty()) {
        c.computed = rank(question.computed);
        known = known && c.computed >= 0;
      }
      run->constraint = c;
      return !known;
    });
  }

  TraceHead trace_head() const {
    TraceHead head{print(program_), device_.name, print(space_), {}};
    for (const auto& run : banks_) head.banks.push_back(term_texts(*run->bank, run->table));
    return head;
  }

  bool is_stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  bool is_time_to_save() const { return limits_.seconds() - saved_at_ >= options_.save_every_s; }

  void resume() {
    Checkpoint found;
    found.rounds.incumbents = Incumbents(std::max(1, space_.kept_per_kind));
    const Status read = read_checkpoint(options_.resume, identity_, machine_, &found, banks_);
    if (!read.ok()) {
      note("the checkpoint is not used: " + read.error().message +
           "; the search started from the beginning");
      return;
    }
    report_.resumed = true;
    before_ = found.times;
    point_ = std::move(found);
  }

  void save() {
    if (!options_.save) return;
    point_.times = {before_.seconds + limits_.seconds(), time_to_best()};
    if (point_.begun) point_.rounds = rounds_.state();
    options_.save(write_checkpoint(identity_, point_, banks_));
    saved_at_ = limits_.seconds();
  }

  double time_to_best() const {
    const std::optional<double> now = rounds_.time_to_best();
    return now ? before_.seconds + *now : before_.to_best;
  }

  // In order of predicted time, until enough are accepted or the time for that is up; after an
  // interruption, until one is.
  void offer_candidates() {
    std::vector<Candidate> finished = std::move(by_parts_);
    if (as_written_) finished.push_back(std::move(*as_written_));
    Offers offers(rounds_.state().incumbents.sorted(), std::move(finished), banks_, space_,
                  machine_, device_, workers_, limits_);
    const double start = limits_.seconds();
    bool up = false;
    while (!up) {
      const int wanted = is_stopped() ? 1 : options_.top_k;
      if (static_cast<int>(report_.candidates.size()) >= wanted) break;
      std::optional<Candidate> next = offers.next();
      if (!next) break;
      offer(std::move(*next));
      show_progress();
      up = options_.accept_s > 0 && limits_.seconds() - start > options_.accept_s;
    }
    report_.kept_undecided += offers.left();
    unfit_ = offers.unfit();
    if (up && offers.left() > 0) {
      note("the time was up before " + std::to_string(offers.left()) + " candidates were verified");
    }
    report_.candidates.push_back(report_.unfused);
    std::stable_sort(
        report_.candidates.begin(), report_.candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.predicted_us < b.predicted_us; });
  }

  void offer(Candidate c) {
    if (const Status s = check(c.graph, program_); !s.ok()) {
      note("a structure was lowered wrongly: " + s.error().message);
      ++report_.rejected;
      return;
    }
    try {
      if (options_.accept && !options_.accept(c)) {
        ++report_.rejected;
        return;
      }
    } catch (const std::bad_alloc&) {
      note("memory did not suffice to verify a candidate");
      limits_.end(StopReason::kMemory);
      ++report_.kept_undecided;
      return;
    }
    report_.candidates.push_back(std::move(c));
  }

  std::vector<std::pair<std::string, uint64_t>> pruned() const {
    const PlacementCounts& counts = rounds_.state().counts;
    return {{"bound", counts.cut_by_bound},
            {"duplicate", counts.cut_as_duplicate},
            {"dominated", counts.cut_as_dominated},
            {"outclassed", counts.cut_as_outclassed},
            {"does not fit", counts.cut_unfit + unfit_}};
  }

  void show_progress() const {
    if (!options_.progress) return;
    const RoundState& state = rounds_.state();
    Progress p;
    p.seconds = limits_.seconds();
    p.states = state.counts.states + point_.parts.states;
    p.structures = state.counts.structures;
    p.verified = report_.candidates.size() + report_.rejected;
    p.best_us = state.incumbents.best_us();
    p.bound_us = report_.bound_us;
    p.pruned = pruned();
    options_.progress(p);
  }

  void finish_report() {
    const RoundState& state = rounds_.state();
    report_.states = state.counts.states + point_.parts.states;
    report_.kernels_priced = state.counts.kernels_priced;
    report_.structures = state.counts.structures;
    report_.rounds = state.rounds;
    report_.tables_emptied = state.emptied;
    report_.time_to_best = time_to_best();
    report_.stop_reason = limits_.reason();
    report_.gap = report_.candidates.front().predicted_us / report_.bound_us - 1;
    report_.pruned = pruned();
  }

  const Program& program_;
  const Device& device_;
  Machine machine_;
  SearchSpace space_;
  const SearchOptions& options_;
  Limits limits_;
  Workers workers_;
  std::vector<std::unique_ptr<BankRun>> banks_;
  std::optional<Candidate> as_written_;
  std::vector<Candidate> by_parts_;  // joined from searches of parts
  Rounds rounds_;
  CheckpointIdentity identity_;
  Checkpoint point_;        // where the search stands, as far as it is not in `rounds_`
  CheckpointTimes before_;  // of the runs that this one goes on from
  double saved_at_ = 0;
  bool broken_ = false;  // a limit has cut something short: nothing is saved after that
  SearchReport report_;
  uint64_t unfit_ = 0;  // structures of which no size fits exactly
};

}  // namespace

Result<Baseline> baseline(const Program& program, const Device& device, const SearchSpace& space) {
  const Machine machine = machine_of(device);
  Result<SizedPlan> sized = sized_unfused_plan(program, machine, space.library_gemm);
  if (!sized.ok()) return sized.error();
  Baseline out;
  out.bound_us = program_bound(program, machine);
  out.unfused =
      candidate_of(finish(std::move(sized->plan), sized->tiles, sized->part_counts, machine),
                   "unfused", machine);
  SUNDOG_RETURN_IF_ERROR(check(out.unfused.graph, program));
  return out;
}

Result<SearchReport> superoptimize(const Program& program, const Device& device,
                                   const SearchSpace& space, const SearchOptions& options) {
  SUNDOG_RETURN_IF_ERROR(check(program));
  return Superoptimizer(program, device, space, options).run();
}

}  // namespace sundog::search
