// Questions about accesses, as bit vector formulas, and their answers.
//
// Symbols "v!n!" belong to a thread and are doubled for a pair of threads; "u!n!" belong to the
// block and are doubled only for a pair of blocks.  Facts about a symbol come with it wherever it
// occurs.
#include "verify/smt_safety.h"

#include <algorithm>
#include <chrono>

#include "verify/kernel_walk.h"
#include "verify/smt.h"

namespace sundog::verify {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Calls f(symbol) for each symbol of a text; what f gives back takes its place.
template <class F>
std::string with_symbols(const std::string& text, F&& f) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const bool starts = (text[i] == 'u' || text[i] == 'v') && i + 1 < text.size() &&
                        text[i + 1] == '!' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '(');
    if (!starts) {
      result += text[i++];
      continue;
    }
    const size_t end = text.find('!', i + 2) + 1;
    result += f(text.substr(i, end - i));
    i = end;
  }
  return result;
}

std::string doubled(const std::string& text, const char* suffix, bool grid) {
  return with_symbols(text, [&](const std::string& symbol) {
    return symbol[0] == 'v' || grid ? symbol + suffix : symbol;
  });
}

}  // namespace

// `assertions` with the facts of all their symbols; a doubled symbol has the facts of its own.
std::string KernelWalk::question(const std::vector<std::string>& assertions) const {
  std::vector<std::string> all = assertions;
  std::set<std::string> known;
  std::string declarations, text;
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<std::string> found;
    std::string current = all[i];
    // The suffix follows the last "!" of a symbol.
    with_symbols(current, [&](const std::string& symbol) {
      found.push_back(symbol);
      return symbol;
    });
    for (const std::string& symbol : found) {
      for (const std::string suffix : {"", "a", "b"}) {
        const std::string name = symbol + suffix;
        const size_t at = current.find(name);
        if (at == std::string::npos) continue;
        const char after = at + name.size() < current.size() ? current[at + name.size()] : ' ';
        if (after == 'a' || after == 'b' || !known.insert(name).second) continue;
        declarations += "(declare-const " + name + " (_ BitVec " + std::to_string(width_) + "))\n";
        const auto facts = facts_.find(symbol);
        if (facts == facts_.end()) continue;
        for (const std::string& fact : facts->second) {
          if (suffix.empty()) {
            all.push_back(fact);
          } else {
            // Uniform symbols that are not doubled in the question are not in its facts either.
            const bool grid = symbol[0] == 'u';
            all.push_back(doubled(fact, suffix.c_str(), grid));
          }
        }
      }
    }
    text += "(assert " + current + ")\n";
  }
  return declarations + text;
}

void KernelWalk::ask_bounds(const MemoryAccess& a) {
  const int64_t last = a.end - a.size;
  const bool certain = a.address.low >= 0 && a.address.high <= last;
  if (certain) {
    questions.push_back({a.what + " stays inside", {}, false});
    return;
  }
  std::vector<std::string> assertions = a.conditions;
  const SymbolicInt end = number(std::max<int64_t>(last, -1));
  assertions.push_back("(or (bvslt " + a.address.text + " " + number(0).text + ") (bvslt " +
                       end.text + " " + a.address.text + "))");
  questions.push_back({a.what + " stays inside", question(assertions), false});
}

void KernelWalk::ask_race(const MemoryAccess& a, const MemoryAccess& b, bool same_thread_too,
                          bool grid) {
  const bool apart =
      a.address.high + a.size <= b.address.low || b.address.high + b.size <= a.address.low;
  if (apart) return;
  std::vector<std::string> assertions;
  for (const std::string& c : a.conditions) assertions.push_back(doubled(c, "a", grid));
  for (const std::string& c : b.conditions) assertions.push_back(doubled(c, "b", grid));
  const std::string x = doubled(a.address.text, "a", grid), y = doubled(b.address.text, "b", grid);
  assertions.push_back("(bvslt " + x + " (bvadd " + y + " " + number(b.size).text + "))");
  assertions.push_back("(bvslt " + y + " (bvadd " + x + " " + number(a.size).text + "))");
  const std::string thread = integers_.at("threadIdx").text, block = integers_.at("blockIdx").text;
  std::string other = "(not (= " + thread + "a " + thread + "b))";
  if (grid) other = "(or " + other + " (not (= " + block + "a " + block + "b)))";
  if (!same_thread_too) assertions.push_back(other);
  if (grid && a.joined && b.joined) {  // of the blocks of a group only one comes
    const std::string& group = arrival_->group;
    assertions.push_back("(or (= " + block + "a " + block + "b) (not (= " +
                         doubled(group, "a", grid) + " " + doubled(group, "b", grid) + ")))");
  }
  std::string what = a.what + " and " + b.what.substr(2) + " by different threads";
  if (same_thread_too) what = a.what + " under way and " + b.what.substr(2);
  questions.push_back({std::move(what), question(assertions), true});
}

