// How a kernel runs on threads: for each computation the threads that evaluate it (a layout), where
// its value is kept, how partial results are combined, and which shared memory all of it needs.
//
// The plan is a pure function of the µGraph.  Search asks it for the shared bytes and registers of
// a candidate; code generation follows it to the letter, so the estimate is exact about shared
// memory.
//
// A value is *kept in registers* in one layout.  A reader whose own layout holds the same elements
// reads the registers; any other reader reads a copy in shared memory, which the plan then adds (a
// mirror).  So every combination of layouts is right, and good ones are cheap.
//
// A reduction is evaluated by its *iteration* layout, over kept and reduced tile axes; slicing off
// the reduced ones gives the *partial* sums of a thread.  They are combined over lanes by shuffles
// and over warps through scratch memory: at once, or for an accumulator that nothing reads inside
// its loops (*deferred*) once, after them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/dependence.h"
#include "core/mugraph.h"
#include "core/schedule/access.h"
#include "core/schedule/layout.h"
#include "core/status.h"

namespace sundog {

enum class Realisation : uint8_t {
  kAsyncCopy,    // a load into shared memory by cp.async
  kElementwise,  // one element, one evaluation; loads too
  kReduce,       // loops of fused multiply-adds
  kMma,          // tensor core
};

// A tile in the shared arena, row-major; `copies` of them one after the other.  In a swizzled tile
// the 16-byte words of a row are permuted: word w of row r lies at w ^ (r >> swizzle_shift &
// swizzle_mask).  Rows that are longer than a panel are cut into panels, which lie one after the
// other, each with its part of all rows.
struct SharedTile {
  std::vector<TileAxis> axes;  // outer to inner, with the extents allocated
  int64_t pitch = 1;           // elements from row to row of the innermost axis
  int64_t panel = 0;           // elements of a row in one panel (then the pitch); 0: whole rows
  DType dtype = DType::kF32;
  int copies = 1;
  int swizzle_mask = 0, swizzle_shift = 0;
  int64_t offset = 0;       // bytes in the arena
  int64_t alignment = 128;  // of the offset
  int first = 0, last = 0;  // statement positions between which it is needed

  int64_t elements() const;           // of one copy
  int64_t rows() const;               // of one copy
  int64_t bytes() const;              // of all copies
  int64_t stride(AxisId axis) const;  // elements along an axis; 0 if the tile lacks it
};

// Operands and layouts of a sum of products on m16n8k16 atoms, or on those of a warp group, whose
// four warps hold 16 rows each of 64: then the registers of a warp hold what m16n8k16 would give
// them.
struct MmaPlan {
  bool warpgroup = false;
  uint32_t a = 0, b = 0;                                // computations: the M side and the N side
  bool a_in_registers = false, b_in_registers = false;  // else from shared memory
  AxisId m = 0, n = 0, k = 0;                           // the axes that the atom cuts
  std::vector<AxisId> outer_k;                          // other reduced axes: loops around
  DType dtype = DType::kF16;  // of 16 bits; operands of 8 are widened to it
  // Of an operand of 8 bits that lies across K, two columns come together: rows 2 i and 2 i + 1 of
  // the tile are rows i and i + 8 of an atom's M side, and columns i of two atoms of the N side.
  bool a_interleaved = false, b_interleaved = false;
  Layout a_layout, b_layout;  // fragments; register units as the instruction wants them
  int64_t k_steps = 1;        // atoms along k of one warp
};

// A sum along rows of 16-bit values that lie in registers as the M side of m16n8k16: the product
// with ones gives every lane of a row its sum.
struct RowSum {
  uint32_t operand = 0;  // computation
  AxisId m = 0, k = 0;   // kept and reduced
  Layout a_layout;       // fragments, as in MmaPlan
};

// What bulk copies ask for.
inline constexpr int64_t kLongestBox = 256;  // elements of a dimension that one copy takes
inline constexpr size_t kMostBulkDims = 5;
inline constexpr int64_t kBulkUnit = 16;        // bytes: of strides, addresses and rows of a box
inline constexpr int64_t kBulkAlignment = 128;  // bytes: of a box in shared memory

// A dimension of a tensor as a bulk copy sees it.
struct BulkDim {
  int64_t extent = 1;  // of the tensor
  int64_t stride = 1;  // elements; 1 in the first dimension
  int64_t box = 1;     // elements that one copy takes
  int64_t pieces = 1;  // copies along it, of a tile that is longer than a box may be
  Affine index;        // where its first element lies; over grid and loop factors
};

// A load as bulk tensor copies: what lies outside of the tensor arrives as zeros.  The tile's axes
// are dimensions 0, 1, ... from the innermost outwards.
struct BulkPlan {
  uint32_t tensor = 0;
  std::vector<BulkDim> dims;  // contiguous one first
  int64_t panels = 1;         // of the tile's rows, each a copy
};

// The barriers of a loop whose loads are bulk copies: for each stage one that counts the
// bytes that arrive (full), behind them for each stage one that counts the warps that have read
// (empty).
struct BulkLoop {
  AxisId factor = 0;            // loops in sequence may run over the same
  std::vector<uint32_t> loads;  // computations that it copies ahead, in order
  int stages = 1;
  int64_t offset = 0;       // of the barriers in the arena
  int64_t stage_bytes = 0;  // that arrive
};

struct Combine {
  uint32_t lanes = 0;         // bits of the lane index over which partial sums lie
  std::vector<Mode> warps;    // warp modes over which partial sums lie
  bool redistribute = false;  // after combining over warps every thread holds other elements
  std::optional<SharedTile> scratch;
  int64_t parts() const;  // warps that hold a part of one element
  bool needed() const { return lanes != 0 || !warps.empty(); }
};

struct ComputationPlan {
  Realisation kind = Realisation::kElementwise;
  AxisSet reduced;  // tile axes that the root reduction runs over
  AxisSet loops;    // loop factors that it accumulates over
  Layout iteration, partial;
  Layout layout;                     // of the finished value
  bool in_registers = true;          // the finished value is (also) in registers
  std::optional<SharedTile> shared;  // the storage, or a mirror
  Combine combine;
  bool deferred = false;
  int finish_before = -1;     // deferred: the statement position before which it is combined
  bool into_partial = false;  // accumulate_into: adds to the target's partial sums
  std::optional<MmaPlan> mma;
  std::optional<RowSum> row_sum;
  int window = 0;  // a load of runs that begin anywhere: elements of one that is read in the two
                   // words of 16 bytes in which it lies; 0: of runs that begin at words
  bool ahead = false;            // those words are in registers an iteration before they are needed
  int async_bytes = 0;           // of one cp.async
  AxisId ring = kNone;           // async copy: the loop that it runs ahead of
  std::optional<BulkPlan> bulk;  // the copies are bulk tensor copies
  int position = 0;              // of its statement
};

// The layout in which a store reads its value.
struct StorePlan {
  Layout layout;
  bool from_registers = true;
};

// Positions number the statements of a kernel in order, two apart: a statement at p, a loop from
// its own position to the one behind its last statement.
struct KernelPlan {
  std::vector<ComputationPlan> computations;
  std::vector<StorePlan> stores;  // in the order of the statements
  std::vector<BulkLoop> bulk_loops;
  int64_t shared_bytes = 0;
  int registers = 0;  // a thread's, estimated
  int warps = 1;
};

// Errors: kUnsupported, for what fits no device (an index range beyond 32 bits in a tile).
Result<KernelPlan> plan_kernel(const MuGraph& graph, const Kernel& kernel);

}  // namespace sundog
