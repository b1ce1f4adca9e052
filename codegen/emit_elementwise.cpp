// Values computed one by one: loads, elementwise chains and conversions, into registers or a tile.
#include <algorithm>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {

void KernelEmitter::elementwise(uint32_t id) {
  const ComputationPlan& p = plan(id);
  read_barrier(scan_.locals[id]);
  if (p.in_registers) {
    out_.line(result_array(id).declaration());
  } else {
    write_barrier(id);
  }
  out_.open("");
  const Slots slots(out_, kernel_, p.iteration);
  const TileWriter writer = p.in_registers ? TileWriter{} : tile_writer(id, slots);
  if (!writer.test.empty()) out_.open("if (" + writer.test + ")");
  with_settled_masks(id, computation(id).value, tile_axes(id),
                     [&](const auto& instead) { element_loops(id, slots, writer, instead); });
  if (!writer.test.empty()) out_.close();
  out_.close();
  if (!p.in_registers) {
    fill_padding(id);
    hazards_.write(region(*p.shared));
  } else if (p.shared) {
    write_tile(id, p.layout);
  }
}

// What a tensor core reads must be zero where it is absent, and so must every tile.
std::string KernelEmitter::element_mask(uint32_t id, const Slots& slots) {
  bool operand = !plan(id).in_registers;
  for (const ComputationPlan& other : plan_.computations) {
    operand |= other.mma && (other.mma->a == id || other.mma->b == id);
    operand |= other.row_sum && other.row_sum->operand == id;
  }
  return operand ? presence(slots, id, false, tile_axes(id)) : "";
}

// The name of a vector just loaded that is to be kept as it is; empty if there is none.
std::string KernelEmitter::raw_vector(uint32_t id, const Scope& scope) const {
  const TermId term = computation(id).value;
  const RegisterArray array = result_array(id);
  const auto whole = scope.vectors.find({term, ""});
  if ((plan(id).in_registers && !array.vector) || whole == scope.vectors.end()) return "";
  const auto* input = std::get_if<InputTerm>(&kernel_.terms[term]);
  const int64_t run = plan(id).in_registers ? array.inner : scope.slots->vector();
  if (input == nullptr || whole->second.second != run) return "";
  return graph_.tensors[input->tensor].decl.dtype == computation(id).dtype ? whole->second.first
                                                                           : "";
}

void KernelEmitter::element_loops(uint32_t id, const Slots& slots, const TileWriter& writer,
                                  const std::map<TermId, TermId>& instead) {
  const ComputationPlan& p = plan(id);
  const Computation& c = computation(id);
  const RegisterArray array = result_array(id);
  const std::string mask = element_mask(id, slots);
  const std::string type(cuda_type(array.dtype));
  // Two neighbours of 16 bits are rounded by one instruction.
  const bool packed = p.in_registers && array.vector && array.inner == 2 && slots.vector() == 2 &&
                      (array.dtype == DType::kF16 || array.dtype == DType::kBF16);
  const auto target = [&] { return array.element(slots.index_in(p.layout)); };
  Scope scope{id, &slots, {}};
  scope.instead = instead;
  std::string raw;
  const auto prepare = [&] {
    scope.vectors.clear();
    prepare_vectors(scope, c.value);
    raw = raw_vector(id, scope);
    if (writer.width > 1) out_.line(writer.declaration(c.dtype));
    if (packed && raw.empty()) out_.line("float pair[2];");
  };
  const auto body = [&] {
    scope.values.clear();
    if (!raw.empty()) {
      const std::string x = raw + "[0][v]", zero = "sd::from_float<" + type + ">(0.0f)";
      const std::string text = mask.empty() ? x : mask + " ? " + x + " : " + zero;
      if (p.in_registers) {
        out_.line(target() + " = " + text + ";");
      } else {
        write_element(id, slots, writer, text);
      }
      return;
    }
    std::string text = value(scope, c.value, "").text;
    if (!mask.empty()) text = mask + " ? " + text + " : 0.0f";
    if (!p.in_registers) {
      write_element(id, slots, writer, rounded(text, p.shared->dtype));
    } else if (packed) {
      out_.line("pair[v] = " + text + ";");
    } else {
      const bool rounded = array.dtype != DType::kF32;
      out_.line(target() + " = " + (rounded ? "sd::from_float<" + type + ">(" + text + ")" : text) +
                ";");
    }
  };
  slots.for_each(out_, {}, prepare, body, [&] {
    if (packed && raw.empty()) {
      Linear index = slots.index_in(p.layout);
      std::erase_if(index.items, [](const auto& item) { return item.first == "v"; });
      out_.line(array.group(index) + " = sd::pack_vec<" + type + ">(pair[0], pair[1]);");
    }
    if (writer.width > 1) flush_vector(id, slots, writer);
  });
}

}  // namespace sundog::codegen
