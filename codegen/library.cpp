#include "codegen/library.h"

#include <dlfcn.h>

#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "core/check.h"

namespace sundog::codegen {
namespace {

// Of cublas_v2.h and library_types.h.
constexpr int kCompute32F = 68;        // CUBLAS_COMPUTE_32F
constexpr int kDefaultAlgorithm = -1;  // CUBLAS_GEMM_DEFAULT
// CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: parts of k are added in f32, as all of it is.
constexpr int kExactReduction = 16;

Status library_status(int code, const char* call) {
  if (code == 0) return {};
  return Error{ErrorCode::kFailed,
               "cuBLAS: " + std::string(call) + " failed with status " + std::to_string(code),
               {},
               {}};
}

struct Opened {
  LibraryApi api{};
  std::string failure;
};

Opened open_anew() {
  Opened opened;
  void* library = nullptr;
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (const char* why = dlerror(); why != nullptr && opened.failure.empty()) opened.failure = why;
  }
  if (library == nullptr) return opened;
  opened.failure.clear();
  const auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(library, name);
    if (symbol == nullptr) opened.failure = std::string("it has no ") + name;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  find(opened.api.create, "cublasCreate_v2");
  find(opened.api.destroy, "cublasDestroy_v2");
  find(opened.api.set_stream, "cublasSetStream_v2");
  find(opened.api.set_workspace, "cublasSetWorkspace_v2");
  find(opened.api.set_math_mode, "cublasSetMathMode");
  find(opened.api.gemm, "cublasGemmStridedBatchedEx");
  return opened;
}

// Error: kToolMissing, with what the loader says.
Result<const LibraryApi*> open_library() {
  static const Opened opened = open_anew();
  if (opened.failure.empty()) return &opened.api;
  return Error{ErrorCode::kToolMissing,
               "cuBLAS cannot be opened: " + opened.failure,
               "install it, or search without `library_gemm: true` in the space",
               {}};
}

}  // namespace

int64_t library_workspace_bytes(int architecture) {
  return (architecture >= 90 ? int64_t{32} : int64_t{4}) << 20;
}

struct LibraryHandle::State {
  explicit State(const LibraryApi& library) : api(library) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (handle != nullptr) api.destroy(handle);
  }
  const LibraryApi& api;
  void* handle = nullptr;
  std::mutex lock;  // stream and workspace are the handle's
};

Result<LibraryHandle> LibraryHandle::make(const LibraryApi& api) {
  auto state = std::make_shared<State>(api);
  SUNDOG_RETURN_IF_ERROR(library_status(api.create(&state->handle), "cublasCreate"));
  SUNDOG_RETURN_IF_ERROR(
      library_status(api.set_math_mode(state->handle, kExactReduction), "cublasSetMathMode"));
  return LibraryHandle(std::move(state));
}

Result<LibraryHandle> LibraryHandle::open(const LibraryApi* api) {
  const Result<const LibraryApi*> opened = api == nullptr ? open_library() : api;
  if (!opened.ok()) return opened.error();
  return make(**opened);
}

Status LibraryHandle::gemm(const LibraryGemm& gemm, const void* a, const void* b, void* c,
                           void* workspace, size_t workspace_bytes, void* stream) const {
  const LibraryApi& api = state_->api;
  void* handle = state_->handle;
  const std::lock_guard<std::mutex> guard(state_->lock);
  // A stream of its own brings its own workspace, so this order.
  SUNDOG_RETURN_IF_ERROR(library_status(api.set_stream(handle, stream), "cublasSetStream"));
  SUNDOG_RETURN_IF_ERROR(
      library_status(api.set_workspace(handle, workspace, workspace_bytes), "cublasSetWorkspace"));
  const float one = 1, zero = 0;
  const auto at = [](auto* pointer, const GemmMatrix& matrix, DType dtype) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(pointer)>>,
                                    const std::byte, std::byte>;
    return static_cast<Byte*>(pointer) + matrix.offset * bytes(dtype);
  };
  const int in = library_type_number(gemm.operands), out = library_type_number(gemm.result);
  const int code = api.gemm(
      handle, gemm.b.transposed ? 1 : 0, gemm.a.transposed ? 1 : 0, static_cast<int>(gemm.n),
      static_cast<int>(gemm.m), static_cast<int>(gemm.k), &one, at(b, gemm.b, gemm.operands), in,
      static_cast<int>(gemm.b.leading), gemm.b.batch_stride, at(a, gemm.a, gemm.operands), in,
      static_cast<int>(gemm.a.leading), gemm.a.batch_stride, &zero, at(c, gemm.c, gemm.result), out,
      static_cast<int>(gemm.c.leading), gemm.c.batch_stride, static_cast<int>(gemm.batch),
      kCompute32F, kDefaultAlgorithm);
  return library_status(code, "cublasGemmStridedBatchedEx");
}

const char* library_operation(const GemmMatrix& matrix) {
  return matrix.transposed ? "CUBLAS_OP_T" : "CUBLAS_OP_N";
}

const char* library_type(DType dtype) {
  if (dtype == DType::kF16) return "CUDA_R_16F";
  if (dtype == DType::kBF16) return "CUDA_R_16BF";
  SUNDOG_CHECK(dtype == DType::kF32);
  return "CUDA_R_32F";
}

int library_type_number(DType dtype) {
  if (dtype == DType::kF16) return 2;    // CUDA_R_16F
  if (dtype == DType::kBF16) return 14;  // CUDA_R_16BF
  SUNDOG_CHECK(dtype == DType::kF32);
  return 0;  // CUDA_R_32F
}

}  // namespace sundog::codegen
