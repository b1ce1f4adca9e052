// What a researcher may vary: which axioms hold, how far structure goes, the order of things.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace sundog::search {

struct SearchSpace {
  // Axioms (search/rewrite.h); each only proposes, so switching one off loses candidates, never
  // truth.
  bool flatten = true;     // x * sum[S](y) = sum[S](x * y), products of products
  bool exchange = true;    // a sum inside a sum becomes one sum over both axes
  bool distribute = true;  // sum(x * (a + b)) = sum(x * a) + sum(x * b), where a or b loses an axis
  bool factor = true;      // x * a + x * b = x * (a + b)
  bool split_exp = true;   // exp(a - M) = exp(a - c) * exp(c - M), c a partial maximum of a
  bool shift_exp = true;   // sum(exp(a) * x) / sum(exp(a)), with the maximum of a taken off
  bool online = true;      // the rescaled accumulator

  bool nested_loops = true;            // a loop in a loop over a reduced axis
  bool nested_parallel_loops = false;  // and in one over another axis

  int most_kernels = 6;
  int most_split_axes = 1;  // reduced axes that are cut into parts at once
  bool last_block = true;   // partial results may be joined by the last block of a group
  // Or by the blocks of a cluster, where the device has them.  Slower than the best without in each
  // of twelve programs whose candidates were timed (benchmarks/results/h200.md).
  bool cluster = false;
  bool library_gemm = true;     // a product of stored terms may be a library's
  int64_t shortest_loop = 128;  // longer reduced axes may loop
  int kept_per_kind = 8;        // structures of one kind that are kept: numbers may refuse the best
  int sizes_per_structure = 4;  // choices of tiles of one structure that are offered
  bool prune_by_bound = true;
  bool prune_duplicates = true;
  bool prune_dominated = true;
  bool prune_outclassed = true;
  bool prune_more_kernels = true;  // more than three only as long as it pays (search/rounds.cpp)
  // Between two kernels any term may be stored, not only those that experience says are worth it
  // (search/term_table.h).
  bool store_anything = false;
  // The program as it is written, in one kernel that holds its rows, is a candidate and the first
  // incumbent, where it fits (search/as_written.h).
  bool as_written = true;
  Rounding rounding = Rounding::kWide;  // which casts stay
};

}  // namespace sundog::search
