// Wrong µGraphs made from right ones: what a verifier is tested with.
//
//   for (uint64_t seed = 0; seed < 100; ++seed)
//     if (auto m = mutate(graph, program, seed)) use(m->graph, m->what);
//
// Each mutant has one slip of the kind that generators and people make.  It is well-formed (check()
// passes), but may by chance be as right as the original: the caller finds out by running it.
#pragma once

#include <optional>
#include <string>

#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::verify {

enum class Mutation : uint8_t {
  kDroppedAccumulator,  // a loop factor is left out of a reduction
  kWrongSplit,          // two factors of an axis exchange their strides
  kMissingMask,         // a select loses its condition
  kWrongAxis,           // a read uses another factor
  kOffByOne,            // an index or a condition is shifted by one
  kWrongOperand,        // an operand is another term of the kernel
  kWrongOperator,       // plus for minus, max for sum, and so on
  kDroppedRescale,      // an accumulator forgets its running maximum
  kSwappedStores,       // two stores, or the store of another computation
  kWrongPlace,          // a statement leaves its loop, or changes places with the one before it
  kWrongLayout,         // a store exchanges two dimensions, or is shifted
};
inline constexpr int kMutationCount = 11;

struct Mutant {
  MuGraph graph;
  Mutation mutation = Mutation::kWrongOperand;
  std::string what;  // "kernel k0: 'l' forgets its running maximum"
};

// The mutant of this seed, or nothing if the slip drawn has no place here or leaves no µGraph.
std::optional<Mutant> mutate(const MuGraph& graph, const Program& program, uint64_t seed);

// A µGraph as right as the given one: operands of sums, products and maxima exchanged, x - y as
// x + -1 * y, squares as products, statements in another order, more warps, a
// register for a tile in shared memory.  Several of these at once; nothing if none has a place
// here.
std::optional<Mutant> vary(const MuGraph& graph, const Program& program, uint64_t seed);

}  // namespace sundog::verify
