// Prediction guesses the registers of a kernel.  Where it guesses too few, the compiler keeps the
// rest in memory (spills), or fewer blocks run side by side: neither can be seen in a µGraph, and
// both can without a GPU.  Compiling takes longer than predicting by orders of magnitude, so only
// rows that come to stand first are compiled.
#include "cli/compile_rows.h"

#include <algorithm>

#include "codegen/compile.h"
#include "codegen/emit_kernel.h"
#include "search/machine.h"
#include "search/sizes.h"

namespace sundog::cli {
namespace {

constexpr int kMostCompiled = 8;

// What the compiler says of each kernel of the µGraph: a launch is one entry function, whatever
// kernels its last blocks run.
std::vector<search::Known> known_of(const Row& row) {
  std::vector<search::Known> known(row.candidate.graph.kernels.size());
  const std::vector<codegen::Launch> launches = codegen::launches_of(row.candidate.graph);
  for (size_t i = 0; i < launches.size() && i < row.generated->plan.kernels.size(); ++i) {
    const std::string& name = row.generated->plan.kernels[i].name;
    const auto found =
        std::find_if(row.resources.begin(), row.resources.end(),
                     [&](const codegen::KernelResources& r) { return r.name == name; });
    if (found == row.resources.end()) continue;
    const auto spilled = static_cast<double>(found->spill_store_bytes + found->spill_load_bytes);
    known[launches[i].kernel] = {0, found->registers, spilled};
  }
  return known;
}

}  // namespace

bool passes_compiler(Row& row, PipelineResult& result, const Device& device,
                     const PipelineOptions& options) {
  if (!row.compiler.empty() || row.not_compiled || options.stopped()) return true;
  if (options.progress) options.progress("compiling " + row.candidate.structure);
  codegen::CompileOptions compile;
  compile.limits.seconds = options.compile_s;
  compile.limits.stop = options.stop;
  Result<codegen::CompiledModule> module =
      codegen::compile(row.generated->cuda, device.arch, compile);
  if (module.ok()) {
    row.compiler = module->compiler;
    row.resources = std::move(module->kernels);
    return true;
  }
  if (module.error().code == ErrorCode::kFailed && !options.stopped()) {
    row.dropped = "compiler: " + module.error().message;
    return false;
  }
  row.not_compiled = true;
  result.notes.push_back("not compiled: " + module.error().message);
  return true;
}

void rank_by_compiler(std::vector<Row>& rows, const Device& device,
                      const std::function<void(Row&)>& compile) {
  const search::Machine machine = search::machine_of(device);
  for (int compiled = 0; compiled < kMostCompiled; ++compiled) {
    const auto first =
        std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.dropped.empty(); });
    if (first == rows.end() || !first->compiler.empty()) return;
    compile(*first);
    if (!first->dropped.empty()) continue;
    if (first->compiler.empty()) return;
    const double us = search::predict(first->candidate.graph, machine, known_of(*first));
    first->candidate.predicted_us = us;
    const auto after = std::find_if(first + 1, rows.end(), [&](const Row& row) {
      return row.dropped.empty() && row.candidate.predicted_us >= us;
    });
    std::rotate(first, first + 1, after);
  }
}

}  // namespace sundog::cli
