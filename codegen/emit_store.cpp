// Stores to device tensors, from registers or from a tile.
#include <algorithm>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {

void KernelEmitter::store(const Store& store, const StorePlan& how) {
  const uint32_t id = store.computation;
  const DType dtype = graph_.tensors[store.tensor].decl.dtype;
  out_.blank();
  out_.line("// store " + computation(id).name + " -> " + graph_.tensors[store.tensor].decl.name);
  if (!how.from_registers) read_barrier({id});
  out_.open("");
  const Slots slots(out_, kernel_, how.layout);
  // Who writes, and which elements are there.
  std::vector<std::string> threads = primary_tests(how.layout.modes, kernel_.warps);
  AxisSet used;
  for (const IndexExpr& e : store.index) used |= e.axis_set();
  for (AxisId f : kernel_.grid) {
    if (!used.has(f) && !dependences_[id].factors.has(f) && extent(f) > 1) {
      threads.push_back(factors_[f] + " == 0");
    }
  }
  AxisSet factors = grid_ | tile_axes(id);
  for (const Loop* loop : open_) factors.insert(loop->factor);
  std::vector<Bound> bounds =
      presence_bounds(graph_, kernel_, dependences_[id].absent_along, factors);
  for (Bound& b : tensor_bounds(graph_, kernel_, store.tensor, store.index)) {
    if (std::find(bounds.begin(), bounds.end(), b) == bounds.end()) bounds.push_back(std::move(b));
  }
  int width = 1;
  if (slots.vector() > 1 && (slots.vector() & (slots.vector() - 1)) == 0) {
    width = vector_width(graph_, kernel_, store.tensor, store.index, bounds, slots.vector_axis(),
                         std::min(slots.vector(), std::max(1, 16 / bytes(dtype))));
  }
  const std::string type(cuda_type(dtype));
  const auto tests_at = [&](const Coordinates& at) {
    std::vector<std::string> tests = bound_tests(at, bounds);
    for (AxisId f : tile_axes(id)) {
      if (covered(how.layout, f) <= extent(f)) continue;
      const std::string test =
          at.contains(f) ? at.at(f).text() + " < " + std::to_string(extent(f)) : "false";
      if (std::find(tests.begin(), tests.end(), test) == tests.end()) tests.push_back(test);
    }
    return join(tests, " && ");
  };
  if (!threads.empty()) out_.open("if (" + join(threads, " && ") + ")");
  Scope scope{id, &slots, {}, {}};
  const LocalTerm source{id, tile_axes(id)};
  const int pieces = width > 1 ? slots.vector() / width : 0;
  slots.for_each(
      out_, {},
      [&] {
        scope.vectors.clear();
        if (slots.vector() > 1) prepare_local(scope, kNoTerm, source);
        if (width > 1) {
          out_.line("sd::Vec<" + type + ", " + std::to_string(width) + "> vec[" + std::to_string(pieces) +
                    "];");
        }
      },
      [&] {
        const Text x = read_local(scope, kNoTerm, source, "");
        std::string text = dtype == DType::kF32 ? x.text : "sd::from_float<" + type + ">(" + x.text + ")";
        const std::string raw = raw_source(x.text, id, dtype, how.from_registers);
        if (!raw.empty()) text = raw;
        if (width > 1) {
          const std::string w = std::to_string(width);
          out_.line(pieces == 1 ? "vec[0][v] = " + text + ";"
                                : "vec[v / " + w + "][v % " + w + "] = " + text + ";");
          return;
        }
        const std::string tests = tests_at(slots.coordinates());
        out_.line((tests.empty() ? "" : "if (" + tests + ") ") + "*(" +
                  element_address(store.tensor, store.index, slots.coordinates()) + ") = " + text + ";");
      },
      [&] {
        for (int i = 0; i < pieces; ++i) {
          Coordinates at = slots.coordinates();
          Linear& run = at[slots.vector_axis()];
          std::erase_if(run.items, [](const auto& item) { return item.first == "v"; });
          run.constant += i * width;
          const std::string tests = tests_at(at);
          out_.line((tests.empty() ? "" : "if (" + tests + ") ") + "sd::store_global(" +
                    element_address(store.tensor, store.index, at) + ", vec[" + std::to_string(i) + "]);");
        }
      });
  if (!threads.empty()) out_.close();
  out_.close();
}

// The stored bits themselves, where no conversion is needed.
std::string KernelEmitter::raw_source(const std::string& text, uint32_t id, DType dtype,
                                      bool from_registers) const {
  const DType own = from_registers ? result_array(id).dtype : plan(id).shared->dtype;
  constexpr std::string_view kWiden = "sd::to_float(";
  if (own != dtype || dtype == DType::kF32 || !text.starts_with(kWiden)) return "";
  return text.substr(kWiden.size(), text.size() - kWiden.size() - 1);
}

}  // namespace sundog::codegen
