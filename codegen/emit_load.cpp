// Shared tiles: copies behind the threads' backs, tiles written from registers, and the barriers in
// front of both.
//
// In a tile every element that is absent, and every element of its padding, is zero, so that tensor
// cores may read whole atoms.
#include <algorithm>

#include "codegen/emit_kernel.h"
#include "core/schedule/banks.h"

namespace sundog::codegen {

namespace {

// A column of a tile that lies in panels.
struct PanelColumn {
  Linear panel;   // its number
  Linear column;  // within it
};

PanelColumn within_panel(const SharedTile& tile, const Linear& inner) {
  if (inner.items.empty()) {
    return {Linear::of_constant(inner.constant / tile.panel),
            Linear::of_constant(inner.constant % tile.panel)};
  }
  const bool name = inner.items.size() == 1 && inner.constant == 0 && inner.items[0].second == 1;
  const std::string text = name ? inner.text() : "(" + inner.text() + ")";
  const std::string panel = std::to_string(tile.panel);
  return {Linear::of("(" + text + " / " + panel + ")"),
          Linear::of("(" + text + " % " + panel + ")")};
}

}  // namespace

Linear KernelEmitter::tile_index(const SharedTile& tile, const Coordinates& at) const {
  Linear index, row, inner;
  for (const TileAxis& a : tile.axes) {
    const auto it = at.find(a.axis);
    if (it == at.end()) continue;
    if (a.axis == tile.axes.back().axis) {
      inner = it->second;
    } else {
      row.add(it->second, tile.stride(a.axis) / tile.pitch);
    }
  }
  index.add(row, tile.pitch);
  if (tile.panel > 0) {
    const PanelColumn at_panel = within_panel(tile, inner);
    index.add(at_panel.panel, tile.rows() * tile.panel);
    row.add(at_panel.panel, tile.rows());
    inner = at_panel.column;
  }
  if (tile.swizzle_mask == 0 || row.is_zero()) {
    index.add(inner, 1);
    return index;
  }
  // Multiples of the period do not change the bits looked at.
  const int64_t period = int64_t{tile.swizzle_mask + 1} << tile.swizzle_shift;
  std::erase_if(row.items, [&](const auto& item) { return item.second % period == 0; });
  row.constant %= period;
  if (row.is_zero()) {
    index.add(inner, 1);
    return index;
  }
  const auto grouped = [](const Linear& e) {
    const bool name = e.items.size() == 1 && e.constant == 0 && e.items[0].second == 1;
    return name ? e.text() : "(" + e.text() + ")";
  };
  std::string bits = grouped(row);
  if (tile.swizzle_shift > 0) bits += " >> " + std::to_string(tile.swizzle_shift);
  const std::string word = std::to_string(16 / bytes(tile.dtype));
  index.add("(" + grouped(inner) + " ^ (" + bits + " & " + std::to_string(tile.swizzle_mask) +
                ") * " + word + ")",
            1);
  return index;
}

void KernelEmitter::barrier(Hazards::Need need) {
  if (need == Hazards::Need::kNothing) return;
  const bool waited = need == Hazards::Need::kWaitAndBarrier;
  if (waited) out_.line("sd::cp_async_wait<0>();");
  sync_threads();
  hazards_.barrier(waited);
}

// Products under way end before it, as their operands may be overwritten behind it; what the
// threads wrote is shown to those that start behind it.
void KernelEmitter::sync_threads() {
  settle_products();
  if (warpgroups_) out_.line("sd::fence_async_proxy();");
  out_.line("sd::sync_threads();");
}

// Before tiles of computations are read.
void KernelEmitter::read_barrier(const std::vector<uint32_t>& ids) {
  Hazards::Need need = Hazards::Need::kNothing;
  for (uint32_t id : ids) {
    if (plan(id).shared) need = std::max(need, hazards_.before_read(region(*plan(id).shared)));
  }
  barrier(need);
  for (uint32_t id : ids) {
    if (plan(id).shared) hazards_.read(region(*plan(id).shared));
  }
}

void KernelEmitter::write_barrier(uint32_t id) {
  barrier(hazards_.before_write(region(*plan(id).shared)));
}

void KernelEmitter::async_load(uint32_t id) {
  write_barrier(id);
  copy_async(id, tile_base(id));
  out_.line("sd::cp_async_commit();");
  hazards_.copy(region(*plan(id).shared));
}

// Neighbouring threads take neighbouring pieces of a row.
void KernelEmitter::copy_async(uint32_t id, const std::string& base) {
  const SharedTile& tile = *plan(id).shared;
  const auto& input = std::get<InputTerm>(kernel_.terms[computation(id).value]);
  const int64_t piece = plan(id).async_bytes / bytes(tile.dtype);
  const int64_t threads = int64_t{kernel_.warps} * kLanes;
  const int64_t columns = tile.axes.empty() ? 1 : tile.axes.back().extent / piece;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < tile.axes.size(); ++i) rows *= tile.axes[i].extent;
  const int64_t total = rows * columns;
  const int64_t turns = (total + threads - 1) / threads;
  out_.line(turns <= 16 ? "#pragma unroll" : "#pragma unroll 4");
  out_.open("for (int i = 0; i < " + std::to_string(turns) + "; ++i)");
  std::vector<std::string> tests;
  std::string row, column;
  if (threads % columns == 0) {
    row = (columns == 1 ? "tid" : "tid / " + std::to_string(columns)) + " + i * " +
          std::to_string(threads / columns);
    column = columns == 1 ? "0" : "tid % " + std::to_string(columns);
  } else {
    out_.line("const int e = tid + i * " + std::to_string(threads) + ";");
    row = "e / " + std::to_string(columns);
    column = "e % " + std::to_string(columns);
  }
  // A tile without axes has no column.
  out_.line(std::string(tile.axes.empty() ? "[[maybe_unused]] " : "") + "const int row = " + row +
            ", c = " + column + (piece > 1 ? " * " + std::to_string(piece) : "") + ";");
  const bool partial = total % threads != 0;
  if (partial) out_.open("if (row < " + std::to_string(rows) + ")");
  Coordinates at;
  if (!tile.axes.empty()) at[tile.axes.back().axis] = Linear::of("c");
  int64_t below = rows;
  for (size_t i = 0; i + 1 < tile.axes.size(); ++i) {
    const TileAxis& a = tile.axes[i];
    below /= a.extent;
    std::string digit = "row";
    if (below > 1) digit += " / " + std::to_string(below);
    if (i > 0) digit += " % " + std::to_string(a.extent);
    if (digit != "row") {
      const std::string name = out_.fresh(identifier(kernel_.factors[a.axis].name) + "_");
      out_.line("const int " + name + " = " + digit + ";");
      digit = name;
    }
    at[a.axis] = Linear::of(digit);
  }
  tests = bound_tests(at, read_bounds(id, input));
  for (const TileAxis& a : tile.axes) {
    if (a.extent > extent(a.axis)) {
      tests.push_back(at[a.axis].text() + " < " + std::to_string(extent(a.axis)));
    }
  }
  Linear to = tile_index(tile, at);
  if (plan(id).ring != kNone) to.add(stage_of_.at(plan(id).ring), tile.elements());
  out_.line("sd::cp_async<" + std::to_string(plan(id).async_bytes) + ">(" + base + " + " +
            to.text() + ", " + element_address(input.tensor, input.index, at) +
            (tests.empty() ? "" : ", " + join(tests, " && ")) + ");");
  if (partial) out_.close();
  out_.close();
}

