// A library's kernel has no text, so the file cannot show it, nor the emulator run it.  In its
// place, and for the emulator alone, stands a kernel of one thread an element: with it the rest of
// the file is run, raced and compared as ever, and so are the sizes, strides and offsets of the
// call, which are written from the same numbers.  What the library does with them is not checked
// there; a GPU checks it.
#include "codegen/emit_library.h"

#include "codegen/cuda_text.h"
#include "codegen/library.h"

namespace sundog::codegen {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

// The address of an element, in 64 bits where it needs them.
std::string address(const GemmMatrix& matrix, const std::vector<std::string>& parameters,
                    const std::string& row, const std::string& column) {
  Linear at = Linear::of_constant(matrix.offset);
  at.add(row, matrix.transposed ? 1 : matrix.leading);
  at.add(column, matrix.transposed ? matrix.leading : 1);
  at.add("matrix", matrix.batch_stride);
  return parameters[matrix.tensor] + "[" + at.text() + "]";
}

std::string pointer_at(const GemmMatrix& matrix, const std::vector<std::string>& pointers) {
  const std::string& pointer = pointers[matrix.tensor];
  return matrix.offset == 0 ? pointer : pointer + " + " + number(matrix.offset);
}

}  // namespace

int64_t library_blocks(const LibraryGemm& gemm) {
  return (gemm.batch * gemm.m * gemm.n + kLibraryThreads - 1) / kLibraryThreads;
}

std::string library_stand_in(const PlanKernel& kernel, const std::vector<std::string>& parameters,
                             const std::vector<std::string>& types) {
  const LibraryGemm& gemm = *kernel.gemm;
  std::vector<std::string> list;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool written = i == gemm.c.tensor;
    list.push_back((written ? "" : "const ") + types[i] + "* __restrict__ " + parameters[i]);
  }
  Writer out;
  out.line("#ifdef SUNDOG_EMULATOR");
  out.line("// In place of the library, which the emulator lacks.");
  out.line("extern \"C\" __global__ void __launch_bounds__(" + number(kLibraryThreads) + ")");
  out.open(kernel.name + "(" + join(list, ", ") + ")");
  out.line("const int tid = static_cast<int>(threadIdx.x);");
  out.line("const int block = static_cast<int>(blockIdx.x);");
  out.line("const int64_t element = static_cast<int64_t>(block) * " + number(kLibraryThreads) +
           " + tid;");
  out.open("if (element < " + number(gemm.batch * gemm.m * gemm.n) + ")");
  out.line("const int64_t column = element % " + number(gemm.n) + ", row = element / " +
           number(gemm.n) + " % " + number(gemm.m) + ";");
  out.line("[[maybe_unused]] const int64_t matrix = element / " + number(gemm.m * gemm.n) + ";");
  out.line("float sum = 0.0f;");
  out.open("for (int64_t k = 0; k < " + number(gemm.k) + "; ++k)");
  out.line("sum += sd::to_float(" + address(gemm.a, parameters, "row", "k") + ") * sd::to_float(" +
           address(gemm.b, parameters, "k", "column") + ");");
  out.close();
  out.line(address(gemm.c, parameters, "row", "column") + " = sd::from_float<" +
           types[gemm.c.tensor] + ">(sum);");
  out.close();
  out.close();
  out.line("#endif");
  return out.text();
}

std::string library_function(const LaunchPlan& plan) {
  Writer out;
  out.line(
      "// A product by the library, on a handle of each device that the first call makes: that "
      "one");
  out.line(
      "// cannot be captured, later ones can.  Returns a cudaError_t, or 20000 and a "
      "cublasStatus_t.");
  out.line("// Where we have rows the library has columns: c = a b is c' = b' a' to it.");
  out.open("static int " + plan.name +
           "_gemm(cublasOperation_t op_b, cublasOperation_t op_a, int n, int m, int k,\n"
           "    const void* b, int ldb, long long stride_b, const void* a, int lda, long long "
           "stride_a,\n"
           "    cudaDataType operands, void* c, int ldc, long long stride_c, cudaDataType result,\n"
           "    int batch, void* workspace, cudaStream_t stream)");
  out.line("static std::mutex lock;  // stream and workspace are the handle's");
  out.line("static cublasHandle_t handles[64] = {};");
  out.line("int device = 0;");
  out.line("if (cudaError_t error = cudaGetDevice(&device)) return error;");
  out.line("if (device >= 64) return cudaErrorInvalidDevice;");
  out.line("const std::lock_guard<std::mutex> guard(lock);");
  out.line("cublasHandle_t& handle = handles[device];");
  out.line("cublasStatus_t status = CUBLAS_STATUS_SUCCESS;");
  out.line("if (handle == nullptr) status = cublasCreate(&handle);");
  const std::string unless = "if (status == CUBLAS_STATUS_SUCCESS) ";
  out.line("// Parts of k are added in f32, too.");
  out.open(unless.substr(0, unless.size() - 1));
  out.line("status = cublasSetMathMode(handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);");
  out.close();
  out.line(unless + "status = cublasSetStream(handle, stream);");
  out.open(unless.substr(0, unless.size() - 1));
  out.line("status = cublasSetWorkspace(handle, workspace, " + number(plan.library_bytes) + ");");
  out.close();
  out.line("const float one = 1, zero = 0;");
  out.open(unless.substr(0, unless.size() - 1));
  out.line(
      "status = cublasGemmStridedBatchedEx(handle, op_b, op_a, n, m, k, &one, b, operands, ldb,\n"
      "        stride_b, a, operands, lda, stride_a, &zero, c, result, ldc, stride_c, batch,\n"
      "        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);");
  out.close();
  out.line("return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : 20000 + status;");
  out.close();
  return out.text();
}

std::string library_call(const LaunchPlan& plan, const PlanKernel& kernel,
                         const std::vector<std::string>& pointers) {
  const LibraryGemm& gemm = *kernel.gemm;
  const auto matrix = [&](const GemmMatrix& m) {
    return pointer_at(m, pointers) + ", " + number(m.leading) + ", " + number(m.batch_stride) +
           ", ";
  };
  return "if (int error = " + plan.name + "_gemm(" + library_operation(gemm.b) + ", " +
         library_operation(gemm.a) + ", " + number(gemm.n) + ", " + number(gemm.m) + ", " +
         number(gemm.k) + ", " + matrix(gemm.b) + matrix(gemm.a) + library_type(gemm.operands) +
         ", " + matrix(gemm.c) + library_type(gemm.result) + ", " + number(gemm.batch) +
         ", static_cast<char*>(workspace) + " + number(plan.library_offset()) +
         ", stream)) return error;";
}

std::string library_note(const LaunchPlan& plan) {
  std::string names;
  for (const PlanKernel& kernel : plan.kernels) {
    if (kernel.gemm) names += (names.empty() ? "" : ", ") + kernel.name;
  }
  if (names.empty()) return "";
  return "// By a library (cuBLAS), which the program is linked with (-lcublas): " + names +
         ".\n//\n";
}

}  // namespace sundog::codegen
