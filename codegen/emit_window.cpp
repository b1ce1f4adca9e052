// Loads of rows that begin anywhere: at 2-byte addresses where a row of 16-bit values has an odd
// length, which no copy engine and no wide load takes.
//
// A thread fetches the words of 16 bytes that its run of neighbours lies in, two where it crosses
// from one into the next, and shifts the run out of them later.  The second word is the first of
// the neighbouring lane, and comes from L1.  In between the words are registers under way, as many
// as a pipeline of one stage would have bytes: the words of the next iteration are fetched as soon
// as those of this one lie in shared memory, the first ones when the kernel starts.  On an H200
// (2026-11-30) norm_gated_up with rows of 4095 went from 43.3 to 25.2 us so.
//
// Rows that a thread keeps in registers are loaded element by element all the same: in windows, and
// stored through shared memory since no lane's run is aligned, softmax of rows of 4095 took 22.5 us
// instead of 21.5, and gated_rms_norm of 321 4.3 instead of 4.2.  Not tried: raw words in shared
// memory by cp.async, moved there a second time when they have come.
#include <algorithm>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {

// The windows of a thread: one for each run, `window` elements of its vector.
std::string KernelEmitter::window_of(uint32_t id, const Slots& slots, int64_t part) const {
  const int64_t parts = slots.vector() / plan(id).window;
  Linear index = slots.index_in(plan(id).iteration);
  std::erase_if(index.items, [](const auto& item) { return item.first == "v"; });
  Linear window = Linear::of_constant(index.constant / plan(id).window + part);
  for (const auto& [item, coefficient] : index.items) {
    window.add(item, coefficient / slots.vector() * parts);
  }
  return names_[id] + "_window[" + window.text() + "]";
}

void KernelEmitter::declare_windows(uint32_t id) {
  const auto& input = std::get<InputTerm>(kernel_.terms[computation(id).value]);
  out_.line("sd::Window<" + std::string(cuda_type(graph_.tensors[input.tensor].decl.dtype)) + ", " +
            std::to_string(plan(id).window) + "> " + names_[id] + "_window[" +
            std::to_string(sundog::slots(plan(id).iteration) / plan(id).window) + "];");
}

// Of the iteration that the loop variables say.
void KernelEmitter::fetch_windows(uint32_t id) {
  const auto& input = std::get<InputTerm>(kernel_.terms[computation(id).value]);
  const TensorDecl& decl = graph_.tensors[input.tensor].decl;
  const std::vector<Bound> bounds = read_bounds(id, input);
  out_.open("");
  const Slots slots(out_, kernel_, plan(id).iteration);
  slots.for_each_run(out_, [&] {
    for (int first = 0; first < slots.vector(); first += plan(id).window) {
      const Coordinates at = run_start(slots, first);
      guarded_load(window_of(id, slots, first / plan(id).window),
                   "sd::load_window(" + window_of(id, slots, first / plan(id).window) + ", " +
                       tensors_[input.tensor] + ", " +
                       element_index(input.tensor, input.index, at) + ", " +
                       std::to_string(span_elements(decl)) + ");",
                   run_tests(slots, computation(id).value, at, bounds));
    }
  });
  out_.close();
}

// The runs of the current vector, shifted out of their windows: vectors for the loop over it.
void KernelEmitter::take_windows(Scope& scope, TermId term, const InputTerm& input) {
  const uint32_t id = scope.computation;
  const Slots& slots = *scope.slots;
  const int width = plan(id).window, count = slots.vector() / width;
  const std::string name = out_.fresh("in_");
  const DType dtype = graph_.tensors[input.tensor].decl.dtype;
  out_.line("sd::Vec<" + std::string(cuda_type(dtype)) + ", " + std::to_string(width) + "> " +
            name + "[" + std::to_string(count) + "];");
  for (int i = 0; i < count; ++i) {
    out_.line("sd::align_window(" + name + "[" + std::to_string(i) + "], " +
              window_of(id, slots, i) + ", " +
              element_index(input.tensor, input.index, run_start(slots, i * width)) + ");");
  }
  scope.vectors[{term, scope.branches}] = {name, width};
}

// The windows of the first iteration of each loop, before anything else.
void KernelEmitter::start_first_windows() {
  for (const Statement& statement : kernel_.body) {
    const auto* loop = std::get_if<Loop>(&statement.node);
    if (loop == nullptr) continue;
    std::vector<uint32_t> ids;
    for (const Statement& inside : loop->body) {
      const auto* c = std::get_if<Compute>(&inside.node);
      if (c != nullptr && plan(c->computation).ahead) ids.push_back(c->computation);
    }
    if (ids.empty()) continue;
    for (uint32_t id : ids) declare_windows(id);
    out_.open("");
    std::string begin, end;
    loop_range(*loop, begin, end);
    const bool asked = !never_empty(*loop);
    if (asked) out_.open("if (" + begin + " < " + end + ")");
    out_.line("const int " + factors_[loop->factor] + " = " + begin + ";");
    for (uint32_t id : ids) fetch_windows(id);
    if (asked) out_.close();
    out_.close();
  }
}

// Those of the next iteration, in place of the ones that were just taken.
void KernelEmitter::fetch_next_windows(uint32_t id) {
  const Loop& loop = *open_.back();
  const std::string& index = factors_[loop.factor];
  out_.open("if (" + index + " + 1 < " + loop_end_.at(loop.factor) + ")");
  const std::string next = out_.fresh(index + "_");
  out_.line("const int " + next + " = " + index + " + 1;");
  out_.open("");
  out_.line("const int " + index + " = " + next + ";");
  fetch_windows(id);
  out_.close();
  out_.close();
}

}  // namespace sundog::codegen
