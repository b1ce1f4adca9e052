# Texts that the library carries with it (codegen/embedded.h): what emitted kernels contain, and what the
# emulator compiles at run time.
sundog_embed(sundog_codegen kPrimitivesText codegen/primitives.cuh)
sundog_embed(sundog_codegen kPrimitivesSm90Text codegen/primitives_sm90.cuh)
sundog_embed(sundog_codegen kPrimitivesWindowText codegen/primitives_window.cuh)
sundog_embed(sundog_codegen kPrimitivesNarrowText codegen/primitives_narrow.cuh)
foreach(part IN ITEMS banks bulk checks fiber floats hooks machine matrices memory operations problems
                      protocol residue residue_run residues runtime scheduler shadow sundog_emulator warpgroup)
  sundog_embed(sundog_codegen emulator_${part} codegen/emulator/${part}.h)
endforeach()
sundog_embed(sundog_codegen kCalibrationKernelsText codegen/calibration_kernels.cuh)
sundog_embed(sundog_codegen kSavedKernelText codegen/saved_kernel.c.txt)