// Zeros where the allocated tile goes beyond the factors.
void KernelEmitter::fill_padding(uint32_t id) {
  const SharedTile& tile = *plan(id).shared;
  const bool padded = std::any_of(tile.axes.begin(), tile.axes.end(),
                                  [&](const TileAxis& a) { return a.extent > extent(a.axis); });
  if (!padded) return;
  int64_t total = 1;
  for (const TileAxis& a : tile.axes) total *= a.extent;
  const std::string threads = std::to_string(kernel_.warps * kLanes);
  out_.open("for (int e = tid; e < " + std::to_string(total) + "; e += " + threads + ")");
  Coordinates at;
  std::vector<std::string> inside;
  int64_t below = total;
  for (const TileAxis& a : tile.axes) {
    below /= a.extent;
    const std::string name = out_.fresh(identifier(kernel_.factors[a.axis].name) + "_");
    out_.line("const int " + name + " = e / " + std::to_string(below) + " % " +
              std::to_string(a.extent) + ";");
    at[a.axis] = Linear::of(name);
    if (a.extent > extent(a.axis)) inside.push_back(name + " < " + std::to_string(extent(a.axis)));
  }
  out_.line("if (!(" + join(inside, " && ") + ")) " + tile_base(id) + "[" +
            tile_index(tile, at).text() + "] = sd::from_float<" +
            std::string(cuda_type(tile.dtype)) + ">(0.0f);");
  out_.close();
}

// --- tiles written by threads

