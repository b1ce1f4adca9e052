// The texts that codegen/embed.cmake puts into the library.
#pragma once

#include <string_view>

namespace sundog::codegen {

// codegen/primitives.cuh: pasted into every emitted file.
extern const std::string_view kPrimitivesText;
// codegen/primitives_sm90.cuh: pasted behind it where a kernel uses it.
extern const std::string_view kPrimitivesSm90Text;
// codegen/primitives_window.cuh: likewise.
extern const std::string_view kPrimitivesWindowText;
// codegen/primitives_narrow.cuh: likewise.
extern const std::string_view kPrimitivesNarrowText;

// codegen/calibration_kernels.cuh: behind both, what measures a device.
extern const std::string_view kCalibrationKernelsText;

// codegen/saved_kernel.c.txt: what every kernel that is saved as a library shares.
extern const std::string_view kSavedKernelText;

// codegen/emulator/*.h: written to the cache and compiled where the emulator is used.
extern const std::string_view emulator_banks;
extern const std::string_view emulator_bulk;
extern const std::string_view emulator_checks;
extern const std::string_view emulator_fiber;
extern const std::string_view emulator_floats;
extern const std::string_view emulator_hooks;
extern const std::string_view emulator_machine;
extern const std::string_view emulator_matrices;
extern const std::string_view emulator_memory;
extern const std::string_view emulator_operations;
extern const std::string_view emulator_problems;
extern const std::string_view emulator_protocol;
extern const std::string_view emulator_residue;
extern const std::string_view emulator_residue_run;
extern const std::string_view emulator_residues;
extern const std::string_view emulator_runtime;
extern const std::string_view emulator_scheduler;
extern const std::string_view emulator_shadow;
extern const std::string_view emulator_sundog_emulator;
extern const std::string_view emulator_warpgroup;

}  // namespace sundog::codegen
