// The syntax of µGraph text: what parse_mugraph reads before names get their meaning.
// NOLINT(sundog-mirror): the insides of core/text.h, tested through it
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/mugraph.h"
#include "core/text_syntax.h"

namespace sundog::text {

struct AxisSyntax {
  Ident name, factor, kernel;  // axis NAME = FACTOR of KERNEL
};
struct ComputeSyntax {
  Ident name;
  std::vector<Ident> axes;
  Expr value;
  Storage storage = Storage::kReg;
  DType dtype = DType::kF32;
  MmaAtom mma = MmaAtom::kNoAtom;
  bool mma_swap = false;
  std::vector<std::pair<Ident, int64_t>> warps;
  std::optional<Ident> rescale, into;
};
struct StoreSyntax {
  Ident computation, tensor;
  std::optional<std::vector<Expr>> index;
  std::optional<DType> dtype;  // declares the tensor
  std::optional<std::vector<Ident>> dims;
};
struct StepSyntax;
struct LoopSyntax {
  Ident factor;
  int64_t stages = 1;
  bool bulk = false;
  std::vector<Expr> trim;
  std::vector<StepSyntax> body;
};
struct StepSyntax {
  std::variant<ComputeSyntax, StoreSyntax, LoopSyntax, DefinitionSyntax> node;  // the last: a let
};
struct KernelSyntax {
  Ident name;
  std::vector<Ident> grid;
  int64_t warps = 4;
  Place warps_at;
  Via via = Via::kKernel;
  KernelKind kind = KernelKind::kGraphDefined;
  std::optional<std::vector<Ident>> factors;
  std::vector<SplitSyntax> splits;  // wherever they stand in the kernel
  std::vector<StepSyntax> body;
  std::set<std::string> words;  // every name in it
};
struct MuGraphSyntax {
  Ident name, program;
  std::vector<AxisSyntax> axes;
  std::vector<TensorSyntax> tensors;
  std::vector<KernelSyntax> kernels;
};

MuGraphSyntax parse_mugraph_syntax(Cursor& cursor);

// "reg" or "shared"; "m16n8k16".
std::string_view name(Storage storage);
std::string_view name(MmaAtom atom);
// The atom of that name; kNoAtom if there is none.
MmaAtom find_atom(std::string_view text);

}  // namespace sundog::text
