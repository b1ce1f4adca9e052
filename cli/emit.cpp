#include "cli/commands.h"
#include "cli/kernel_run.h"
#include "cli/load.h"
#include "cli/result_folder.h"
#include "core/text.h"

namespace sundog::cli {
namespace {

struct Emittable {
  Program program;
  MuGraph graph;
  Rounding rounding;
  std::string target;  // of a stored result
};

Result<Emittable> load(const Invocation& invocation) {
  const std::string& path = invocation.operands[0];
  const Result<Loadable> kind = kind_of_path(path, invocation);
  if (!kind.ok()) return kind.error();
  switch (*kind) {
    case Loadable::kProgram:
      return bad_input(path + " is a program, which says nothing about kernels",
                       "sundog optimize finds a µGraph for it");
    case Loadable::kMuGraph: {
      Result<Candidate> candidate = load_mugraph(path, invocation);
      if (!candidate.ok()) return candidate.error();
      return Emittable{std::move(candidate->program),
                       std::move(candidate->graph),
                       rounding_of(invocation, candidate->rounding),
                       {}};
    }
    case Loadable::kResult: {
      Result<StoredResult> result = load_result_as_made(path, invocation);
      if (!result.ok()) return result.error();
      return Emittable{std::move(result->program),
                       std::move(result->report.candidates.front().graph),
                       rounding_of(invocation, result->rounding), result->target};
    }
  }
  return bad_input(path + " cannot be emitted");
}

}  // namespace

int emit(const Invocation& invocation) {
  const Result<Emittable> source = load(invocation);
  if (!source.ok()) return fail(source.error());
  const std::string target = invocation.text("target");
  std::optional<codegen::GpuInfo> gpu;
  if (target.empty() && source->target.empty()) {
    if (Result<codegen::GpuInfo> info = codegen::probe_gpu(0); info.ok()) gpu = std::move(*info);
  }
  const Result<Device> device = choose_device(target.empty() ? source->target : target, gpu);
  if (!device.ok()) return fail(device.error());
  codegen::GenerateOptions options;
  options.name = identifier(source->graph.name);
  options.rounding = source->rounding;
  options.header_comment = print(source->program) + "\n" + print(source->graph, source->program);
  const Result<codegen::Generated> generated =
      codegen::generate(source->graph, source->program, *device, options);
  if (!generated.ok()) return fail(generated.error());
  const std::string output = invocation.text("output");
  const Status status = write_file(output.empty() ? "-" : output, generated->cuda);
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace sundog::cli
