// The library is C text (codegen/saved_kernel.c.txt) under tables that say what to launch; the
// bytes (machine code, result) come in through the assembler's .incbin, which takes megabytes at
// once where an array in C text would take seconds.
#include "codegen/shared_object.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "codegen/driver.h"
#include "codegen/embedded.h"
#include "codegen/emulator_toolchain.h"
#include "codegen/library.h"
#include "core/join.h"
#include "core/process.h"
#include "core/temporary_folder.h"

namespace sundog::codegen {
namespace {

namespace fs = std::filesystem;

std::string number(int64_t value) { return std::to_string(value); }

// "sm_90a": 9, 0, and whether it runs on exactly that capability.
std::string code_row(const std::string& arch, size_t index) {
  std::string digits;
  for (const char c : arch) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) digits += c;
  }
  const std::string major = digits.size() < 2 ? "0" : digits.substr(0, digits.size() - 1);
  const std::string minor = digits.empty() ? "0" : digits.substr(digits.size() - 1);
  const bool exact = !arch.empty() && std::isalpha(static_cast<unsigned char>(arch.back())) != 0;
  return "{" + major + ", " + minor + ", " + (exact ? "1" : "0") + ", sundog_code_" +
         number(static_cast<int64_t>(index)) + "}";
}

// One row of the table of tensor maps.
std::string map_row(const PlanTensorMap& map) {
  const auto list = [](const std::vector<int64_t>& values) {
    std::vector<std::string> texts;
    for (const int64_t value : values) texts.push_back(number(value));
    return "{" + join(texts) + "}";
  };
  const std::vector<int64_t> outer(map.strides.begin() + 1, map.strides.end());
  return "  {" + number(tensor_map_dtype(map)) + ", " +
         number(static_cast<int64_t>(map.extents.size())) + ", " + number(tensor_map_swizzle(map)) +
         ", " + number(map.offset) + ", " + list(map.extents) + ", " + list(outer) + ", " +
         list(map.boxes) + "},\n";
}

// One row of the table of a library's products.
std::string gemm_row(const LibraryGemm& gemm) {
  const auto matrix = [](const GemmMatrix& m, DType dtype) {
    return "{" + number(m.tensor) + ", " + number(m.transposed ? 1 : 0) + ", " + number(m.leading) +
           ", " + number(m.batch_stride) + ", " + number(m.offset * bytes(dtype)) + "}";
  };
  return "  {" + number(gemm.batch) + ", " + number(gemm.m) + ", " + number(gemm.n) + ", " +
         number(gemm.k) + ", " + number(library_type_number(gemm.operands)) + ", " +
         number(library_type_number(gemm.result)) + ", " + matrix(gemm.a, gemm.operands) + ", " +
         matrix(gemm.b, gemm.operands) + ", " + matrix(gemm.c, gemm.result) + "},\n";
}

// An array of bytes from a file, 64-byte aligned as the driver wants machine code.
std::string included(const std::string& symbol, const std::string& file) {
  return "__asm__(\".section .rodata\\n.balign 64\\n" + symbol + ":\\n.incbin \\\"" + file +
         "\\\"\\n" + symbol + "_stop:\\n.byte 0\\n.previous\\n\");\n";
}

}  // namespace

