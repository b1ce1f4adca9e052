// What the emitted code calls things: register arrays, tiles and their regions, and small questions
// about plans.
#include <algorithm>

#include "codegen/emit_kernel.h"
#include "core/text.h"

namespace sundog::codegen {

std::string RegisterArray::element(const Linear& index) const {
  if (count == 1) return name;
  if (inner == 1) return name + "[" + index.text() + "]";
  Linear group, within;
  group.constant = index.constant / inner;
  within.constant = index.constant % inner;
  for (const auto& [item, coefficient] : index.items) {
    if (coefficient % inner == 0) {
      group.add(item, coefficient / inner);
    } else {
      within.add(item, coefficient);
    }
  }
  return name + "[" + group.text() + "][" + within.text() + "]";
}

std::string RegisterArray::declaration() const {
  const std::string type(cuda_type(dtype));
  if (count == 1) return type + " " + name + ";";
  if (inner == 1) return type + " " + name + "[" + std::to_string(count) + "];";
  const std::string groups = std::to_string(count / inner);
  if (vector) {
    return "sd::Vec<" + type + ", " + std::to_string(inner) + "> " + name + "[" + groups + "];";
  }
  return type + " " + name + "[" + groups + "][" + std::to_string(inner) + "];";
}

std::string RegisterArray::group(const Linear& index) const {
  std::string text = element(index);
  if (count > 1) text.resize(text.rfind('['));
  return text;
}

std::string RegisterArray::any() const {
  if (count == 1) return name;
  if (inner == 1) return name + "[i]";
  return name + "[i / " + std::to_string(inner) + "][i % " + std::to_string(inner) + "]";
}

std::string KernelEmitter::TileWriter::declaration(DType dtype) const {
  return "sd::Vec<" + std::string(cuda_type(dtype)) + ", " + std::to_string(width) + "> vec[" +
         std::to_string(pieces) + "];";
}

std::string KernelEmitter::TileWriter::element() const {
  if (pieces == 1) return "vec[0][v]";
  const std::string w = std::to_string(width);
  return "vec[v / " + w + "][v % " + w + "]";
}

AxisSet KernelEmitter::tile_axes(uint32_t id) const {
  AxisSet set;
  for (AxisId f : computation(id).axes) set.insert(f);
  return set;
}

AxisSet KernelEmitter::bound(uint32_t id) const {
  AxisSet set = grid_ | tile_axes(id) | plan(id).reduced;
  for (int loop : scan_.computations[id].around) {
    set.insert(scan_.loops[static_cast<size_t>(loop)].loop->factor);
  }
  return set;
}

std::vector<Bound> KernelEmitter::read_bounds(uint32_t id, const InputTerm& input) const {
  std::vector<Bound> bounds =
      presence_bounds(graph_, kernel_, dependences_[id].operand_absent_along, bound(id));
  for (Bound& b : tensor_bounds(graph_, kernel_, input.tensor, input.index)) {
    if (std::find(bounds.begin(), bounds.end(), b) == bounds.end()) bounds.push_back(std::move(b));
  }
  return bounds;
}

const ReduceTerm* KernelEmitter::reduce_of(uint32_t id) const {
  return std::get_if<ReduceTerm>(&kernel_.terms[computation(id).value]);
}

// Partial sums have an array of their own unless they become the value in place.
bool KernelEmitter::separate_part(uint32_t id) const {
  const ComputationPlan& p = plan(id);
  const bool narrow = result_array(id).dtype != DType::kF32 || result_array(id).vector;
  const bool running = !p.loops.empty() && !p.deferred && computation(id).accumulate_into == kNone;
  return narrow || p.combine.redistribute || (running && p.combine.needed());
}

bool KernelEmitter::fresh_each_time(uint32_t id) const {
  const ComputationPlan& p = plan(id);
  if (p.loops.empty() || computation(id).accumulate_into != kNone) return true;
  return !p.deferred && separate_part(id);
}

RegisterArray KernelEmitter::result_array(uint32_t id) const {
  const ComputationPlan& p = plan(id);
  RegisterArray array{names_[id], computation(id).dtype, slots(p.layout), 1, false};
  if (array.dtype == DType::kF64) array.dtype = DType::kF32;  // arithmetic is in f32
  if (!p.in_registers) array.name += "_value";
  const Mode vector = vector_mode(p.layout);
  if (bytes(array.dtype) < 4 && vector.extent > 1 && vector.extent * bytes(array.dtype) <= 16 &&
      (vector.extent & (vector.extent - 1)) == 0) {
    array.inner = vector.extent;
    array.vector = true;
  }
  const bool in_place = p.kind == Realisation::kMma && !p.combine.redistribute && !array.vector;
  if (in_place && array.dtype == DType::kF32 && p.layout == p.partial) array.inner = 4;
  return array;
}

RegisterArray KernelEmitter::part_array(uint32_t id) const {
  if (!separate_part(id)) return result_array(id);
  RegisterArray array{names_[id] + "_part", DType::kF32, slots(plan(id).partial), 1, false};
  if (plan(id).kind == Realisation::kMma) array.inner = 4;
  return array;
}

// "acc[n, d.i] = sum[h.o, h.i](xs * ws)", as the text of the µGraph has it.
std::string KernelEmitter::describe(uint32_t id) const {
  const Computation& c = computation(id);
  std::vector<std::string> axes;
  for (AxisId f : c.axes) axes.push_back(kernel_.factors[f].name);
  const auto index = static_cast<uint32_t>(&kernel_ - graph_.kernels.data());
  return c.name + "[" + join(axes, ", ") + "] = " + print_term(graph_, index, c.value);
}

Region KernelEmitter::region(const SharedTile& tile) const {
  return {tile.offset, tile.offset + tile.bytes()};
}

std::string KernelEmitter::tile_base(uint32_t id) const {
  return names_[id] + (computation(id).storage == Storage::kShared ? "" : "_shared");
}

}  // namespace sundog::codegen
