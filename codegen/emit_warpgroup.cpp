// Products of warp groups (wgmma): the instruction fetches its operands from shared memory by
// itself, where a warp would spend most of its time on ldmatrix, and it runs behind the threads'
// back.
//
// A product is started where its statement stands and waited for where its result is next looked
// at, at a barrier (behind it the operands may be overwritten) or at the end of the loop, whichever
// comes first; what stands between overlaps with it.
#include <algorithm>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {
namespace {

constexpr int64_t kGroupRows = 64, kAtomColumns = 8, kDepth = 16;

// Widths of instructions that together make `columns`, widest first.
std::vector<int64_t> widths(int64_t columns) {
  std::vector<int64_t> list;
  for (int64_t width : {128, 64, 32, 16, 8}) {
    for (; columns >= width; columns -= width) list.push_back(width);
  }
  return list;
}

// Elements from the tile's start to column `along` of its rows and row `across`, both multiples of
// what an instruction takes.
int64_t tile_offset(const SharedTile& tile, int64_t along, int64_t across) {
  const int64_t panel = tile.panel > 0 ? tile.panel : tile.pitch;
  return along / panel * (tile.rows() * panel) + along % panel + across * tile.pitch;
}

}  // namespace

// Declares what the instruction needs to know of an operand in shared memory.
std::string KernelEmitter::matrix_tile(uint32_t operand, AxisId k, const std::string& first_row) {
  const SharedTile& tile = *plan(operand).shared;
  const int64_t row_bytes = tile.pitch * bytes(tile.dtype);
  Linear at;
  if (tile.stride(k) == 1) {
    at.add(first_row, tile.pitch);
  } else {
    at.add(first_row, tile.panel > 0 ? tile.rows() : 0);
  }
  const AxisId ring = plan(operand).ring;
  if (ring != kNone) at.add(stage_of_.at(ring), tile.elements());
  const std::string name = out_.fresh(names_[operand] + "_tile_");
  out_.line("const uint64_t " + name + " = sd::matrix_tile<" + std::to_string(row_bytes) + ">(" +
            tile_base(operand) + (at.is_zero() ? "" : " + " + at.text()) + ", " +
            std::to_string(tile.rows() * row_bytes) + ");");
  return name;
}

void KernelEmitter::warpgroup_product(uint32_t id, const RegisterArray& into, bool fresh) {
  const MmaPlan& mma = *plan(id).mma;
  const Mode* more = nullptr;
  std::string first_row = "0";
  for (const Mode& m : plan(id).partial.modes) {
    if (m.axis != mma.m) continue;
    if (m.holder == Holder::kReg && m.stride == kGroupRows) more = &m;
    if (m.holder == Holder::kWarp && m.stride >= kGroupRows) {
      first_row = out_.fresh("rows_");
      out_.line("const int " + first_row + " = " + digit_text(m, kernel_.warps) + " * " +
                std::to_string(m.stride) + ";");
    }
  }
  const std::string a = mma.a_in_registers ? "" : matrix_tile(mma.a, mma.k, first_row);
  const std::string b = matrix_tile(mma.b, mma.k, "0");
  out_.line("sd::warpgroup_fence();");
  const int64_t groups = more == nullptr ? 1 : more->extent;
  for (int64_t group = 0; group < groups; ++group) {
    out_.line("#pragma unroll");
    out_.open("for (int step = 0; step < " + std::to_string(extent(mma.k) / kDepth) + "; ++step)");
    warpgroup_step(id, into, {a, b}, group, fresh);
    out_.close();
  }
  out_.line("sd::warpgroup_commit();");
  in_flight_.push_back(id);
}

// The distance of one step along K, as a text of `step`, in bytes.
std::string KernelEmitter::step_text(uint32_t operand, AxisId k) const {
  const SharedTile& tile = *plan(operand).shared;
  const int64_t size = bytes(tile.dtype);
  if (tile.stride(k) != 1) return "step * " + std::to_string(kDepth * tile.pitch * size);
  const int64_t own = kDepth * size;
  if (tile.panel == 0) return "step * " + std::to_string(own);
  const std::string steps = std::to_string(tile.panel / kDepth);
  return "step / " + steps + " * " + std::to_string(tile.rows() * tile.panel * size) +
         " + step % " + steps + " * " + std::to_string(own);
}

