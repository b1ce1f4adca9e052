// The best of each part make the best of the whole, since kernels of two parts share nothing but
// tensors. Numbers may still refuse a whole whose parts round: a partition is therefore searched
// twice, once with what is multiplied later stored in 16 bits, as a library would, and once in f32.
#include "search/search_parts.h"

#include <algorithm>
#include <map>

#include "core/text.h"
#include "search/join.h"
#include "search/partition.h"

namespace sundog::search {
namespace {

constexpr size_t kPartitions = 2;            // searched, for each way to store intermediates
constexpr uint64_t kStatesOfAPart = 100000;  // where nothing else limits it

class PartsSearch {
 public:
  PartsSearch(const Program& program, const Device& device, const SearchSpace& space,
              const SearchOptions& options)
      : program_(program), device_(device), machine_(machine_of(device)), space_(space) {
    options_.threads = options.threads;
    options_.memory_bytes = options.memory_bytes;
    options_.seed = options.seed;
    options_.stop = options.stop;
    options_.clock = options.clock;
    options_.top_k = 1;
  }

  PartsFound run(double budget_s, uint64_t states) {
    std::vector<Partition> list;
    for (const bool narrow : {true, false}) {
      for (Partition& p : partitions(program_, machine_, narrow, kPartitions)) {
        list.push_back(std::move(p));
      }
    }
    size_t parts = 0;
    for (const Partition& p : list) parts += p.parts.size();
    if (parts == 0) return std::move(found_);
    options_.budget_s = budget_s / static_cast<double>(parts);
    options_.max_states = states > 0 ? std::max<uint64_t>(1, states / parts) : kStatesOfAPart;
    for (const Partition& p : list) search(p);
    std::stable_sort(
        found_.candidates.begin(), found_.candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.predicted_us < b.predicted_us; });
    return std::move(found_);
  }

 private:
  void search(const Partition& partition) {
    std::vector<const MuGraph*> graphs;
    for (const ProgramPart& part : partition.parts) {
      const MuGraph* best = best_of(part.program);
      if (best == nullptr) return;
      graphs.push_back(best);
    }
    MuGraph whole = join(program_, partition, graphs);
    const auto same = [&](const Candidate& c) { return c.graph == whole; };
    if (std::any_of(found_.candidates.begin(), found_.candidates.end(), same)) return;
    found_.candidates.push_back(candidate_of(
        std::move(whole), std::to_string(partition.parts.size()) + " parts", machine_));
  }

  // Parts recur from partition to partition.
  const MuGraph* best_of(const Program& part) {
    const auto [it, fresh] = known_.try_emplace(print(part));
    if (!fresh) return it->second ? &*it->second : nullptr;
    Result<SearchReport> report = superoptimize(part, device_, space_, options_);
    ++found_.searches;
    if (!report.ok()) return nullptr;
    found_.states += report->states;
    it->second = std::move(report->candidates.front().graph);
    return &*it->second;
  }

  const Program& program_;
  const Device& device_;
  Machine machine_;
  SearchSpace space_;
  SearchOptions options_;
  std::map<std::string, std::optional<MuGraph>> known_;
  PartsFound found_;
};

}  // namespace

PartsFound search_parts(const Program& program, const Device& device, const SearchSpace& space,
                        const SearchOptions& options, double budget_s, uint64_t states) {
  return PartsSearch(program, device, space, options).run(budget_s, states);
}

}  // namespace sundog::search
