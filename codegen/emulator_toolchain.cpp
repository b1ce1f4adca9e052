// Kernels are checked by instrumenting their loads and stores (-fsanitize=thread) and linking hooks
// of our own in place of the sanitizer's runtime; the runtime itself must not be instrumented, so
// it is an object of its own, and that object can be kept.  With the headers precompiled too,
// building a kernel costs what the kernel costs.
#include "codegen/emulator_toolchain.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

#include "codegen/embedded.h"
#include "core/check.h"
#include "core/process.h"

namespace sundog::codegen {
namespace {

namespace fs = std::filesystem;

struct Text {
  const char* file;
  std::string_view text;
};

// What a .cu may include and the emulator answers with nothing.
constexpr std::string_view kEmpty = "// Everything needed comes from the emulator.\n";

std::vector<Text> part_texts() {
  return {{"primitives.cuh", kPrimitivesText},
          {"primitives_narrow.cuh", kPrimitivesNarrowText},
          {"sundog_emulator.h", emulator_sundog_emulator},
          {"protocol.h", emulator_protocol},
          {"banks.h", emulator_banks},
          {"fiber.h", emulator_fiber},
          {"shadow.h", emulator_shadow},
          {"machine.h", emulator_machine},
          {"problems.h", emulator_problems},
          {"memory.h", emulator_memory},
          {"scheduler.h", emulator_scheduler},
          {"checks.h", emulator_checks},
          {"operations.h", emulator_operations},
          {"matrices.h", emulator_matrices},
          {"warpgroup.h", emulator_warpgroup},
          {"bulk.h", emulator_bulk},
          {"hooks.h", emulator_hooks},
          {"floats.h", emulator_floats},
          {"residue.h", emulator_residue},
          {"residue_run.h", emulator_residue_run},
          {"residues.h", emulator_residues},
          {"runtime.h", emulator_runtime},
          {"runtime.cpp", "#include \"runtime.h\"\n"},
          {"cuda.h", kEmpty},
          {"cuda_bf16.h", kEmpty},
          {"cuda_fp16.h", kEmpty},
          {"cuda_fp8.h", kEmpty},
          {"cuda_runtime.h", kEmpty}};
}

// FNV-1a, twice with different offsets: a name for a cache, not a defence.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    mix(256);  // "ab", "c" is not "a", "bc"
  }
  std::string hex() const {
    std::array<char, 40> text;
    std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(a_),
                  static_cast<unsigned long long>(b_));
    return text.data();
  }

 private:
  void mix(uint64_t value) {
    a_ = (a_ ^ value) * 0x100000001b3u;
    b_ = (b_ ^ value ^ a_ >> 32) * 0x100000001b3u;
  }
  uint64_t a_ = 0xcbf29ce484222325u, b_ = 0x6c62272e07bb0142u;
};

std::string find_on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "";
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const fs::path candidate = fs::path(rest.substr(0, end)) / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return "";
}

std::vector<std::string> processor_flags() {
  std::vector<std::string> flags;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c")) flags.push_back("-mf16c");
  if (__builtin_cpu_supports("avx2")) flags.push_back("-mavx2");
  if (__builtin_cpu_supports("fma")) flags.push_back("-mfma");
#endif
  return flags;
}

fs::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (fs::path folder = variable("SUNDOG_CACHE_DIR"); !folder.empty()) return folder;
  if (fs::path folder = variable("XDG_CACHE_HOME"); !folder.empty()) return folder / "sundog";
  if (fs::path folder = variable("HOME"); !folder.empty()) return folder / ".cache" / "sundog";
  return fs::temp_directory_path() / ("sundog-" + std::to_string(getuid()));
}

// No contraction: a fused multiply-add is written as one, so that every machine gives the same
// bits.
std::vector<std::string> common_flags(const EmulatorToolchain& tools) {
  std::vector<std::string> flags{tools.compiler,      "-std=c++20",        "-fPIE",
                                 "-ffp-contract=off", "-DSUNDOG_EMULATOR", "-D__CUDACC_RTC__"};
  flags.insert(flags.end(), tools.processor.begin(), tools.processor.end());
  return flags;
}

