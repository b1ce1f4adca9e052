// µGraphs: how a program is computed on the device.
//
// A µGraph is an ordered list of kernels.  A kernel is a nest of loops over computations; each
// computation realises one term at one position, with a place for each of its axis factors and a
// storage.  Nothing else describes a schedule.
//
// Places.  A kernel splits axes of the µGraph into factors, outermost first: with
// `split k = k.s(16) * k.o * k.i(128)` the index along k is (k.s * |k.o| + k.o) * 128 + k.i.  The
// product of the extents may exceed the axis (a ragged split): indices beyond it are absent.  Each
// factor has one place: the grid (blockIdx), a loop, or the tile (all other factors).
//
// Pre-defined kernels.  A kernel is defined by its graph, or it is one of a library's: then its
// statements say what is computed and nothing of how (core/library_gemm.h has the rules).
//
// Launches.  A kernel is a launch of its own (`via kernel`), or it is run by blocks of the kernel
// before it when those that it reads from have arrived (core/via.h): one that joins the partial
// results of a split needs no second launch then, and `via cluster` no memory for them either.
//
// Meaning (core/interpret.h runs exactly this).  Kernels run in order; the blocks of a kernel in
// any order.  A block runs its statements in order; a computation is evaluated for every value of
// its tile axes at the current grid and loop indices.
//  - Absent elements are never computed, never stored, and skipped by every reduction.
//  - A reduction may run over tile factors of its operand and over factors of enclosing loops. With
//    a loop factor it is an *accumulator*: it starts at the unit (0 for sum, -inf for max) when the
//    outermost of those loops is entered, and each iteration adds its part.  Readers inside the
//    loop see the running value, readers after the loop the total.  The loops it runs over must be
//    the innermost ones around it.
//  - A grid factor that a value depends on but that is reduced nowhere in the kernel stays visible
//  as
//    an axis of what is stored (split-K): the µGraph has an axis for it, which later kernels
//    reduce.
//  - `rescale` names a running maximum m of the same loop: whenever m moves from m' to m, the
//    accumulator is first multiplied by exp(m' - m) (by 0 while m' is -inf).  It denotes
//    sum[o](exp(m.o - M) * t.o) with M the final maximum.
//  - `accumulate_into` adds this computation's reduction into the storage of another accumulator,
//    which from then on denotes the sum of both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/axis.h"
#include "core/dtype.h"
#include "core/program.h"
#include "core/status.h"
#include "core/term.h"

