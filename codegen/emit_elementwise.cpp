// Values computed one by one: loads, elementwise chains and conversions, into registers or a tile.
#include <algorithm>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {

void KernelEmitter::elementwise(uint32_t id) {
  const ComputationPlan& p = plan(id);
  const Computation& c = computation(id);
  const RegisterArray array = result_array(id);
  read_barrier(scan_.locals[id]);
  if (p.in_registers) out_.line(array.declaration());
  if (!p.in_registers) write_barrier(id);
  out_.open("");
  const Slots slots(out_, kernel_, p.iteration);
  // What a tensor core reads must be zero where it is absent.
  bool operand = false;
  for (const ComputationPlan& other : plan_.computations) {
    operand |= other.mma && (other.mma->a == id || other.mma->b == id);
  }
  const std::string present = presence(slots, id, false, tile_axes(id));
  const bool masked = !present.empty() && (operand || !p.in_registers);
  const bool packed = p.in_registers && array.vector && array.inner == 2 && slots.vector() == 2 &&
                      (array.dtype == DType::kF16 || array.dtype == DType::kBF16);
  const std::string type(cuda_type(array.dtype));
  TileWriter writer = p.in_registers ? TileWriter{} : tile_writer(id, slots);
  if (!writer.test.empty()) out_.open("if (" + writer.test + ")");
  Scope scope{id, &slots, {}, {}};
  std::string raw;  // a vector loaded as it is to be kept
  slots.for_each(
      out_, {},
      [&] {
        scope.vectors.clear();
        prepare_vectors(scope, c.value);
        const auto whole = scope.vectors.find({c.value, ""});
        const bool same = std::holds_alternative<InputTerm>(kernel_.terms[c.value]) && array.vector &&
                          whole != scope.vectors.end() && whole->second.second == array.inner &&
                          input_dtype(c.value) == array.dtype;
        raw = same && p.in_registers ? whole->second.first : "";
        if (writer.width > 1) {
          out_.line("sd::Vec<" + std::string(cuda_type(c.dtype)) + ", " +
                    std::to_string(writer.width) + "> vec;");
        }
        if (packed && raw.empty()) out_.line("float pair[2];");
      },
      [&] {
        scope.values.clear();
        std::string text;
        if (!raw.empty()) {
          text = raw + "[0][v]";
          if (masked) text = present + " ? " + text + " : sd::from_float<" + type + ">(0.0f)";
          out_.line(array.element(slots.index_in(p.layout)) + " = " + text + ";");
          return;
        }
        text = value(scope, c.value, "").text;
        if (masked) text = present + " ? " + text + " : 0.0f";
        if (packed) {
          out_.line("pair[v] = " + text + ";");
        } else if (p.in_registers) {
          if (array.dtype != DType::kF32) text = "sd::from_float<" + type + ">(" + text + ")";
          out_.line(array.element(slots.index_in(p.layout)) + " = " + text + ";");
        } else {
          write_element(id, slots, writer, text);
        }
      },
      [&] {
        if (packed && raw.empty()) {
          Linear index = slots.index_in(p.layout);
          std::erase_if(index.items, [](const auto& item) { return item.first == "v"; });
          std::string group = array.element(index);
          group.resize(group.rfind('['));
          out_.line(group + " = sd::pack_vec<" + type + ">(pair[0], pair[1]);");
        }
        if (writer.width > 1) flush_vector(id, slots, writer);
      });
  if (!writer.test.empty()) out_.close();
  out_.close();
  if (!p.in_registers) {
    fill_padding(id);
    hazards_.write(region(*p.shared));
  } else if (p.shared) {
    write_tile(id, p.layout);
  }
}

DType KernelEmitter::input_dtype(TermId term) const {
  const auto* input = std::get_if<InputTerm>(&kernel_.terms[term]);
  return graph_.tensors[input->tensor].decl.dtype;
}

}  // namespace sundog::codegen
