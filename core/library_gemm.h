// The matrix product of a pre-defined kernel, as a library takes it.
//
// A pre-defined kernel (KernelKind::kLibraryGemm) is no schedule of ours: it holds one computation,
// `sum[k](a * b)` over reads of two device tensors, and its store, and a library computes it.  What
// it means is what it would mean as any other kernel, so interpreter and verifier see nothing new.
//
// The form is that of a strided-batched GEMM with f32 accumulators (cublasGemmStridedBatchedEx):
// operands of one type, f16, bf16 or f32; a result of that type or f32.  Axes are factors of the
// product by where they stand: in both operands and the result the batch, in one operand and the
// result rows or columns, in both operands and reduced k.  Any number of axes may be of a kind if
// they step through memory as one, and rows that do not may be a batch.  Of each matrix either rows
// or columns are contiguous.
#pragma once

#include <cstdint>

#include "core/mugraph.h"

namespace sundog {

// A matrix in a device tensor.
struct GemmMatrix {
  uint32_t tensor = 0;
  int64_t offset = 0;        // elements from the tensor's pointer to the first one
  int64_t leading = 1;       // elements from one row to the next; transposed: from column to column
  int64_t batch_stride = 0;  // elements from one matrix of the batch to the next; 0: they are one
  bool transposed = false;   // columns are contiguous, not rows
  bool operator==(const GemmMatrix&) const = default;
};

// c[m, n] = sum over k of a[m, k] * b[k, n], for each of a batch.  The rows of c are contiguous.
struct LibraryGemm {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  GemmMatrix a, b, c;
  DType operands = DType::kF16, result = DType::kF16;
  bool operator==(const LibraryGemm&) const = default;
};

// The product that `kernel` is.  Errors (kBadInput, or kUnsupported where a library has no such
// call), with the kernel's name: it holds anything else, cuts an axis, reads outside of a tensor,
// is empty, or its memory is not laid out so.
// require: the kernel is well-formed as one that is defined by its graph.
Result<LibraryGemm> library_gemm(const MuGraph& graph, const Kernel& kernel);

}  // namespace sundog