void KernelEmitter::warpgroup_step(uint32_t id, const RegisterArray& into,
                                   const std::array<std::string, 2>& tiles, int64_t group,
                                   bool fresh) {
  const MmaPlan& mma = *plan(id).mma;
  const auto at = [&](const std::string& tile, const std::string& step, int64_t offset) {
    return "sd::matrix_tile_at(" + tile + ", " + step +
           (offset > 0 ? " + " + std::to_string(offset) : "") + ")";
  };
  // Rows of M or N run along the tile's rows or across them.
  const auto skip = [&](uint32_t operand, int64_t rows) {
    const SharedTile& tile = *plan(operand).shared;
    const bool k_runs = tile.stride(mma.k) == 1;
    return (k_runs ? tile_offset(tile, 0, rows) : tile_offset(tile, rows, 0)) * bytes(tile.dtype);
  };
  std::string a;
  if (mma.a_in_registers) {
    out_.line("const uint32_t a[4] = {" + join(register_words(id, group), ", ") + "};");
    a = "a";
  } else {
    a = at(tiles[0], step_text(mma.a, mma.k), skip(mma.a, group * kGroupRows));
  }
  const auto across = [&](uint32_t operand) {
    return std::string(plan(operand).shared->stride(mma.k) == 1 ? "false" : "true");
  };
  int64_t column = 0;
  for (int64_t width : widths(extent(mma.n))) {
    const int64_t first = group * extent(mma.n) / kAtomColumns + column / kAtomColumns;
    out_.line("sd::warpgroup_mma<" + std::string(cuda_type(mma.dtype)) + ", " +
              std::to_string(width) + (mma.a_in_registers ? "" : ", " + across(mma.a)) + ", " +
              across(mma.b) + ">(" + into.name + (first > 0 ? " + " + std::to_string(first) : "") +
              ", " + a + ", " + at(tiles[1], step_text(mma.b, mma.k), skip(mma.b, column)) + ", " +
              (fresh ? "step > 0" : "true") + ");");
    column += width;
  }
}

// The fragment of A for one step, from the registers of the computation that made it.
std::vector<std::string> KernelEmitter::register_words(uint32_t id, int64_t group) const {
  const MmaPlan& mma = *plan(id).mma;
  std::vector<std::string> words;
  for (int word = 0; word < 4; ++word) {
    std::vector<RegisterLoop> digits;
    for (const Mode& m : mma.a_layout.modes) {
      if (m.holder != Holder::kReg) continue;
      if (m.axis == mma.k && m.stride == 8) digits.push_back({m, std::to_string(word / 2)});
      if (m.axis == mma.k && m.stride == kDepth) digits.push_back({m, "step"});
      if (m.axis == mma.m && m.stride == 8) digits.push_back({m, std::to_string(word % 2)});
      if (m.axis == mma.m && m.stride == kGroupRows) digits.push_back({m, std::to_string(group)});
    }
    const Linear index = register_index(plan(mma.a).layout, digits);
    words.push_back("sd::word(" + result_array(mma.a).group(index) + ")");
  }
  return words;
}

// Waits for what is under way.
void KernelEmitter::settle_products() {
  for (uint32_t id : in_flight_) out_.line("sd::warpgroup_wait(" + part_array(id).name + ");");
  in_flight_.clear();
}

// Before a statement that computes `id`.
void KernelEmitter::settle_products_for(uint32_t id) {
  const Computation& c = computation(id);
  const auto touched = [&](uint32_t other) {
    const auto& locals = scan_.locals[id];
    return other == id || other == c.rescale || other == c.accumulate_into ||
           std::find(locals.begin(), locals.end(), other) != locals.end();
  };
  if (std::any_of(in_flight_.begin(), in_flight_.end(), touched)) settle_products();
}

}  // namespace sundog::codegen
