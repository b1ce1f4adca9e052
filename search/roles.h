// What part each computation of a kernel plays: read off the structure, whatever the sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/mugraph.h"
#include "search/work.h"

namespace sundog::search {

// A sum of products of two computations, as a matrix product sees it.  Tile factors only.
struct Contraction {
  uint32_t left = 0, right = 0;  // computations, in the order of the product
  AxisSet m, n;                  // axes that only left, only right has
  AxisSet k;                     // reduced, and in both
  AxisSet batch;                 // in both, not reduced
};

struct Role {
  bool is_load = false;
  uint32_t tensor = 0;  // of a load
  AxisSet row;          // of a load: factors of the dimension that is contiguous in memory
  int aligned = 1;      // of a load: bytes, as aligned_bytes has it
  std::optional<Contraction> contraction;
  bool is_operand = false;  // of some contraction
  bool is_reduction = false;
  // In which an MMA could take it: its own of 8 or 16 bits, of what is computed a 16-bit one that
  // it may be narrowed to, else f32.
  DType operand_dtype = DType::kF32;
  AxisSet tile;                         // axes of the result
  AxisSet reduced;                      // tile factors that its root reduces
  AxisSet loops;                        // around it
  int loop = -1;                        // the innermost loop around it, counted in order
  AxisSet accumulated;                  // loops that its root reduces
  AxisSet reuse;                        // tile factors of reductions that read it, beyond its own
  Work work;                            // of one element of tile x reduced
  std::vector<InputTerm> inline_reads;  // of device tensors, in place
  std::vector<uint32_t> users;
  // Of a contraction: what is made of it element by element.
  std::vector<uint32_t> followers;
};

// Factors that an index runs along in the dimension whose neighbours are neighbours in memory.
AxisSet innermost(const TensorDecl& decl, const std::vector<IndexExpr>& index);
// Bytes, up to 16, of which each element with an index of multiples of that is a multiple: what
// strides, offset and pointer leave of it.
int aligned_bytes(const TensorDecl& decl, const std::vector<IndexExpr>& index);

// `wide`: names of computations that must not be stored narrower than f32.
std::vector<Role> roles_of(const MuGraph& graph, const Kernel& kernel,
                           const std::set<std::string>& wide = {});

// Gives an operand of a contraction that is itself a reduction a copy of its own, so that the
// accumulator stays f32 while the copy may be narrow and shared.
void separate_operands(Kernel& kernel);

}  // namespace sundog::search
