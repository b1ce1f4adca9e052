#include "core/schedule/kernel_scan.h"

#include <algorithm>

namespace sundog {
namespace {

class Scanner {
 public:
  explicit Scanner(const Kernel& kernel) : kernel_(kernel) {
    result_.computations.resize(kernel.computations.size());
    result_.readers.resize(kernel.computations.size());
    result_.locals.resize(kernel.computations.size());
  }

  KernelScan run() {
    statements(kernel_.body);
    for (uint32_t id = 0; id < kernel_.computations.size(); ++id) reads(id);
    return std::move(result_);
  }

 private:
  void statements(const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      position_ += kPositionStep;
      if (const auto* compute = std::get_if<Compute>(&statement.node)) {
        result_.computations[compute->computation] = {position_, around_};
      } else if (const auto* store = std::get_if<Store>(&statement.node)) {
        result_.stores.push_back({store, {position_, around_}});
      } else {
        const int index = static_cast<int>(result_.loops.size());
        const Loop& loop = std::get<Loop>(statement.node);
        result_.loops.push_back({&loop, position_, 0, around_});
        around_.push_back(index);
        statements(loop.body);
        around_.pop_back();
        position_ += kPositionStep;
        result_.loops[static_cast<size_t>(index)].last = position_;
      }
    }
  }

  void reads(uint32_t id) {
    const Computation& c = kernel_.computations[id];
    const TermId roots[] = {c.value};
    for (TermId t : reachable(kernel_.terms, roots)) {
      const auto* local = std::get_if<LocalTerm>(&kernel_.terms[t]);
      if (local == nullptr) continue;
      result_.locals[id].push_back(local->computation);
      result_.readers[local->computation].push_back(id);
    }
    if (c.rescale != kNone) result_.readers[c.rescale].push_back(id);
  }

  const Kernel& kernel_;
  KernelScan result_;
  std::vector<int> around_;
  int position_ = 0;
};

}  // namespace

int KernelScan::statement_at(size_t level, const StatementSite& inner) const {
  if (inner.around.size() <= level) return inner.position;
  return loops[static_cast<size_t>(inner.around[level])].first;
}

int KernelScan::lives_until(const StatementSite& site, const StatementSite& use) const {
  size_t common = 0;
  while (common < site.around.size() && common < use.around.size() &&
         site.around[common] == use.around[common]) {
    ++common;
  }
  if (common == use.around.size()) return use.position;
  return loops[static_cast<size_t>(use.around[common])].last;
}

KernelScan scan(const Kernel& kernel) { return Scanner(kernel).run(); }

}  // namespace sundog
