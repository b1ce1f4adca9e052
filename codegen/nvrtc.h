// NVRTC, NVIDIA's compiler as a library, opened at run time so that building Sundog needs no CUDA
// header and running it no CUDA library.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace sundog::codegen {

// Names to try with dlopen, in order: SUNDOG_NVRTC (a file), then libnvrtc.so.13, .12, .11.2 and
// .so of the loader's path, of CUDA_HOME, CUDA_PATH and /usr/local/cuda, and of Python packages
// named nvidia.
std::vector<std::string> nvrtc_candidates();

// Folders that hold cuda_fp16.h, most likely first: the toolkit's and those of the Python packages.
std::vector<std::string> cuda_include_folders();

struct NvrtcOutput {
  std::string cubin;
  std::string log;
  int major = 0, minor = 0;  // of NVRTC
};

// Compiles in this process; codegen/compile.h wraps it in a child.  `arch` as "sm_90a".
Result<NvrtcOutput> nvrtc_compile(const std::string& cuda, const std::string& arch);

}  // namespace sundog::codegen
