// Stores to device tensors, from registers or from a tile.
#include <algorithm>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {

struct KernelEmitter::StoreAccess {
  const Store* store = nullptr;
  const StorePlan* how = nullptr;
  std::vector<Bound> bounds;
  int width = 1;   // elements stored at once
  int pieces = 0;  // of a thread's vector; 0: one by one
};

void KernelEmitter::store(const Store& store, const StorePlan& how) {
  const uint32_t id = store.computation;
  settle_products_for(id);
  out_.blank();
  out_.line("// store " + computation(id).name + " -> " + graph_.tensors[store.tensor].decl.name);
  if (!how.from_registers) read_barrier({id});
  out_.open("");
  const Slots slots(out_, kernel_, how.layout);
  const StoreAccess access = store_access(store, how, slots);
  const std::string threads = store_threads(store, how);
  if (!threads.empty()) out_.open("if (" + threads + ")");
  store_loops(access, slots);
  if (!threads.empty()) out_.close();
  out_.close();
}

KernelEmitter::StoreAccess KernelEmitter::store_access(const Store& store, const StorePlan& how,
                                                       const Slots& slots) const {
  StoreAccess access{&store, &how, {}, 1, 0};
  const uint32_t id = store.computation;
  AxisSet factors = grid_ | tile_axes(id);
  for (const Loop* loop : open_) factors.insert(loop->factor);
  access.bounds = presence_bounds(graph_, kernel_, dependences_[id].absent_along, factors);
  for (Bound& b : tensor_bounds(graph_, kernel_, store.tensor, store.index)) {
    const auto known = std::find(access.bounds.begin(), access.bounds.end(), b);
    if (known == access.bounds.end()) access.bounds.push_back(std::move(b));
  }
  const int vector = slots.vector(), size = bytes(graph_.tensors[store.tensor].decl.dtype);
  if (vector <= 1 || (vector & (vector - 1)) != 0) return access;
  access.width = vector_width(graph_, kernel_, store.tensor, store.index, access.bounds,
                              slots.vector_axis(), std::min(vector, std::max(1, 16 / size)));
  if (access.width > 1) access.pieces = vector / access.width;
  return access;
}

// One thread writes each element, and of blocks that compute the same the first; but each cluster
// keeps its own.
std::string KernelEmitter::store_threads(const Store& store, const StorePlan& how) const {
  std::vector<std::string> tests = primary_tests(how.layout.modes, kernel_.warps);
  AxisSet used;
  for (const IndexExpr& e : store.index) used |= e.axis_set();
  for (AxisId f : kernel_.grid) {
    if (kept(store.tensor)) break;
    const bool same = !used.has(f) && !dependences_[store.computation].factors.has(f);
    if (same && extent(f) > 1) tests.push_back(factors_[f] + " == 0");
  }
  return join(tests, " && ");
}

std::string KernelEmitter::store_tests(const StoreAccess& access, const Coordinates& at) {
  std::vector<std::string> tests = bound_tests(at, access.bounds);
  for (AxisId f : tile_axes(access.store->computation)) {
    if (covered(access.how->layout, f) <= extent(f)) continue;
    const std::string test =
        at.contains(f) ? at.at(f).text() + " < " + std::to_string(extent(f)) : "false";
    if (std::find(tests.begin(), tests.end(), test) == tests.end()) tests.push_back(test);
  }
  return tests.empty() ? "" : "if (" + join(tests, " && ") + ") ";
}

void KernelEmitter::store_loops(const StoreAccess& access, const Slots& slots) {
  const Store& store = *access.store;
  const uint32_t id = store.computation;
  const DType dtype = graph_.tensors[store.tensor].decl.dtype;
  const std::string type(cuda_type(dtype)), width = std::to_string(access.width);
  const LocalTerm source{id, tile_axes(id)};
  Scope scope{id, &slots, {}};
  const bool own = kept(store.tensor);
  const std::string put = own                                     ? "sd::store_shared("
                          : place_.passing.contains(store.tensor) ? "sd::store_stream("
                                                                  : "sd::store_global(";
  const auto address = [&](const Coordinates& at) {
    return own ? cluster_place(store.tensor, store.index, at)[1]
               : element_address(store.tensor, store.index, at);
  };
  const auto prepare = [&] {
    scope.vectors.clear();
    if (slots.vector() > 1) prepare_local(scope, kNoTerm, source);
    if (access.pieces > 0) {
      out_.line("sd::Vec<" + type + ", " + width + "> vec[" + std::to_string(access.pieces) + "];");
    }
  };
  const auto body = [&] {
    const Text x = read_local(scope, kNoTerm, source, "");
    std::string text = raw_source(x.text, id, dtype, access.how->from_registers);
    if (text.empty()) {
      text = dtype == DType::kF32 ? x.text : "sd::from_float<" + type + ">(" + x.text + ")";
    }
    if (access.pieces == 0) {
      const Coordinates& at = slots.coordinates();
      out_.line(store_tests(access, at) + "*(" + address(at) + ") = " + text + ";");
    } else if (access.pieces == 1) {
      out_.line("vec[0][v] = " + text + ";");
    } else {
      out_.line("vec[v / " + width + "][v % " + width + "] = " + text + ";");
    }
  };
  slots.for_each(out_, {}, prepare, body, [&] {
    for (int i = 0; i < access.pieces; ++i) {
      const Coordinates at = run_start(slots, i * access.width);
      out_.line(store_tests(access, at) + put + address(at) + ", vec[" + std::to_string(i) + "]);");
    }
  });
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