void KernelWalk::ask_same(const std::string& what, const SymbolicInt& a, const SymbolicInt& b) {
  const bool certain = a.text == b.text;
  const std::string other = "(not (= " + a.text + " " + b.text + "))";
  questions.push_back({what, certain ? std::string() : question({other}), true});
}

void KernelWalk::ask_first(const FirstCopies& first, const SymbolicInt& begin,
                           const SymbolicInt& end) {
  ask_same("the copies before a loop are those of its first iterations", first.tile,
           plus(begin, first.at));
  ask_same("the copies before a loop end with its iterations", first.end, end);
}

// What the last block of a group reads of a tensor that the blocks write is written by its group.
void KernelWalk::ask_joined() {
  for (const MemoryAccess& read : joined_reads_) {
    const auto stores = stores_.find(read.memory);
    if (stores == stores_.end()) continue;
    for (const MemoryAccess& store : stores->second) {
      if (store.joined) continue;
      std::vector<std::string> assertions;
      for (const std::string& c : store.conditions) assertions.push_back(doubled(c, "a", true));
      for (const std::string& c : read.conditions) assertions.push_back(doubled(c, "b", true));
      const std::string x = doubled(store.address.text, "a", true),
                        y = doubled(read.address.text, "b", true);
      assertions.push_back("(bvslt " + x + " (bvadd " + y + " " + number(read.size).text + "))");
      assertions.push_back("(bvslt " + y + " (bvadd " + x + " " + number(store.size).text + "))");
      assertions.push_back("(not (= " + doubled(arrival_->group, "a", true) + " " +
                           doubled(arrival_->group, "b", true) + "))");
      questions.push_back(
          {read.what + " by the last block of another group", question(assertions), true});
    }
  }
}

Safety check_safety(std::string_view cuda, std::span<const EmittedKernel> kernels,
                    const SafetyOptions& options) {
  const double start = now();
  Safety result;
  const Result<std::vector<EmittedFunction>> functions = parse_emitted(cuda);
  if (!functions.ok() || functions->size() != kernels.size()) {
    result.undecided.push_back(functions.ok() ? "the text has other kernels"
                                              : functions.error().message);
    return result;
  }
  std::vector<std::string> texts, names;
  for (size_t k = 0; k < kernels.size(); ++k) {
    KernelWalk walk((*functions)[k], kernels[k]);
    walk.run();
    for (const std::string& problem : walk.problems) {
      result.undecided.push_back(kernels[k].name + ": not understood: " + problem);
    }
    for (const std::string& fault : walk.faults)
      result.faults.push_back(kernels[k].name + ": " + fault);
    if (!walk.problems.empty()) continue;  // what was asked until then says nothing
    for (KernelWalk::Question& q : walk.questions) {
      (q.race ? result.races : result.bounds) += 1;
      if (q.text.empty() || std::find(texts.begin(), texts.end(), q.text) != texts.end()) continue;
      texts.push_back(std::move(q.text));
      names.push_back(kernels[k].name + ": " + q.what);
    }
  }
  const SmtLimits limits{.query_s = options.query_s, .total_s = options.seconds};
  const std::vector<SmtAnswer> answers = ask(texts, limits);
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string text = names[i] + " (" + answers[i].detail + ")";
    if (answers[i].kind == SmtAnswer::kRefuted) result.faults.push_back(text);
    if (answers[i].kind == SmtAnswer::kUnknown) result.undecided.push_back(text);
  }
  result.seconds = now() - start;
  return result;
}

std::string to_string(const Safety& safety) {
  if (!safety.faults.empty()) return "a fault is possible: " + safety.faults.front();
  if (!safety.undecided.empty()) return "undecided: " + safety.undecided.front();
  return std::to_string(safety.bounds) + " bounds and " + std::to_string(safety.races) +
         " absences of races shown";
}

}  // namespace sundog::verify
