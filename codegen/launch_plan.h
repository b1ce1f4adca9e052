// The launch plan: how the kernels of one µGraph are launched, as data.  The launcher in the
// emitted text, the launch in this process (codegen/launch.h) and the emulator are three readers of
// it.
//
// Inputs and outputs stand in the order of the program's.  Pointers are those handed in by the
// caller: element (0, ..., 0) of a tensor lies `offset` elements behind them (core/program.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/library_gemm.h"

namespace sundog::codegen {

struct PlanTensor {
  std::string name;
  DType dtype = DType::kF16;
  int64_t elements = 0;  // that must exist from the pointer on (span_elements)
  int64_t bytes = 0;
  bool operator==(const PlanTensor&) const = default;
};

// How a bulk copy sees a tensor (CUtensorMap): dimensions from the contiguous one outwards.
struct PlanTensorMap {
  std::string type;  // as the emitted text has it
  DType dtype = DType::kF16;
  int64_t offset = 0;                            // bytes from the pointer to the first element
  int swizzle = 0;                               // bytes of a swizzled row; 0: none
  std::vector<int64_t> extents, strides, boxes;  // elements, bytes, elements
  bool operator==(const PlanTensorMap&) const = default;
};

// One parameter of a kernel: a pointer, or a tensor map of what lies behind it.
struct PlanArgument {
  enum class Kind { kInput, kOutput, kWorkspace };
  Kind kind = Kind::kInput;
  int index = 0;       // of the input or output
  int64_t offset = 0;  // bytes into the workspace
  std::optional<PlanTensorMap> map = {};
  bool operator==(const PlanArgument&) const = default;
};

struct PlanKernel {
  std::string name;  // extern "C"
  std::array<int64_t, 3> grid{1, 1, 1};
  int block = 1;             // threads
  int64_t shared_bytes = 0;  // dynamic
  std::vector<PlanArgument> arguments;
  // May start before the kernel before it is done (programmatic dependent launch, sm_90 and later):
  // by itself it waits for what it needs (sd::grid_wait).
  bool dependent = false;
  // Blocks of a cluster, along x: the kernel's own text asks for it (__cluster_dims__).  1: none.
  int cluster = 1;
  // Not a kernel of the emitted text but the library's (cuBLAS): `tensor` of its matrices are
  // positions in `arguments`, which are pointers.  The rest tells how the emulator runs what stands
  // in its place (codegen/emit_library.h).
  std::optional<LibraryGemm> gemm = {};
  bool operator==(const PlanKernel&) const = default;
};

struct LaunchPlan {
  std::string name;  // of the emitted launcher
  std::vector<PlanTensor> inputs, outputs;
  // What the workspace holds before a launch does not matter, but for its first zeroed_bytes: those
  // are 0 before the first launch, and every launch leaves them so (counters of arrivals).
  int64_t workspace_bytes = 0;
  int64_t zeroed_bytes = 0;
  // The last bytes of the workspace are the library's, so that its calls may be captured.
  int64_t library_bytes = 0;
  int64_t library_offset() const { return workspace_bytes - library_bytes; }
  std::vector<PlanKernel> kernels;
  bool operator==(const LaunchPlan&) const = default;
};

}  // namespace sundog::codegen
