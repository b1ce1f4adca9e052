// What `optimize`, `run` and `emit` share: which device to compile for, emitting, running on the
// emulator at a size that it can manage, running on the GPU beside the unfused program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/driver.h"
#include "codegen/generate.h"
#include "codegen/launch.h"
#include "codegen/launch_emulator.h"
#include "codegen/residue_check.h"
#include "core/device.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::cli {

// --target, else the row of the GPU that is present, else h200.
Result<Device> choose_device(const std::string& target, const std::optional<codegen::GpuInfo>& gpu);

// Multiplications or so that the emulator does in a few seconds, race checks included.
inline constexpr double kEmulatorWork = 2e7;
// The same for the float64 reference of a run on a GPU.
inline constexpr double kReferenceWork = 3e9;

struct EmulatorOutcome {
  bool reduced = false;  // run at a smaller size than asked for
  std::string sizes;     // "n=16 h=512 d=96"
  codegen::EmulatedRun run;
  std::optional<codegen::ResidueCheck> residues;  // of kernels whose floats are right
  std::string residues_not_run;                   // why there are none

  bool passed() const { return run.passed() && (!residues || residues->failure.empty()); }
  // The first thing that is wrong.
  std::string failure() const;
  // "passed in the emulator at n=16, races checked; residues modulo ... equal in 5 rounds (2^-42)"
  std::string text() const;
};

struct EmulatorRequest {
  Rounding rounding = Rounding::kWide;
  bool full = false;  // at full size, however long it takes
  double time_limit_s = 120;
  uint64_t seed = 1;
};

// Runs the kernels of a µGraph on the emulator.  If the program is too large for it, and not
// `full`, the µGraph is shrunk with its tiles kept and emitted anew; else `generated` is what runs.
Result<EmulatorOutcome> run_in_emulator(const Program& program, const MuGraph& graph,
                                        const Device& device, const codegen::Generated& generated,
                                        const EmulatorRequest& request);

// Extents of a program on one line.
std::string sizes_text(const Program& program);

// A file name and a C identifier.
std::string identifier(const std::string& name);

}  // namespace sundog::cli
