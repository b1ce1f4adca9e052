// What `run` and `bench` run: the kernels of a result or of a µGraph with all that belongs to them,
// and what a GPU says about them beside the unfused program.
#pragma once

#include <optional>
#include <string>

#include "cli/options.h"
#include "cli/result.h"
#include "codegen/compile.h"
#include "codegen/driver.h"
#include "codegen/generate.h"
#include "codegen/launch.h"
#include "core/device.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::cli {

struct Runnable {
  Program program;
  MuGraph graph;
  codegen::Generated generated;  // what runs
  Device device;
  std::optional<MuGraph> unfused;  // of a stored result
  Rounding rounding = Rounding::kWide;
};

// A µGraph, or a stored result: its text is taken from best.cu where that lies beside it.  The
// target is --target, else that of the result, else the GPU.
Result<Runnable> load_runnable(const std::string& path, const Invocation& invocation,
                               const std::optional<codegen::GpuInfo>& gpu);

// What one µGraph did on the GPU.
struct GpuOutcome {
  codegen::GpuReport report;
  codegen::CompiledModule module;
};

struct GpuComparison {
  GpuOutcome best;
  std::optional<GpuOutcome> unfused;  // measured in the same minute, where there is one
};

// Compiles, checks and (unless --no-time is given) times.  An Error if the kernels do not compile,
// or if they crash or hang.
Result<GpuComparison> run_on_gpu(const Runnable& runnable, const Invocation& invocation, bool time);

}  // namespace sundog::cli