// The flags that a kernel and its precompiled header share.  -w: warnings of generated code are the
// business of nvcc, which knows its pragmas.
std::vector<std::string> kernel_flags(const EmulatorToolchain& tools, EmulatorBuild build) {
  std::vector<std::string> flags = common_flags(tools);
  for (const char* flag : {"-w", "-fno-strict-aliasing", "-fno-exceptions"}) flags.push_back(flag);
  if (build == EmulatorBuild::kResidues) flags.push_back("-DSUNDOG_EMULATOR_RESIDUES");
  if (build == EmulatorBuild::kChecked) {
    for (const char* flag : {"-O1", "-g1", "-fsanitize=thread", "-DSUNDOG_EMULATOR_CHECKED"}) {
      flags.push_back(flag);
    }
    flags.push_back("-fno-omit-frame-pointer");
  } else {
    flags.push_back("-O2");
  }
  return flags;
}

const char* header_folder(EmulatorBuild build) {
  switch (build) {
    case EmulatorBuild::kFast:
      return "fast";
    case EmulatorBuild::kChecked:
      return "checked";
    case EmulatorBuild::kResidues:
      return "residues";
  }
  SUNDOG_CHECK(false);
}

Status run_compiler(const std::vector<std::string>& command, double time_limit_s) {
  const ProcessLimits limits{.seconds = time_limit_s};
  Result<ProcessResult> result = run_process(command, limits);
  if (!result.ok()) return result.error();
  if (result->succeeded()) return {};
  if (result->end == ProcessResult::End::kTimedOut) {
    return limit_error("the compiler for the emulator " + describe_end(*result, limits));
  }
  if (const std::string what = lacked(*result); !what.empty()) {
    return limit_error("the compiler for the emulator lacked " + what);
  }
  return Error{ErrorCode::kFailed,
               "the emulator could not be built by " + command[0] + ": " + first_error(result->err),
               "SUNDOG_CXX chooses another compiler",
               {}};
}

// Builds the parts inside `folder`, the compilations beside one another.
Status build_parts(const EmulatorToolchain& tools, const fs::path& folder, double time_limit_s) {
  for (const Text& part : part_texts()) {
    SUNDOG_RETURN_IF_ERROR(write_file(folder / part.file, part.text));
  }
  std::vector<std::vector<std::string>> commands;
  std::vector<std::string> runtime = common_flags(tools);
  for (const char* flag :
       {"-O3", "-pthread", "-ftls-model=local-exec", "-fno-strict-aliasing", "-c"}) {
    runtime.push_back(flag);
  }
  runtime.insert(runtime.end(),
                 {(folder / "runtime.cpp").string(), "-o", (folder / "runtime.o").string()});
  commands.push_back(runtime);
  for (const EmulatorBuild build :
       {EmulatorBuild::kFast, EmulatorBuild::kChecked, EmulatorBuild::kResidues}) {
    const fs::path place = folder / header_folder(build);
    std::error_code failed;
    fs::create_directory(place, failed);
    SUNDOG_RETURN_IF_ERROR(write_file(
        place / "prelude.h", "#include \"primitives.cuh\"\n#include \"primitives_narrow.cuh\"\n"));
    if (tools.is_clang) continue;  // its precompiled headers name the folder they were made in
    std::vector<std::string> header = kernel_flags(tools, build);
    header.insert(header.end(),
                  {"-I", place.string(), "-I", folder.string(), "-x", "c++-header",
                   (place / "prelude.h").string(), "-o", (place / "prelude.h.gch").string()});
    commands.push_back(header);
  }
  std::vector<Status> results(commands.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < commands.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = run_compiler(commands[i], time_limit_s); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) SUNDOG_RETURN_IF_ERROR(result);
  return {};
}

// Removes what other versions of the emulator left and nobody has used for a day.
void remove_old_parts(const fs::path& folder, const fs::path& kept) {
  const auto limit = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    std::error_code ignored;
    if (entry.path() == kept || entry.last_write_time(ignored) > limit || ignored) continue;
    fs::remove_all(entry.path(), ignored);
  }
}

Result<std::string> compiler_version(const std::string& compiler) {
  Result<ProcessResult> result = run_process({compiler, "--version"}, {.seconds = 20});
  if (!result.ok()) return result.error();
  if (!result->succeeded()) {
    return Error{ErrorCode::kToolMissing,
                 compiler + " --version fails",
                 "SUNDOG_CXX chooses a compiler",
                 {}};
  }
  return result->out.substr(0, result->out.find('\n'));
}

}  // namespace