namespace sundog {

inline constexpr uint32_t kNone = ~uint32_t{0};

// An axis of a µGraph: an axis of the program (the first ones, in the program's order), or a grid
// factor of a kernel that stored partial results carry.
struct MuAxis {
  std::string name;
  int64_t extent = 0;
  uint32_t kernel = kNone;  // of a partial-result axis: the kernel and factor that it stems from
  AxisId factor = 0;
  bool operator==(const MuAxis&) const = default;
};

// A factor of a µGraph axis, local to its kernel.  AxisIds in the kernel's terms are positions in
// Kernel::factors.  An axis that is not split is one factor with stride 1 and the axis's extent.
struct Factor {
  std::string name;    // "k.o"; the name of the axis where it is not split
  AxisId axis = 0;     // in MuGraph::axes
  int64_t extent = 0;  // number of values, at least 1 (0 for an empty axis)
  int64_t stride = 1;  // index of the axis that one step of this factor moves by
  bool operator==(const Factor&) const = default;
};

enum class Storage : uint8_t { kReg, kShared };

// 16-bit operands, f32 accumulator.  kM16N8K16 belongs to a warp; kM64N8K16 to four neighbouring
// ones, reads its operands from shared memory by itself and needs sm_90a.
enum class MmaAtom : uint8_t { kNoAtom, kM16N8K16, kM64N8K16 };

struct WarpSplit {
  AxisId factor = 0;
  int count = 1;  // warps along that factor
  bool operator==(const WarpSplit&) const = default;
};

// One term at one position.  `value` is a term of the kernel's graph; a reduction may stand only at
// its root, and its leaves are reads of device tensors (InputTerm), of other computations
// (LocalTerm), constants, sizes and indices.  A read of a device tensor alone is a load.
struct Computation {
  std::string name;
  std::vector<AxisId> axes;  // tile factors of the result
  TermId value = kNoTerm;
  Storage storage = Storage::kReg;
  DType dtype = DType::kF32;         // of the storage; accumulators are f32
  uint32_t rescale = kNone;          // computation: the running maximum
  uint32_t accumulate_into = kNone;  // computation: an earlier accumulator
  MmaAtom mma = MmaAtom::kNoAtom;    // for sums of products
  bool mma_swap = false;             // true: the second factor of the product is the M side
  std::vector<WarpSplit> warps;      // who holds it; empty: derived (core/schedule/layout.h)
  bool operator==(const Computation&) const = default;
};

struct Statement;

struct Compute {
  uint32_t computation = 0;
  bool operator==(const Compute&) const = default;
};

// Writes a computation to a device tensor of the µGraph, one index expression a dimension.
struct Store {
  uint32_t computation = 0;
  uint32_t tensor = 0;
  std::vector<IndexExpr> index;
  bool operator==(const Store&) const = default;
};

struct Loop {
  AxisId factor = 0;
  int stages = 1;                    // loads in flight: 1 is none ahead
  std::vector<IndexCondition> trim;  // run only the iterations where all hold; over grid and loops
  std::vector<Statement> body;
  bool bulk = false;  // the loads ahead are bulk tensor copies
  bool operator==(const Loop&) const;
};

struct Statement {
  std::variant<Compute, Store, Loop> node;
  bool operator==(const Statement&) const = default;
};
inline bool Loop::operator==(const Loop&) const = default;

// How a kernel gets its blocks.  kLastBlock: of the blocks of the kernel before that share its grid
// index, the last to arrive runs it.  kCluster: those blocks are a thread-block cluster, and each
// runs its share.
enum class Via : uint8_t { kKernel, kLastBlock, kCluster };

// Who says how a kernel computes what it does: its graph, or a library.
enum class KernelKind : uint8_t { kGraphDefined, kLibraryGemm };

struct Kernel {
  std::string name;
  KernelKind kind = KernelKind::kGraphDefined;
  std::vector<Factor> factors;
  std::vector<AxisId> grid;  // slowest first; blockIdx.x runs over the product
  int warps = 4;             // per block
  Via via = Via::kKernel;
  TermGraph terms;
  std::vector<Computation> computations;
  std::vector<Statement> body;
  bool operator==(const Kernel&) const = default;
};

// kCluster: an intermediate one that blocks keep in shared memory, of µGraphs that are planned
// (core/schedule/cluster.h); in all others it is kIntermediate.
enum class TensorRole : uint8_t { kInput, kOutput, kIntermediate, kCluster };

struct DeviceTensor {
  TensorDecl decl;  // dims over MuGraph::axes
  TensorRole role = TensorRole::kIntermediate;
  bool operator==(const DeviceTensor&) const = default;
};

struct MuGraph {
  std::string name;
  std::string program;  // name of the program that it computes
  std::vector<MuAxis> axes;
  std::vector<DeviceTensor> tensors;  // the program's inputs, its outputs, then intermediates
  std::vector<Kernel> kernels;        // in launch order
  bool operator==(const MuGraph&) const = default;
};

std::vector<int64_t> axis_extents(const MuGraph& graph);
std::vector<int64_t> factor_extents(const Kernel& kernel);

// Factors of `axis` in this kernel, outermost first.
std::vector<AxisId> factors_of(const Kernel& kernel, AxisId axis);

// The index along µGraph axis `axis` as an expression over the kernel's factors.
IndexExpr axis_index(const Kernel& kernel, AxisId axis);

// Factors of a kernel that make the index along `axis` of what it stores: of the program's axis, or
// the one that the axis of a partial result stems from.
std::vector<AxisId> stored_factors(const MuGraph& graph, uint32_t kernel, AxisId axis);

// The default index of a tensor in a kernel: each dimension with its axes written by factors.
std::vector<IndexExpr> default_index(const Kernel& kernel, const TensorDecl& tensor);

// The stores of a kernel in the order of its text, those in loops included.
std::vector<const Store*> stores_of(const Kernel& kernel);

// Number of blocks of a kernel.
int64_t block_count(const Kernel& kernel);

// For each computation the loops around it, outermost first (factor ids).
std::vector<std::vector<AxisId>> enclosing_loops(const Kernel& kernel);

// Factors of enclosing loops that the computation's root reduction runs over; empty if it is no
// accumulator.
AxisSet accumulated_loops(const Kernel& kernel, uint32_t computation);

// The specification of a well-formed µGraph for `program`: every rule of the comment at the top
// that does not need running it.  The message names kernel and computation.  Run at each stage
// boundary.
Status check(const MuGraph& graph, const Program& program);

// The specification of a well-formed program.
Status check(const Program& program);

}  // namespace sundog