// Neighbours of a thread's run that lie together in the tile, in whole words of up to 16 bytes.
int KernelEmitter::tile_vector(const SharedTile& tile, const Slots& slots) const {
  constexpr int kWordBytes = 16;
  if (slots.vector() <= 1 || tile.axes.back().axis != slots.vector_axis()) return 1;
  const auto fits = [&](int64_t width) {
    if (slots.vector() % width != 0 || extent(slots.vector_axis()) % width != 0) return false;
    for (const Mode& m : slots.layout().modes) {
      const bool other =
          m.axis == slots.vector_axis() && !(m.holder == Holder::kReg && m.unit == 1);
      if (other && m.stride % width != 0) return false;
    }
    return (tile.axes.size() == 1 || tile.pitch % width == 0) &&
           (tile.copies == 1 || tile.elements() % width == 0);
  };
  int width = 1;
  while (2 * width * bytes(tile.dtype) <= kWordBytes && fits(2 * width)) width *= 2;
  return width;
}

// Where the pieces of a thread's run begin, of `width` elements each.
std::vector<Coordinates> KernelEmitter::run_pieces(const Slots& slots, int width) const {
  std::vector<Coordinates> pieces;
  for (int first = 0; first < slots.vector(); first += width) {
    pieces.push_back(run_start(slots, first));
  }
  return pieces;
}

KernelEmitter::TileWriter KernelEmitter::tile_writer(uint32_t id, const Slots& slots) const {
  const SharedTile& tile = *plan(id).shared;
  TileWriter writer;
  writer.test = join(primary_tests(slots.layout().modes, kernel_.warps), " && ");
  writer.width = tile_vector(tile, slots);
  writer.pieces = slots.vector() / writer.width;
  for (const TileAxis& a : tile.axes) {
    if (covered(slots.layout(), a.axis) > extent(a.axis)) writer.edges.insert(a.axis);
  }
  return writer;
}

std::string KernelEmitter::rounded(const std::string& text, DType dtype) {
  if (dtype == DType::kF32) return text;
  return "sd::from_float<" + std::string(cuda_type(dtype)) + ">(" + text + ")";
}

// `text` is of the tile's type.
void KernelEmitter::write_element(uint32_t id, const Slots& slots, const TileWriter& writer,
                                  const std::string& text) {
  const SharedTile& tile = *plan(id).shared;
  if (writer.width > 1) {
    out_.line(writer.element() + " = " + text + ";");
    return;
  }
  std::vector<std::string> tests =
      slots.edge_tests([&](AxisId f) { return extent(f); }, writer.edges);
  const std::string target =
      tile_base(id) + "[" + tile_index(tile, slots.coordinates()).text() + "]";
  out_.line((tests.empty() ? "" : "if (" + join(tests, " && ") + ") ") + target + " = " + text +
            ";");
}

void KernelEmitter::flush_vector(uint32_t id, const Slots& slots, const TileWriter& writer) {
  const SharedTile& tile = *plan(id).shared;
  const std::vector<Coordinates> pieces = run_pieces(slots, writer.width);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Coordinates& at = pieces[i];
    std::vector<std::string> tests;
    for (AxisId f : writer.edges) {
      const auto place = at.find(f);  // of an empty axis the layout has no coordinate
      tests.push_back((place == at.end() ? "0" : place->second.text()) + " < " +
                      std::to_string(extent(f)));
    }
    out_.line((tests.empty() ? "" : "if (" + join(tests, " && ") + ") ") + "sd::store_shared(" +
              tile_base(id) + " + " + tile_index(tile, at).text() + ", vec[" + std::to_string(i) +
              "]);");
  }
}

// Registers to the tile: one of the threads that hold an element writes it.
void KernelEmitter::write_tile(uint32_t id, const Layout& layout) {
  const SharedTile& tile = *plan(id).shared;
  write_barrier(id);
  out_.open("");
  const Slots slots(out_, kernel_, write_order(layout, tile));
  const TileWriter writer = tile_writer(id, slots);
  if (!writer.test.empty()) out_.open("if (" + writer.test + ")");
  const RegisterArray array = result_array(id);
  const std::string present = presence(slots, id, false, {});
  slots.for_each(
      out_, {},
      [&] {
        if (writer.width > 1) {
          out_.line(writer.declaration(tile.dtype));
        }
      },
      [&] {
        std::string text = array.element(slots.index_in(layout));
        if (array.dtype != DType::kF32) text = "sd::to_float(" + text + ")";
        if (!present.empty()) text = present + " ? " + text + " : 0.0f";
        write_element(id, slots, writer, rounded(text, tile.dtype));
      },
      [&] {
        if (writer.width > 1) flush_vector(id, slots, writer);
      });
  if (!writer.test.empty()) out_.close();
  out_.close();
  fill_padding(id);
  hazards_.write(region(tile));
}

}  // namespace sundog::codegen