Result<std::string> find_cxx_compiler() {
  if (const char* chosen = std::getenv("SUNDOG_CXX"); chosen && *chosen) {
    std::string path = find_on_path(chosen);
    if (!path.empty()) return path;
    return Error{ErrorCode::kToolMissing,
                 "the compiler named by SUNDOG_CXX, " + std::string(chosen) + ", is not there",
                 "unset SUNDOG_CXX or give the path of a C++20 compiler",
                 {}};
  }
  for (const char* name : {"c++", "g++"}) {
    std::string path = find_on_path(name);
    if (!path.empty()) return path;
  }
  return Error{ErrorCode::kToolMissing,
               "the emulator needs a C++ compiler and found none",
               "install g++, or give the path of a C++20 compiler in SUNDOG_CXX",
               {}};
}

Status write_file(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return io_error("cannot write " + path.string());
  return {};
}

std::string first_error(const std::string& output) {
  size_t found = output.find("error:");
  if (found == std::string::npos) found = output.find("undefined reference");
  const size_t start = found == std::string::npos ? 0 : output.rfind('\n', found) + 1;
  std::string line = output.substr(start, output.find('\n', start) - start);
  if (const size_t folder = line.find("unit_"); folder != std::string::npos) line.erase(0, folder);
  return line.empty() ? "no message" : line;
}

std::vector<std::string> EmulatorToolchain::compile_command(
    const fs::path& module, const fs::path& object, EmulatorBuild build,
    const std::vector<std::string>& definitions) const {
  std::vector<std::string> command = kernel_flags(*this, build);
  for (const std::string& definition : definitions) command.push_back("-D" + definition);
  command.insert(command.end(), {"-I", (parts / header_folder(build)).string(), "-I",
                                 parts.string(), "-c", module.string(), "-o", object.string()});
  return command;
}

// Without -fsanitize=thread: the sanitizer's own runtime would come along.
std::vector<std::string> EmulatorToolchain::link_command(const fs::path& object,
                                                         const fs::path& program) const {
  return {compiler,   "-pie", object.string(), (parts / "runtime.o").string(),
          "-pthread", "-o",   program.string()};
}

Result<EmulatorToolchain> find_emulator_toolchain(double time_limit_s) {
  EmulatorToolchain tools;
  Result<std::string> compiler = find_cxx_compiler();
  if (!compiler.ok()) return compiler.error();
  tools.compiler = *compiler;
  Result<std::string> version = compiler_version(tools.compiler);
  if (!version.ok()) return version.error();
  tools.version = *version;
  tools.is_clang = tools.version.find("clang") != std::string::npos;
  tools.processor = processor_flags();
  Hash hash;
  for (const Text& part : part_texts()) hash.add(part.text);
  for (const std::string& flag : kernel_flags(tools, EmulatorBuild::kChecked)) hash.add(flag);
  hash.add(tools.version);
  const fs::path folder = cache_folder() / "emulator";
  tools.parts = folder / hash.hex();
  std::error_code failed;
  if (fs::exists(tools.parts / "runtime.o", failed)) {
    fs::last_write_time(tools.parts, fs::file_time_type::clock::now(), failed);  // in use
    return tools;
  }

  static std::atomic<int> counter{0};  // names only: two builds at once must not share a folder
  const fs::path fresh = folder / (hash.hex() + "." + std::to_string(getpid()) + "." +
                                   std::to_string(counter.fetch_add(1)));
  if (!fs::create_directories(fresh, failed) && failed) {
    return io_error("cannot make the folder " + fresh.string() + ": " + failed.message(),
                    "SUNDOG_CACHE_DIR chooses another place");
  }
  const Status built = build_parts(tools, fresh, time_limit_s);
  if (built.ok()) fs::rename(fresh, tools.parts, failed);
  std::error_code ignored;
  if (!built.ok() || failed) fs::remove_all(fresh, ignored);
  if (!built.ok()) return built.error();
  if (!fs::exists(tools.parts / "runtime.o", ignored)) {
    return io_error("cannot make the folder " + tools.parts.string());
  }
  remove_old_parts(folder, tools.parts);
  return tools;
}

}  // namespace sundog::codegen
