// What a reader wants to know of a schedule first: how many kernels, what is on the grid, what
// loops, what accumulates in the loop and what is left for after it.
#include "search/describe.h"

#include <vector>

#include "core/join.h"
#include "core/via.h"

namespace sundog::search {
namespace {

std::string names(const Kernel& kernel, const std::vector<AxisId>& factors) {
  std::vector<std::string> out;
  for (AxisId f : factors) out.push_back(kernel.factors[f].name);
  return join(out, ", ");
}

void describe_body(const Kernel& kernel, const std::vector<Statement>& body, bool after_loop,
                   std::vector<std::string>& parts) {
  std::vector<std::string> flat;
  bool seen_loop = after_loop;
  const auto flush = [&] {
    if (!flat.empty() && seen_loop)
      parts.push_back(join(flat, ", ") + " after the loop");
    else if (!flat.empty())
      parts.push_back("computes " + join(flat, ", "));
    flat.clear();
  };
  for (const Statement& s : body) {
    if (const auto* compute = std::get_if<Compute>(&s.node)) {
      const Computation& c = kernel.computations[compute->computation];
      if (!std::holds_alternative<InputTerm>(kernel.terms[c.value])) flat.push_back(c.name);
      continue;
    }
    const auto* loop = std::get_if<Loop>(&s.node);
    if (loop == nullptr) continue;
    flush();
    std::vector<std::string> accumulators, rescaled;
    for (uint32_t i = 0; i < kernel.computations.size(); ++i) {
      if (!accumulated_loops(kernel, i).has(loop->factor)) continue;
      const Computation& c = kernel.computations[i];
      // The same factor may loop twice: only what stands in this loop.
      for (const Statement& inner : loop->body) {
        const auto* in = std::get_if<Compute>(&inner.node);
        if (in == nullptr || in->computation != i) continue;
        (c.rescale != kNone ? rescaled : accumulators).push_back(c.name);
      }
    }
    std::string text = "loop(" + kernel.factors[loop->factor].name + ")";
    if (!accumulators.empty()) {
      text += " " + join(accumulators, " and ") +
              (accumulators.size() > 1 ? " accumulate together" : " accumulates");
    }
    if (!rescaled.empty())
      text += (accumulators.empty() ? " " : ", ") + join(rescaled, " and ") + " rescaled";
    std::vector<std::string> inside;
    for (const Statement& inner : loop->body) {
      if (std::holds_alternative<Loop>(inner.node)) describe_body(kernel, {inner}, true, inside);
    }
    if (!inside.empty()) text += " around " + join(inside, ", ");
    parts.push_back(text);
    seen_loop = true;
  }
  flush();
}

}  // namespace

std::string describe(const MuGraph& graph) {
  const int launches = launch_count(graph);
  std::string out = std::to_string(launches) + (launches == 1 ? " kernel" : " kernels");
  for (const Kernel& k : graph.kernels) {
    std::vector<std::string> parts;
    describe_body(k, k.body, false, parts);
    out += &k == &graph.kernels.front() ? ", " : "; ";
    if (k.kind == KernelKind::kLibraryGemm) {
      out += "library gemm: computes " + k.computations[0].name;
      continue;
    }
    if (k.via == Via::kLastBlock) out += "the last block of ";
    if (k.via == Via::kCluster) out += "the blocks of a cluster, ";
    out += "grid(" + names(k, k.grid) + ")";
    if (!parts.empty()) out += ": " + join(parts, ", ");
  }
  return out;
}

}  // namespace sundog::search
