#include "codegen/compile.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "codegen/nvrtc.h"
#include "core/process_wire.h"
#include "core/temporary_folder.h"

namespace sundog::codegen {
namespace {

// The integer that stands directly before `word` in `line`, as in "400 bytes stack frame".
std::optional<int64_t> number_before(std::string_view line, std::string_view word) {
  const size_t end = line.find(word);
  if (end == std::string_view::npos) return std::nullopt;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t value = 0;
  if (std::from_chars(line.data() + begin, line.data() + end, value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

std::string first_error_line(const std::string& log) {
  std::istringstream lines(log);
  std::string line, first;
  while (std::getline(lines, line)) {
    if (first.empty()) first = line;
    if (line.find("error") != std::string::npos) return line.substr(0, 300);
  }
  return first.substr(0, 300);
}

Result<CompiledModule> compile_with_nvrtc(const std::string& cuda, const std::string& arch,
                                          const ProcessLimits& limits) {
  const auto body = [&] {
    Packer answer;
    Result<NvrtcOutput> output = nvrtc_compile(cuda, arch);
    answer.put(output.ok());
    if (!output.ok()) {
      answer.put(output.error());
      return answer.bytes();
    }
    answer.put("NVRTC " + std::to_string(output->major) + "." + std::to_string(output->minor));
    answer.put(output->cubin);
    answer.put(output->log);
    return answer.bytes();
  };
  Result<std::string> bytes = run_in_child("NVRTC", body, limits);
  if (!bytes.ok()) return bytes.error();
  Unpacker answer(*bytes);
  if (!answer.number<bool>()) {
    Error error = answer.error();
    if (names_a_limit(error.message)) error.code = ErrorCode::kLimit;
    return error;
  }
  CompiledModule module;
  module.compiler = answer.text();
  module.cubin = answer.text();
  module.log = answer.text();
  if (!answer.finished()) return Error{ErrorCode::kFailed, "NVRTC's answer was cut short", {}, {}};
  return module;
}

std::string nvcc_version(const std::string& nvcc, const ProcessLimits& limits) {
  Result<ProcessResult> result = run_process({nvcc, "--version"}, limits);
  if (!result.ok()) return "nvcc";
  const size_t begin = result->out.find("release ");
  if (begin == std::string::npos) return "nvcc";
  const size_t end = result->out.find_first_of(",\n", begin);
  return "nvcc " + result->out.substr(begin + 8, end - begin - 8);
}

Result<CompiledModule> compile_with_nvcc(const std::string& cuda, const std::string& arch,
                                         const ProcessLimits& limits) {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    return Error{ErrorCode::kToolMissing,
                 "nvcc was not found",
                 "install the CUDA toolkit or set CUDA_HOME",
                 {}};
  }
  const Result<TemporaryFolder> scratch = TemporaryFolder::make("nvcc");
  if (!scratch.ok()) return scratch.error();
  const std::string folder = scratch->path().string();
  const std::string source = folder + "/kernel.cu", target = folder + "/kernel.cubin";
  std::ofstream(source, std::ios::binary) << cuda;
  Result<ProcessResult> result = run_process(
      {nvcc, "-cubin", "-arch=" + arch, "-std=c++17", "-Xptxas", "-v", source, "-o", target},
      limits);
  if (!result.ok()) return result.error();
  if (!result->succeeded()) {
    const bool limit = result->end == ProcessResult::End::kTimedOut || !lacked(*result).empty() ||
                       names_a_limit(result->err);
    return Error{limit ? ErrorCode::kLimit : ErrorCode::kFailed,
                 "nvcc " + describe_end(*result, limits) + ": " +
                     first_error_line(result->err + result->out),
                 {},
                 {}};
  }
  CompiledModule module;
  std::ifstream file(target, std::ios::binary);
  module.cubin.assign(std::istreambuf_iterator<char>(file), {});
  if (module.cubin.empty()) return Error{ErrorCode::kFailed, "nvcc wrote no machine code", {}, {}};
  module.compiler = nvcc_version(nvcc, limits);
  module.log = result->err + result->out;
  return module;
}

}  // namespace

std::string find_nvcc() {
  const auto executable = [](const std::string& file) { return access(file.c_str(), X_OK) == 0; };
  if (const char* path = std::getenv("PATH"); path != nullptr) {
    std::istringstream folders(path);
    std::string folder;
    while (std::getline(folders, folder, ':')) {
      if (!folder.empty() && executable(folder + "/nvcc")) return folder + "/nvcc";
    }
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* home = std::getenv(name);
    if (home != nullptr && executable(std::string(home) + "/bin/nvcc")) {
      return std::string(home) + "/bin/nvcc";
    }
  }
  const std::string usual = "/usr/local/cuda/bin/nvcc";
  return executable(usual) ? usual : std::string();
}

std::vector<KernelResources> parse_ptxas_log(std::string_view log) {
  std::vector<KernelResources> kernels;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    constexpr std::string_view kEntry = "Compiling entry function '";
    if (const size_t at = line.find(kEntry); at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + kEntry.size());
      kernels.emplace_back().name = rest.substr(0, rest.find('\''));
      continue;
    }
    if (kernels.empty()) continue;
    KernelResources& kernel = kernels.back();
    if (const auto stack = number_before(line, " bytes stack frame")) {
      kernel.stack_bytes = *stack;
      kernel.spill_store_bytes = number_before(line, " bytes spill stores").value_or(0);
      kernel.spill_load_bytes = number_before(line, " bytes spill loads").value_or(0);
    }
    if (const auto registers = number_before(line, " registers")) {
      kernel.registers = static_cast<int>(*registers);
      kernel.shared_bytes = number_before(line, " bytes smem").value_or(0);
    }
  }
  return kernels;
}

Result<CompiledModule> compile(const std::string& cuda, const std::string& arch,
                               const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Result<CompiledModule> module = options.compiler == Compiler::kNvcc
                                      ? compile_with_nvcc(cuda, arch, options.limits)
                                      : compile_with_nvrtc(cuda, arch, options.limits);
  if (!module.ok() && options.compiler == Compiler::kAny &&
      module.error().code == ErrorCode::kToolMissing && !find_nvcc().empty()) {
    module = compile_with_nvcc(cuda, arch, options.limits);
  }
  if (!module.ok()) return module.error();
  module->kernels = parse_ptxas_log(module->log);
  module->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return module;
}

}  // namespace sundog::codegen
