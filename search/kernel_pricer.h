// What single kernels of a bank cost, at their best sizes: worked out once and kept in the tables.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "search/bank.h"
#include "search/cost.h"
#include "search/kernel_plan.h"
#include "search/kernel_shape.h"
#include "search/lower.h"
#include "search/machine.h"
#include "search/placement_tables.h"
#include "search/search_space.h"
#include "search/term_table.h"

namespace sundog::search {

// Numbers of parts of each cut axis, for each choice of them.
std::vector<std::vector<int64_t>> part_choices(const Bank& bank, const Machine& machine);

// Names a body among those of its bank.
uint64_t hash_of(const KernelBody& body);

// Whether the node sums over a step or tile of a term with a part, where the outputs, which share
// the axes `common`, lack the part: the split is not used as one.
bool uses_absent_split(const Bank& bank, const TermTable& table, AxisSet common,
                       const RankedNode& node);

// States that placement visits in the time that pricing a kernel takes.
inline constexpr uint64_t kStatesOfPrice = 64;

class KernelPricer {
 public:
  // What was priced by it, and of that what came to nothing.
  struct Counts {
    uint64_t priced = 0, outclassed = 0, unfit = 0;
    Counts& operator+=(const Counts& o);
  };

  KernelPricer(const Bank& bank, const TermTable& table, const Machine& machine,
               const SearchSpace& space, PlacementTables& tables);

  // No structure slower than `us` is wanted: a kernel that could only be part of such is
  // outclassed. The same for all tasks of a round, since they share the prices.
  void want(double us) { most_us_ = us; }

  const std::vector<std::vector<int64_t>>& choices() const { return choices_; }

  // Of a body and its hash.
  const std::vector<KernelShape>& shapes_of(const KernelBody& body, uint64_t hash);

  // The price if it is known.
  const Price* known(uint64_t hash) const { return tables_.prices().find(hash); }
  // Works it out, unless somebody else has by then.
  const Price& price(uint64_t hash, const KernelBody& body, const KernelShape& shape);
  // Works it out and keeps it nowhere, given sizes that are known besides, for a kernel that is of
  // interest only if it takes less than `most_us`.
  Price price_below(double most_us, const GoodSizesByKey& besides, const KernelBody& body,
                    const KernelShape& shape);
  static Counts count_of(const Price& price);
  // Notes the sizes of a price that fits, where none as good are known.
  static void note_sizes(const Price& price, GoodSizesByKey& sizes);
  const Counts& counts() const { return counts_; }
  // What the kernel may take at most in a structure that is wanted.
  double most_us_of(const KernelBody& body) const;

 private:
  Price work_out(const KernelBody& body, const KernelShape& shape, double most_us,
                 const GoodSizesByKey* besides);
  bool is_outclassed(KernelPlan& plan, const KernelProfile& profile, const std::vector<Part>& parts,
                     const GoodSizes* rival, const GoodSizes* alike, double most_us) const;
  uint64_t rivals_of(const KernelBody& body, uint64_t cut) const;
  std::vector<int64_t> counts_of(size_t choice, const std::vector<Part>& parts) const;

  const Bank& bank_;
  const TermTable& table_;
  const Machine& machine_;
  const SearchSpace& space_;
  PlacementTables& tables_;
  std::vector<std::vector<int64_t>> choices_;
  Lowerer lowerer_;  // of one kernel after the other
  double most_us_ = std::numeric_limits<double>::infinity();
  Counts counts_;
};

}  // namespace sundog::search
