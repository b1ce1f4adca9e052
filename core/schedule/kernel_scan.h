// The statements of a kernel with positions, and who reads what.
#pragma once

#include <vector>

#include "core/mugraph.h"

namespace sundog {

// Positions are two apart, so that something can be placed before a statement.
inline constexpr int kPositionStep = 2;

struct LoopSite {
  const Loop* loop = nullptr;
  int first = 0, last = 0;  // positions of the loop itself and behind its last statement
  std::vector<int> around;  // indices of the loops around it, outermost first
};

struct StatementSite {
  int position = 0;
  std::vector<int> around;
};

struct StoreSite {
  const Store* store = nullptr;
  StatementSite site;
};

struct KernelScan {
  std::vector<LoopSite> loops;
  std::vector<StatementSite> computations;     // by computation
  std::vector<StoreSite> stores;               // in order
  std::vector<std::vector<uint32_t>> readers;  // by computation: computations that read it
  std::vector<std::vector<uint32_t>> locals;   // by computation: computations that it reads

  // The first position at the level of `level` (loops around) whose statement contains `inner`.
  int statement_at(size_t level, const StatementSite& inner) const;
  // The end of the life of what is defined at `site` and used at `use`: the end of the outermost
  // loop that holds the use and not the definition, or the use itself.
  int lives_until(const StatementSite& site, const StatementSite& use) const;
};

KernelScan scan(const Kernel& kernel);

}  // namespace sundog
