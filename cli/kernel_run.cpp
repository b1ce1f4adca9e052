#include "cli/kernel_run.h"

#include <cctype>

#include "core/resize.h"

namespace sundog::cli {

Result<Device> choose_device(const std::string& target,
                             const std::optional<codegen::GpuInfo>& gpu) {
  if (!target.empty()) return find_device(target);
  if (gpu) {
    // A GPU without a row is no reason to refuse: the default target still compiles.
    Result<Device> device = find_device_of_driver(gpu->name, gpu->major, gpu->minor);
    if (device.ok()) return device;
  }
  return find_device("h200");
}

std::string sizes_text(const Program& program) {
  std::string text;
  for (const Axis& axis : program.axes) {
    text += (text.empty() ? "" : " ") + axis.name + "=" + std::to_string(axis.extent);
  }
  return text;
}

std::string identifier(const std::string& name) {
  std::string result;
  for (const char c : name) {
    result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) != 0) {
    result.insert(0, "k_");
  }
  return result;
}

std::string EmulatorOutcome::failure() const {
  if (!run.passed()) return run.failure();
  return residues && !residues->failure.empty() ? codegen::to_string(*residues) : "";
}

std::string EmulatorOutcome::text() const {
  std::string text = "passed in the emulator at " + sizes;
  if (run.race_checked) text += ", races checked";
  return text + "; " + (residues ? codegen::to_string(*residues) : residues_not_run);
}

Result<EmulatorOutcome> run_in_emulator(const Program& program, const MuGraph& graph,
                                        const Device& device, const codegen::Generated& generated,
                                        const EmulatorRequest& request) {
  EmulatorOutcome outcome;
  Program small_program = program;
  MuGraph small_graph = graph;
  codegen::Generated small = generated;
  double tolerance = codegen::kernel_tolerance(program, graph);
  std::string literals;
  if (!request.full && codegen::program_work(program) > kEmulatorWork) {
    Result<Shrunk> shrunk = shrink(graph, program, ShrinkPolicy::kKeepTiles);
    // Literals that keep axes at thousands move with them, rather than take minutes.
    if (!shrunk.ok() || codegen::program_work(shrunk->program) > kEmulatorWork) {
      Result<Shrunk> moved =
          shrink(graph, program, ShrinkPolicy::kKeepTiles, LiteralPolicy::kScale);
      if (moved.ok() && check(moved->graph, moved->program).ok()) shrunk = std::move(moved);
    }
    if (!shrunk.ok()) return shrunk.error();
    codegen::GenerateOptions options;
    options.name = generated.plan.name;
    options.rounding = request.rounding;
    Result<codegen::Generated> emitted =
        codegen::generate(shrunk->graph, shrunk->program, device, options);
    if (!emitted.ok()) return emitted.error();
    tolerance = codegen::kernel_tolerance(shrunk->program, shrunk->graph);
    literals = shrunk->literals.text();
    small_program = std::move(shrunk->program);
    small_graph = std::move(shrunk->graph);
    small = std::move(*emitted);
    outcome.reduced = true;
  }
  outcome.sizes = sizes_text(small_program);
  if (!literals.empty()) outcome.sizes += " (" + literals + ")";
  Result<codegen::CheckData> data =
      codegen::make_check_data(small_program, request.rounding, kReferenceWork, request.seed);
  if (!data.ok()) return data.error();
  codegen::EmulatorOptions options;
  options.time_limit_s = request.time_limit_s;
  options.seed = request.seed;
  // At sizes that take long anyway only what the numbers show is looked for.
  options.race_check = codegen::program_work(small_program) <= 10 * kEmulatorWork;
  options.schedules = options.race_check ? 3 : 1;
  Result<codegen::EmulatedRun> run =
      codegen::run_on_emulator(small_program, small.plan, small.cuda, *data, tolerance, options);
  if (!run.ok()) return run.error();
  outcome.run = std::move(*run);
  outcome.residues_not_run = "residues not compared";
  if (!outcome.run.passed()) return outcome;
  if (!options.race_check) {
    outcome.residues_not_run += " at a size as large as this";
    return outcome;
  }
  Result<codegen::ResidueCheck> residues =
      codegen::check_residues(small_program, small_graph, small.plan, small.cuda, options);
  if (residues.ok()) {
    outcome.residues = std::move(*residues);
  } else if (residues.error().code == ErrorCode::kFailed) {
    return residues.error();
  } else {
    outcome.residues_not_run += ": " + residues.error().message;
  }
  return outcome;
}

}  // namespace sundog::cli
