// What `sundog bench` hands to its baselines (python/bench): programs as JSON, terms and all.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "core/program.h"

namespace sundog::cli {

// A program with what a method needs that is not PyTorch's business.
struct BaselineRow {
  std::string name;
  const Program* program = nullptr;
  std::string kernel;       // a library of codegen/shared_object.h; empty: none
  std::string kernel_note;  // why there is none
  std::string triton;       // a Python file with compute(*inputs); empty: none
};

struct BaselineJob {
  bool gpu = false;
  std::vector<std::string> methods;
  int replays = 22;
  int64_t flush_bytes = int64_t{512} << 20;
  uint64_t seed = 1;
  double row_seconds = 0;  // after which no method of a row is begun
  std::vector<BaselineRow> rows;
};

// Terms as {"kind": "apply", "op": "mul", "operands": [...]}; sizes are constants, since a job has
// fixed ones.
void write_program(JsonWriter& json, const Program& program);

std::string job_text(const BaselineJob& job);

}  // namespace sundog::cli
