#include "tests/codegen/fake_library.h"

namespace sundog::codegen {
namespace {

FakeLibrary* current = nullptr;

int create(void** handle) {
  if (current->fail_create != 0) return current->fail_create;
  *handle = current;
  ++current->alive;
  return 0;
}

int destroy(void*) {
  --current->alive;
  return 0;
}

int set_stream(void*, void* stream) {
  current->stream = stream;
  current->workspace = nullptr;  // as the real one does
  return 0;
}

int set_workspace(void*, void* workspace, size_t bytes) {
  current->workspace = workspace;
  current->workspace_bytes = bytes;
  return 0;
}

int set_math_mode(void*, int mode) {
  current->calls.push_back("mode " + std::to_string(mode));
  return 0;
}

// Columns are contiguous, unless transposed.
int gemm(void*, int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a, int type,
         int lda, long long stride_a, const void* b, int, int ldb, long long stride_b, const void*,
         void* c, int, int ldc, long long stride_c, int batch, int compute, int) {
  current->calls.push_back("gemm " + std::to_string(m) + " " + std::to_string(n) + " " +
                           std::to_string(k) + " of " + std::to_string(batch) + ", type " +
                           std::to_string(type) + ", compute " + std::to_string(compute));
  if (current->fail_gemm != 0) return current->fail_gemm;
  if (type != 0) return 0;
  for (int i = 0; i < batch; ++i) {
    const float* x = static_cast<const float*>(a) + i * stride_a;
    const float* y = static_cast<const float*>(b) + i * stride_b;
    float* z = static_cast<float*>(c) + i * stride_c;
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < n; ++column) {
        float sum = 0;
        for (int j = 0; j < k; ++j) {
          sum += (op_a == 0 ? x[row + j * lda] : x[row * lda + j]) *
                 (op_b == 0 ? y[j + column * ldb] : y[j * ldb + column]);
        }
        z[row + column * ldc] = *static_cast<const float*>(alpha) * sum;
      }
    }
  }
  return 0;
}

}  // namespace

LibraryApi fake_library(FakeLibrary& library) {
  current = &library;
  return {create, destroy, set_stream, set_workspace, set_math_mode, gemm};
}

}  // namespace sundog::codegen
