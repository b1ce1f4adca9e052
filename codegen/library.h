// The library of pre-defined kernels (cuBLAS), opened at run time: nothing is linked with it, and
// only a launch plan that has a call of it needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/library_gemm.h"
#include "core/status.h"

namespace sundog::codegen {

// The functions that are used, by the names that the library exports (cuBLAS 11 and later): a
// table, so that tests can put a library of their own in its place.  Handles are opaque pointers,
// enumerations are ints.
struct LibraryApi {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  int (*set_workspace)(void* handle, void* workspace, size_t bytes);
  int (*set_math_mode)(void* handle, int mode);
  int (*gemm)(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha,
              const void* a, int type_a, int lda, long long stride_a, const void* b, int type_b,
              int ldb, long long stride_b, const void* beta, void* c, int type_c, int ldc,
              long long stride_c, int batch, int compute, int algorithm);
};

// Bytes of workspace that the library asks for on an architecture (80, 90), as its manual has it.
int64_t library_workspace_bytes(int architecture);

// The library on the device whose context is current.  Any number of threads may call it.
class LibraryHandle {
 public:
  static Result<LibraryHandle> make(const LibraryApi& api);
  // Of `api` or, where that is null, of this machine's library.  Error: kToolMissing, with what the
  // loader says.
  static Result<LibraryHandle> open(const LibraryApi* api);

  // Enqueues c = a b into `stream`.  Pointers are to the tensors, before the offsets of `gemm`;
  // `workspace` lies at a multiple of 256 bytes.  The context is current.  Nothing is allocated and
  // nothing waited for.
  Status gemm(const LibraryGemm& gemm, const void* a, const void* b, void* c, void* workspace,
              size_t workspace_bytes, void* stream) const;

 private:
  struct State;
  explicit LibraryHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// Of a matrix of row-major bytes, as the library's call has it: it sees columns where we see rows,
// so that c = a b is c' = b' a' to it.  Names of cublas_v2.h.
const char* library_operation(const GemmMatrix& matrix);
const char* library_type(DType dtype);
int library_type_number(DType dtype);

}  // namespace sundog::codegen
