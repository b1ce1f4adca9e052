// The search for the pick prunes against the pick, so it seldom prices what it leaves.  A second
// search, for structures of the kind asked for alone, gives their cost; the trace of the first one
// tells which rule left them, and how far they had come.
#include "search/explain.h"

#include <algorithm>
#include <set>

#include "core/join.h"

namespace sundog::search {
namespace {

// Follows a trace and counts what happens while everything decided is of the kind asked for.
class Follower {
 public:
  Follower(const StructureQuestion& question, Explanation* explanation)
      : question_(question), explanation_(*explanation) {}

  void take(const TraceHead& head) {
    for (const auto& bank : head.banks) {
      Ranks ranks;
      for (size_t r = 0; r < bank.size(); ++r) {
        names_.insert(bank[r].name);
        const auto& stored = question_.stored;
        if (std::find(stored.begin(), stored.end(), bank[r].name) != stored.end()) {
          ranks.stored.insert(static_cast<int>(r));
          found_.insert(bank[r].name);
          if (bank[r].storable) storable_.insert(bank[r].name);
        }
        if (bank[r].name == question_.computed) {
          ranks.computed = static_cast<int>(r);
          found_.insert(bank[r].name);
        }
      }
      banks_.push_back(std::move(ranks));
    }
  }

  void take(const TaskTrace& task) {
    std::vector<TraceEvent> path;
    const Ranks& ranks = banks_[static_cast<size_t>(task.bank)];
    for (const TraceEvent& e : task.events) {
      switch (e.kind) {
        case TraceKind::kOutputs:
        case TraceKind::kCompute:
        case TraceKind::kLoad:
        case TraceKind::kShape:
          path.resize(std::min<size_t>(path.size(), e.depth));
          path.push_back(e);
          break;
        case TraceKind::kCut:
          if (is_of_kind(path, ranks)) count(explanation_.cuts[static_cast<size_t>(e.rule)], e.us);
          break;
        case TraceKind::kStructure:
          if (is_of_kind(path, ranks)) ++explanation_.structures;
          break;
        case TraceKind::kPrice:
          break;
      }
    }
  }

  // The first name that no term has.
  std::optional<std::string> unknown() const {
    for (const std::string& name : question_.stored) {
      if (!found_.contains(name)) return name;
    }
    if (!question_.computed.empty() && !found_.contains(question_.computed)) {
      return question_.computed;
    }
    return std::nullopt;
  }
  std::string known() const { return join({names_.begin(), names_.end()}); }
  std::vector<std::string> never_stored() const {
    std::vector<std::string> never;
    for (const std::string& name : question_.stored) {
      if (!storable_.contains(name)) never.push_back(name);
    }
    return never;
  }

 private:
  struct Ranks {
    std::set<int> stored;
    int computed = -1;
  };

  static void count(Explanation::Cut& cut, double us) {
    ++cut.times;
    if (us > 0) cut.least_us = std::min(cut.least_us, us);
  }

  bool is_of_kind(const std::vector<TraceEvent>& path, const Ranks& ranks) const {
    if (ranks.stored.size() < question_.stored.size()) return false;
    std::set<int> missing = ranks.stored;
    bool computed = question_.computed.empty();
    for (const TraceEvent& e : path) {
      if (e.kind == TraceKind::kLoad) {
        if (question_.nothing_else && !ranks.stored.contains(e.term)) return false;
        missing.erase(e.term);
      }
      computed = computed || (e.kind == TraceKind::kCompute && e.term == ranks.computed);
    }
    return computed && missing.empty();
  }

  const StructureQuestion& question_;
  Explanation& explanation_;
  std::vector<Ranks> banks_;
  std::set<std::string> names_, found_, storable_;
};

// An output of the program by this name that no other output is made of: no kernel can load it.
bool is_last(const Program& program, const std::string& name) {
  for (const Output& output : program.outputs) {
    bool named = output.tensor.name == name;
    for (const Definition& d : program.definitions) {
      named = named || (d.name == name && d.value == output.value);
    }
    const auto reads = [&](const Output& other) {
      const TermId roots[] = {other.value};
      const auto below = reachable(program.terms, roots);
      return other.value != output.value &&
             std::find(below.begin(), below.end(), output.value) != below.end();
    };
    if (named && std::none_of(program.outputs.begin(), program.outputs.end(), reads)) return true;
  }
  return false;
}

}  // namespace

Result<Explanation> explain(const Program& program, const Device& device, const SearchSpace& space,
                            const SearchOptions& options, const StructureQuestion& question) {
  for (const std::string& name : question.stored) {
    if (!is_last(program, name)) continue;
    return bad_input("'" + name + "' is an output of the program: it is stored in any case",
                     "name terms that pass from one kernel to another");
  }
  Explanation result;
  Follower follower(question, &result);
  SearchOptions search = options;
  search.accept = {};
  search.save = {};
  search.resume.clear();
  search.top_k = 1;
  search.trace.head = [&](const TraceHead& head) { follower.take(head); };
  search.trace.task = [&](const TaskTrace& task) { follower.take(task); };
  const Result<SearchReport> picked = superoptimize(program, device, space, search);
  if (!picked.ok()) return picked.error();
  if (const auto name = follower.unknown()) {
    return bad_input("no term is named '" + *name + "'", "there are " + follower.known());
  }
  result.pick_us = picked->candidates.front().predicted_us;
  result.pick = picked->candidates.front().structure;
  result.never_stored = follower.never_stored();
  search.trace = {};
  search.only = question;
  const Result<SearchReport> asked = superoptimize(program, device, space, search);
  if (!asked.ok()) return asked.error();
  result.exhausted = asked->stop_reason == "exhausted";
  for (const Candidate& c : asked->candidates) {
    if (c.graph == asked->unfused.graph && c.kind == asked->unfused.kind) continue;
    result.best_us = c.predicted_us;
    result.best = c.structure;
    break;
  }
  return result;
}

}  // namespace sundog::search
