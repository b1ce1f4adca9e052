// A library of matrix products on host memory, so that launches of it are tested without cuBLAS.
#pragma once

#include <string>
#include <vector>

#include "codegen/library.h"

namespace sundog::codegen {

struct FakeLibrary {
  std::vector<std::string> calls;  // in order; of f32 operands only the product is computed
  void* stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  int alive = 0;        // handles
  int fail_gemm = 0;    // status that products give
  int fail_create = 0;  // likewise of handles
};

// One at a time; both must outlive what uses them.
LibraryApi fake_library(FakeLibrary& library);

}  // namespace sundog::codegen
