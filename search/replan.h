// A µGraph at other sizes, or on another device: its structure stays, its sizes are chosen anew.
//
// This is how a result is used again and how a structure is pinned by hand: what is computed where,
// what is stored, on the grid or looped is read off the µGraph; tiles, counts of partial results,
// warps, storage and pipeline depths follow from the new shape.  It takes milliseconds, since
// nothing is searched but sizes.
#pragma once

#include <string>
#include <vector>

#include "core/device.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"
#include "search/candidate.h"

namespace sundog::search {

// The best sizes of the structure of `graph` for `program`, best first, at most `most`: the first
// with operands of products as narrow as tensor cores want them, then with those that `graph` keeps
// in f32 kept so.  `graph` may be one of the same program at other extents: axes and tensors are
// matched by name.  Its meaning is not compared; that is for the verifier.
// Errors: kBadInput if axes or tensors of the program are missing; kUnsupported if a kernel cuts an
// axis in another way than grid or loop around a tile, or nothing fits the device.
Result<std::vector<Candidate>> replan(const MuGraph& graph, const Program& program,
                                      const Device& device, size_t most = 4);

}  // namespace sundog::search
