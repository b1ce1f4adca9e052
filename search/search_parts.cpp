// The best of each part make the best of the whole, since kernels of two parts share nothing but
// tensors. Numbers may still refuse a whole whose parts round: a partition is therefore searched
// twice, once with what is multiplied later stored in 16 bits, as a library would, and once in f32.
//
// Of those that store alike, the first gives the others what they have to beat: a part may take
// what is left of that when the parts before it are as fast as was found, and those behind it as
// their bounds. One that cannot be so fast ends its partition.
#include "search/search_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/proto.h"
#include "core/text.h"
#include "search/bound.h"
#include "search/join.h"
#include "search/partition.h"

namespace sundog::search {
namespace {

constexpr size_t kPartitions = 2;            // searched, for each way to store intermediates
constexpr uint64_t kStatesOfAPart = 100000;  // where nothing else limits it
constexpr double kLeastShare = 0.01;         // of the time, where none is left
constexpr double kSlack =
    1.25;  // parts so much slower than wanted are taken: numbers may refuse the first

class PartsSearch {
 public:
  PartsSearch(const Program& program, const Device& device, const SearchSpace& space,
              const SearchOptions& options, std::function<void(const PartsState&)> save)
      : program_(program),
        device_(device),
        machine_(machine_of(device)),
        space_(space),
        save_(std::move(save)) {
    options_.threads = options.threads;
    options_.memory_bytes = options.memory_bytes;
    options_.seed = options.seed;
    options_.stop = options.stop;
    options_.clock = options.clock;
    // One is asked for; a second of each kind, since sizes are looked for more closely at the end.
    options_.top_k = 1;
    space_.kept_per_kind = 2;
    space_.sizes_per_structure = 1;
    if (!save_) return;
    options_.save_every_s = options.save_every_s;
    options_.save = [this](const std::string& checkpoint) {
      state().checkpoint = checkpoint;
      save_(state());
    };
  }

  PartsFound run(double budget_s, uint64_t states, PartsState before) {
    std::vector<Partition> lists[2];
    size_t parts = 0;
    for (const bool narrow : {true, false}) {
      lists[narrow] = partitions(program_, machine_, narrow, kPartitions);
      std::stable_sort(lists[narrow].begin(), lists[narrow].end(), is_finer);
      for (const Partition& p : lists[narrow]) parts += p.parts.size();
    }
    if (parts == 0) return std::move(found_);
    budget_s_ = budget_s;
    parts_left_ = parts;
    if (options_.clock) started_at_s_ = options_.clock();
    options_.max_states = states > 0 ? std::max<uint64_t>(1, states / parts) : kStatesOfAPart;
    // What was found with another limit is not what would be found now.
    if (before.states_of_a_part == options_.max_states) state() = std::move(before);
    state().states_of_a_part = options_.max_states;
    for (const bool narrow : {true, false}) {
      best_us_ = std::numeric_limits<double>::infinity();
      for (const Partition& p : lists[narrow]) {
        const size_t left_after = parts_left_ - p.parts.size();
        search(p);
        parts_left_ = left_after;
      }
    }
    std::stable_sort(
        found_.candidates.begin(), found_.candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.predicted_us < b.predicted_us; });
    return std::move(found_);
  }

 private:
  // Small parts take little time, and what they come to shortens the search of large ones.
  static bool is_finer(const Partition& a, const Partition& b) {
    const auto largest = [](const Partition& p) {
      int most = 0;
      for (const ProgramPart& part : p.parts) most = std::max(most, count_products(part.program));
      return most;
    };
    return largest(a) < largest(b);
  }

  static bool is_wanted(const FoundPart& part, double most_us) {
    return std::isfinite(part.us) && part.us <= kSlack * most_us;
  }