std::string shared_object_source(const LaunchPlan& plan, const std::vector<SavedCode>& code) {
  std::string text =
      "#include <dlfcn.h>\n#include <stdatomic.h>\n#include <stddef.h>\n#include <stdint.h>\n"
      "#include <string.h>\n#define SUNDOG_EXPORT __attribute__((visibility(\"default\")))\n";
  text += "#define SUNDOG_NAME " + plan.name + "\n#define SUNDOG_NAME_TEXT \"" + plan.name + "\"\n";
  text += "#define SUNDOG_NAME_WORKSPACE_BYTES " + plan.name + "_workspace_bytes\n";
  text += "#define SUNDOG_NAME_ZEROED_BYTES " + plan.name + "_zeroed_bytes\n";
  text += "#define SUNDOG_ZEROED_BYTES ((int64_t)" + number(plan.zeroed_bytes) + ")\n";
  text += "#define SUNDOG_WORKSPACE_BYTES ((int64_t)" + number(plan.workspace_bytes) + ")\n";
  text += "struct code { int major, minor, exact; const char* begin; };\n";
  for (size_t i = 0; i < code.size(); ++i) {
    const std::string symbol = "sundog_code_" + number(static_cast<int64_t>(i));
    text += included(symbol, symbol + ".bin") + "extern const char " + symbol +
            "[] __attribute__((visibility(\"hidden\")));\n";
  }
  text += "static const struct code sundog_codes[] = {\n";
  for (size_t i = 0; i < code.size(); ++i) text += "  " + code_row(code[i].arch, i) + ",\n";
  text += "};\n" + included("sundog_result_begin", "result.bin");
  text +=
      "extern const char sundog_result_begin[] __attribute__((visibility(\"hidden\")));\n"
      "extern const char sundog_result_end[] __asm__(\"sundog_result_begin_stop\") "
      "__attribute__((visibility(\"hidden\")));\n"
      "struct argument { int kind, index; int64_t offset; int map; };\n"
      "struct map { int dtype; unsigned rank; int swizzle; int64_t offset;\n"
      "  uint64_t extents[5], strides[4]; unsigned boxes[5]; };\n"
      "struct kernel { const char* name; unsigned grid[3], block, shared_bytes; int first, count, "
      "dependent, gemm; };\n"
      "struct matrix { int argument, transposed, leading; long long stride; int64_t offset; };\n"
      "struct gemm { int batch, m, n, k, operands, result; struct matrix a, b, c; };\n";
  std::string arguments, kernels, maps, gemms;
  int64_t gemm_count = 0;
  size_t first = 0, most = 1;
  int64_t map_count = 0;
  for (const PlanKernel& kernel : plan.kernels) {
    for (const PlanArgument& argument : kernel.arguments) {
      arguments += "  {" + number(static_cast<int>(argument.kind)) + ", " + number(argument.index) +
                   ", " + number(argument.offset) + ", " + number(argument.map ? map_count : -1) +
                   "},\n";
      if (!argument.map) continue;
      maps += map_row(*argument.map);
      ++map_count;
    }
    kernels +=
        "  {\"" + kernel.name + "\", {" + number(kernel.grid[0]) + "u, " + number(kernel.grid[1]) +
        "u, " + number(kernel.grid[2]) + "u}, " + number(kernel.block) + "u, " +
        number(kernel.shared_bytes) + "u, " + number(static_cast<int64_t>(first)) + ", " +
        number(static_cast<int64_t>(kernel.arguments.size())) + ", " +
        (kernel.dependent ? "1" : "0") + ", " + number(kernel.gemm ? gemm_count : -1) + "},\n";
    if (kernel.gemm) {
      gemms += gemm_row(*kernel.gemm);
      ++gemm_count;
    }
    first += kernel.arguments.size();
    most = std::max(most, kernel.arguments.size());
  }
  text +=
      "static const struct argument sundog_arguments[] = {\n" + arguments + "  {0, 0, 0, -1}};\n";
  text += "static const struct map sundog_maps[] = {\n" + maps + "  {0}};\n#define SUNDOG_MAPS " +
          number(map_count) + "\n";
  text += "static const struct kernel sundog_kernels[] = {\n" + kernels + "};\n";
  text += "#define SUNDOG_GEMMS " + number(gemm_count) + "\n";
  if (gemm_count > 0) {
    text += "static const struct gemm sundog_gemms[] = {\n" + gemms + "};\n";
    text += "#define SUNDOG_LIBRARY_BYTES " + number(plan.library_bytes) + "\n";
    text += "#define SUNDOG_LIBRARY_OFFSET " + number(plan.library_offset()) + "\n";
  }
  text += "#define SUNDOG_KERNELS " + number(static_cast<int64_t>(plan.kernels.size())) + "u\n";
  text += "#define SUNDOG_MAX_ARGUMENTS " + number(static_cast<int64_t>(most)) + "\n\n";
  return text + std::string(kSavedKernelText);
}

Status write_shared_object(const std::string& path, const LaunchPlan& plan,
                           const std::vector<SavedCode>& code, const std::string& result) {
  const Result<std::string> compiler = find_cxx_compiler();
  if (!compiler.ok()) {
    Error error = compiler.error();
    error.message = "saving a kernel needs a C compiler: " + error.message;
    return error;
  }
  const Result<TemporaryFolder> scratch = TemporaryFolder::make("save");
  if (!scratch.ok()) return scratch.error();
  const fs::path& folder = scratch->path();
  SUNDOG_RETURN_IF_ERROR(write_file(folder / "kernel.c", shared_object_source(plan, code)));
  SUNDOG_RETURN_IF_ERROR(write_file(folder / "result.bin", result));
  for (size_t i = 0; i < code.size(); ++i) {
    const std::string name = "sundog_code_" + number(static_cast<int64_t>(i)) + ".bin";
    SUNDOG_RETURN_IF_ERROR(write_file(folder / name, code[i].cubin));
  }
  // Beside its place first, so that a reader never sees half of it.
  const std::string fresh = path + "." + std::to_string(getpid()) + ".part";
  const ProcessLimits limits{.seconds = 60};
  const Result<ProcessResult> compiled =
      run_process({*compiler, "-x", "c", "-std=gnu11", "-O2", "-shared", "-fPIC",
                   "-fvisibility=hidden", "-Wa,-I" + folder.string(),
                   (folder / "kernel.c").string(), "-o", fresh, "-Wl,--as-needed", "-ldl", "-s"},
                  limits);
  std::error_code ignored;
  if (!compiled.ok()) return compiled.error();
  if (!compiled->succeeded()) {
    fs::remove(fresh, ignored);
    return Error{ErrorCode::kFailed,
                 "the kernel could not be saved as " + path + ": " + first_error(compiled->err),
                 {},
                 {}};
  }
  fs::rename(fresh, path, ignored);
  if (ignored) {
    const std::string why = ignored.message();
    fs::remove(fresh, ignored);
    return io_error(path + " cannot be written: " + why);
  }
  return {};
}

}  // namespace sundog::codegen
