#include <cstdio>

#include "cli/evidence.h"
#include "cli/kernel_run.h"
#include "core/text.h"
#include "python/abi/handles.h"

namespace sundog::abi {
namespace {

std::string kernel_line(const codegen::PlanKernel& kernel) {
  if (kernel.gemm) {
    const LibraryGemm& gemm = *kernel.gemm;
    return "  " + kernel.name + ": a library's product, " + std::to_string(gemm.batch) + " of " +
           std::to_string(gemm.m) + " x " + std::to_string(gemm.k) + " by " +
           std::to_string(gemm.k) + " x " + std::to_string(gemm.n) + "\n";
  }
  std::string text = "  " + kernel.name + ": " + std::to_string(kernel.grid[0]);
  for (size_t d = 1; d < 3; ++d) {
    if (kernel.grid[d] > 1) text += " x " + std::to_string(kernel.grid[d]);
  }
  return text + " blocks of " + std::to_string(kernel.block) + " threads, " +
         std::to_string(kernel.shared_bytes) + " bytes of shared memory\n";
}

std::string times(const cli::StoredCandidate& candidate) {
  std::string text = "predicted " + cli::microseconds(candidate.predicted_us);
  if (candidate.measured_us) text += ", measured " + cli::microseconds(*candidate.measured_us);
  return text;
}

}  // namespace

std::string explanation(const cli::StoredResult& result) {
  const cli::StoredReport& report = result.report;
  const cli::StoredCandidate& best = report.candidates.front();
  std::string text = result.program.name + " at " + cli::sizes_text(result.program) + ", for " +
                     result.target + "\n\n";
  text += "chosen: " + best.structure + "\n";
  for (const codegen::PlanKernel& kernel : result.plan.kernels) text += kernel_line(kernel);
  if (result.plan.workspace_bytes > 0) {
    text += "  workspace between the kernels: " + std::to_string(result.plan.workspace_bytes) +
            " bytes\n";
  }
  text += "\nworth: " + times(best) + "\n";
  if (report.unfused) text += "  unfused: " + times(*report.unfused) + "\n";
  if (report.bound_us > 0) {
    char line[96];
    std::snprintf(line, sizeof line, "  no program can be predicted below %.2f us: gap %.0f %%\n",
                  report.bound_us, 100 * report.gap);
    text += line;
  }
  text += "  " + (result.timing.empty() ? std::string("not timed") : result.timing) + "\n";
  text += "\nright because: " + cli::evidence_line(best.evidence) + "\n";
  for (const cli::Evidence::Case& each : best.evidence.numerics) {
    char line[160];
    std::snprintf(line, sizeof line, "  on %s inputs: error %.1e, of the plain program %.1e\n",
                  each.name.c_str(), each.candidate_error, each.program_error);
    text += line;
  }
  text += "  kernel check: " + best.evidence.kernel_check + "\n";
  if (result.rounding == Rounding::kEager)
    text += "  narrowing casts are kept where they are written\n";
  text += "\nsearch: " + std::to_string(report.states) + " states, " + report.stop_reason + "\n";
  for (size_t i = 1; i < report.candidates.size(); ++i) {
    text += "  also: " + report.candidates[i].structure + ", " + times(report.candidates[i]) + "\n";
  }
  for (const std::string& note : result.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace sundog::abi