  void search(const Partition& partition) {
    double rest = -machine_.overlap_us * static_cast<double>(partition.parts.size() - 1);
    for (const ProgramPart& part : partition.parts) rest += program_bound(part.program, machine_);
    std::vector<const MuGraph*> graphs;
    for (const ProgramPart& part : partition.parts) {
      rest -= program_bound(part.program, machine_);
      const FoundPart& best = best_of(part.program, best_us_ - rest);
      --parts_left_;
      if (!is_wanted(best, best_us_ - rest)) return;
      rest += best.us;
      graphs.push_back(&graphs_.at(best.program));
    }
    Candidate whole = candidate_of(join(program_, partition, graphs),
                                   std::to_string(partition.parts.size()) + " parts", machine_);
    best_us_ = std::min(best_us_, whole.predicted_us);
    const auto same = [&](const Candidate& c) { return c.graph == whole.graph; };
    if (std::any_of(found_.candidates.begin(), found_.candidates.end(), same)) return;
    const bool is_best =
        std::all_of(found_.candidates.begin(), found_.candidates.end(),
                    [&](const Candidate& c) { return whole.predicted_us < c.predicted_us; });
    if (is_best && options_.clock) found_.best_at = options_.clock();
    found_.candidates.push_back(std::move(whole));
  }

  // Parts recur from partition to partition.
  const FoundPart& best_of(const Program& part, double most_us) {
    FoundPart& known = record_of(print(part));
    if (most_us <= 0) return known;  // nothing is left for it
    const bool searched = known.most_us > 0 && has_graph(known, part);
    if (searched && (is_wanted(known, known.most_us) || most_us <= known.most_us)) return known;
    if (state().underway == known.program) {
      options_.resume = std::exchange(state().checkpoint, {});
    } else {
      options_.resume.clear();
    }
    state().underway = known.program;
    options_.most_us = most_us;
    options_.budget_s = share_of_time();
    Result<SearchReport> report = superoptimize(part, device_, space_, options_);
    state().underway.clear();
    state().checkpoint.clear();
    ++state().searches;
    known.most_us = most_us;
    known.us = std::numeric_limits<double>::infinity();
    if (!report.ok()) return known;
    state().states += report->states;
    known.us = report->candidates.front().predicted_us;
    known.graph = serialize(report->candidates.front().graph);
    graphs_[known.program] = std::move(report->candidates.front().graph);
    return known;
  }

  // Of the time that is left, for one of the parts that are: those that were known or given up, and
  // searches that came to their end, leave theirs to the others.
  double share_of_time() const {
    if (budget_s_ == 0 || !options_.clock) return 0;
    const double left = budget_s_ - (options_.clock() - started_at_s_);
    return std::max(left / static_cast<double>(parts_left_), kLeastShare * budget_s_);
  }

  FoundPart& record_of(const std::string& program) {
    auto& found = state().found;
    const auto it = std::find_if(found.begin(), found.end(),
                                 [&](const FoundPart& p) { return p.program == program; });
    if (it != found.end()) return *it;
    found.push_back({program, 0, std::numeric_limits<double>::infinity(), {}});
    return found.back();
  }

  // Those of an earlier process are still to be read.
  bool has_graph(const FoundPart& known, const Program& part) {
    if (!std::isfinite(known.us) || graphs_.contains(known.program)) return true;
    Result<MuGraph> graph = parse_mugraph_proto(known.graph, part);
    if (!graph.ok() || !check(*graph, part).ok()) return false;
    graphs_[known.program] = std::move(*graph);
    return true;
  }

  PartsState& state() { return found_.state; }

  const Program& program_;
  const Device& device_;
  Machine machine_;
  SearchSpace space_;
  SearchOptions options_;
  std::function<void(const PartsState&)> save_;
  std::map<std::string, MuGraph> graphs_;  // of the parts found, by program
  double best_us_ = 0;                     // of the wholes that store alike
  double budget_s_ = 0, started_at_s_ = 0;
  size_t parts_left_ = 0;  // to be searched, where none is known
  PartsFound found_;
};

}  // namespace

PartsFound search_parts(const Program& program, const Device& device, const SearchSpace& space,
                        const SearchOptions& options, double budget_s, uint64_t states,
                        PartsState state, const std::function<void(const PartsState&)>& save) {
  return PartsSearch(program, device, space, options, save).run(budget_s, states, std::move(state));
}

}  // namespace sundog::search
