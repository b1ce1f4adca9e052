// Is what a kernel wrote what the program says?  The comparison for the emulator and for a GPU
// alike: random inputs within their declared ranges, outputs poisoned beforehand, everything that
// was not to be written compared afterwards.
//
// The error model.  An output is right if |x - reference| <= tolerance * max |reference| of its row
// (the last dimension), where the reference is float64 and the tolerance follows from the narrowest
// type that the µGraph stores anything in and from the length of its reductions (kernel_tolerance).
// Where the program itself is ill-conditioned (a sum that cancels, the sine of something large)
// what single precision leaves open is allowed, too: a small multiple of how far the plain program
// in f32 is from float64, on the row.
// NaN is wrong unless the reference has it; infinities must agree, after rounding to the output's
// type.  An output of integers must be the reference, rounded; where the reference lies within that
// distance of a tie, either side.  Where the program itself rounds to integers, the last bits of
// what it rounds may decide: each element has the slack by which moving them moves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/evaluate.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::codegen {

// Memory as a kernel sees it: span_elements(tensor) elements of its dtype, gaps included.
using TensorMemory = std::vector<std::byte>;

// Every byte of outputs and workspaces is this before a launch: NaN in all floating types.
inline constexpr std::byte kPoison{0xff};

// Uniform in the declared range where there is one, else in [-1, 1]; rounded to the dtype.  A
// function of seed, tensor number and element alone.
FloatTensor draw_input(const TensorDecl& tensor, uint64_t seed, uint32_t number);
std::vector<FloatTensor> draw_inputs(const Program& program, uint64_t seed);

// Where each logical element lies, in elements of the memory.
std::vector<int64_t> element_positions(const TensorDecl& tensor);

TensorMemory to_memory(const TensorDecl& tensor, const FloatTensor& values);
TensorMemory poisoned_memory(const TensorDecl& tensor);

// What an output must hold.  values[i] belongs to logical element elements[i]; with no elements,
// values holds all of them.
struct ExpectedTensor {
  std::vector<int64_t> elements;
  std::vector<double> values;
  std::vector<double> noise = {};  // of each value, absolute; empty: not measured
  std::vector<double> slack = {};  // of each value; empty: none
};

// Expected outputs by core/evaluate.h: all elements if the program's work is at most `max_work`
// multiplications or so, else whole rows drawn by the seed.
Result<std::vector<ExpectedTensor>> expected_outputs(const Program& program,
                                                     std::span<const FloatTensor> inputs,
                                                     Rounding rounding, double max_work,
                                                     uint64_t seed);

// Multiplications or so that a program needs: the volume of every reduction and of every output.
double program_work(const Program& program);

// The tolerance of the error model above for kernels of this µGraph.
double kernel_tolerance(const Program& program, const MuGraph& graph);

struct OutputCheck {
  bool passed = false;
  double max_rel_error = 0;  // max |x - reference| over max |reference| of the row
  int64_t compared = 0;      // elements
  std::string failure;       // empty if passed; else the first wrong element
};

// Compares the memory of an output with what it must hold; what lies in gaps between its elements
// must still be poison.
OutputCheck check_output(const TensorDecl& tensor, const TensorMemory& memory,
                         const ExpectedTensor& expected, double tolerance);

// All outputs of a program as one check; the failure names the output.
OutputCheck check_outputs(const Program& program, std::span<const TensorMemory> memory,
                          std::span<const ExpectedTensor> expected, double tolerance);

}  // namespace sundog::codegen
