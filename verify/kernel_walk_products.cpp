// Products of warp groups: what they read, and from when to when.
//
// A product reads shared memory, and registers, from where it is started to the next wait; barriers
// of the block do not end it.  So what it reads is under way as a copy is, with the parts
// exchanged: a write, or a copy, that meets it is a race whoever does it.  How a tile lies is
// computed as the instruction does, from its first word (codegen/primitives_sm90.cuh); the four
// warps are taken to read all 64 rows of the first operand each, which is more than they do.
#include "verify/kernel_walk.h"
#include "verify/kernel_walk_syntax.h"

namespace sundog::verify {

std::optional<KernelWalk::MatrixTile> KernelWalk::matrix_tile(const Expression& e) {
  if (e.kind == Expression::kName) {
    const auto at = tiles_.find(e.text);
    return at == tiles_.end() ? std::nullopt : std::optional(at->second);
  }
  if (e.kind != Expression::kCall || e.parts.size() != 2) return {};
  if (e.text == "sd::matrix_tile_at") {
    std::optional<MatrixTile> tile = matrix_tile(e.parts[0]);
    const auto bytes = integer(e.parts[1]);
    if (!tile || !bytes) return {};
    tile->start = plus(tile->start, *bytes);
    return tile;
  }
  if (e.text != "sd::matrix_tile") return {};
  const auto at = address_of(e.parts[0]);
  const auto across = literal(e.parts[1]);
  const std::vector<int64_t> row = integers_of(e.arguments);
  if (!at || !across || row.size() != 1 || pointers_[at->name].memory != "shared") return {};
  const int64_t element = bytes_of(types_[at->name]);
  return MatrixTile{at->name,
                    plus(number(pointers_[at->name].base), times(at->offset, number(element))),
                    *across, row[0]};
}

// The reads of `count` rows of 16 elements, or of 16 rows of `count` (`across`), 16 bytes each, as
// the instruction finds them (codegen/primitives_sm90.cuh).
void KernelWalk::read_tile(const MatrixTile& tile, bool across, int64_t count) {
  const int64_t rows = across ? 16 : count, chunks = (across ? count * 2 : 32) / 16;
  const SymbolicInt r = symbol(0, rows - 1, false), chunk = symbol(0, chunks - 1, false);
  const SymbolicInt row = number(tile.row);
  const SymbolicInt inside = rest(tile.start, row);
  const SymbolicInt column = plus(inside, times(chunk, number(16)));
  SymbolicInt at = minus(tile.start, inside);
  at.low = std::max<int64_t>(at.low, 0);
  const auto part = [&](const SymbolicInt& x, int64_t d) {
    return SymbolicInt{"(bvudiv " + x.text + " " + number(d).text + ")", x.low / d, x.high / d};
  };
  at = plus(at, times(r, row));  // groups of eight rows follow one another
  at = plus(at, times(part(column, tile.row), number(tile.across)));
  at = plus(at, rest(column, row));
  const SymbolicInt word = rest(part(at, 128), number(tile.row / 16));
  at = SymbolicInt{"(bvxor " + at.text + " " + times(word, number(16)).text + ")",
                   at.low / 128 * 128, at.high / 128 * 128 + 112};
  MemoryAccess a;
  a.kind = MemoryAccess::kProduct;
  a.what = "a read of " + tile.name + " by a product";
  a.memory = "shared";
  a.address = at;
  a.size = 16;
  a.end = kernel_.shared_bytes;
  a.conditions = conditions_;
  record(std::move(a));
}

// warpgroup_mma<T, N[, across a], across b>(d, a, b, add)
void KernelWalk::product(const Expression& e) {
  const size_t types = e.arguments.find(',');
  if (types == std::string::npos || e.parts.size() != 4)
    return problem("a product of a warp group");
  const std::vector<int64_t> width = integers_of(std::string_view(e.arguments).substr(types));
  const auto b = matrix_tile(e.parts[2]);
  const Expression& d = e.parts[0];
  const std::string& name = is_binary(d, "+") ? d.parts[0].text : d.text;
  if (!b || width.empty()) return problem("a product of a warp group");
  if (changed_.contains(name)) fault("accumulators change without warpgroup_fence: " + name);
  running_.insert(name);
  closed_ = false;
  // Template arguments: type, width, then whether each tile lies across K.
  const std::string& text = e.arguments;
  const bool across_b = text.ends_with("true");
  if (const auto a = matrix_tile(e.parts[1])) {
    const size_t comma = text.rfind(',');
    const bool across_a = std::string_view(text).substr(0, comma).ends_with("true");
    read_tile(*a, across_a, 64);
  } else if (e.parts[1].kind != Expression::kName) {
    return problem("an operand of a product");
  }
  read_tile(*b, across_b, width[0]);
}

}  // namespace sundog::verify
