// What two programs that are compared must have in common: tensors by name.
#pragma once

#include <string>
#include <vector>

#include "core/program.h"
#include "core/status.h"

namespace sundog::verify {

struct TensorPair {
  const TensorDecl* first;
  const TensorDecl* second;
};

// The inputs, then the outputs, that both have by name.
std::vector<TensorPair> shared_tensors(const Program& a, const Program& b);

// Why inputs or outputs of the candidate are not those of the program, by name, dtype and extents;
// empty if they are.  A candidate may leave out an input, which it then does not need.
std::string interface_mismatch(const Program& program, const Program& candidate);

// An error (kBadInput) if a tensor of both has two shapes: there is no question to answer then.  It
// names the tensor and both shapes, and where the axes agree by name and only their sizes do not,
// the hint says how to give both one set of sizes.
Status check_shapes(const Program& program, const Program& candidate);

}  // namespace sundog::verify
