// The C++ compiler that builds emulated kernels, and the parts that are built once and kept: the
// emulator's runtime as an object file and its headers as precompiled headers.
//
// They lie in a folder for each user (SUNDOG_CACHE_DIR, else XDG_CACHE_HOME/sundog, else
// HOME/.cache/sundog, else a folder in the temporary directory), under a name made of everything
// that they depend on: texts, compiler, flags, processor.  A folder appears whole, by a rename, or
// not at all.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/status.h"

namespace sundog::codegen {

// How kernels are built: to run fast, with every load and store seen, or (fast) with residues in
// place of floats.
enum class EmulatorBuild { kFast, kChecked, kResidues };

struct EmulatorToolchain {
  std::string compiler;  // path
  std::string version;   // its first line of --version
  bool is_clang = false;
  std::vector<std::string> processor;  // flags for instructions that this machine has
  std::filesystem::path parts;         // folder of the headers, and runtime.o

  // The commands that build `module` (a .cpp) into `object`, and `object` into `program`.
  std::vector<std::string> compile_command(const std::filesystem::path& module,
                                           const std::filesystem::path& object, EmulatorBuild build,
                                           const std::vector<std::string>& definitions) const;
  std::vector<std::string> link_command(const std::filesystem::path& object,
                                        const std::filesystem::path& program) const;
};

// SUNDOG_CXX, else c++ or g++ on the PATH.  kToolMissing.
Result<std::string> find_cxx_compiler();

// Finds the compiler and builds the parts if they are not there yet (some seconds, the first time).
// Errors: kToolMissing, kIo, kFailed, kLimit.
Result<EmulatorToolchain> find_emulator_toolchain(double time_limit_s);

// The first error of a compiler's output, in one line; the whole output's start if there is none.
std::string first_error(const std::string& output);

Status write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace sundog::codegen
