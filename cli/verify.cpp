#include <cstdio>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/evidence.h"
#include "cli/json.h"
#include "cli/kernel_run.h"
#include "cli/load.h"
#include "cli/schedule_check.h"
#include "verify/interface.h"
#include "verify/small_sizes.h"
#include "verify/verdict.h"

namespace sundog::cli {
namespace {

// The exit code that belongs to an answer.
int code_of(verify::Verdict::Answer answer) {
  switch (answer) {
    case verify::Verdict::kEquivalent:
      return 0;
    case verify::Verdict::kDifferent:
      return 1;
    case verify::Verdict::kUnknown:
      return 3;
  }
  return 3;
}

// A µGraph's verdict; with --prove also what is shown about the kernels that it becomes.
Result<verify::Verdict> judge_mugraph(const Invocation& invocation, const Program& program,
                                      const MuGraph& graph, const verify::VerifyOptions& options) {
  verify::Verdict verdict = verify::verify(program, graph, options);
  if (!options.prove || verdict.answer == verify::Verdict::kDifferent) return verdict;
  const Result<Device> device = choose_device(invocation.text("target"), {});
  if (!device.ok()) return device.error();
  codegen::GenerateOptions generation;
  generation.rounding = options.rounding;
  const Result<codegen::Generated> generated =
      codegen::generate(graph, program, *device, generation);
  verdict.proof += kOfEmittedKernels;
  verdict.proof += generated.ok()
                       ? verify::to_string(check_schedule(graph, *generated, options.prove_s))
                       : generated.error().message;
  return verdict;
}

Result<verify::Verdict> judge(const Invocation& invocation, verify::VerifyOptions options) {
  const std::string& path = invocation.operands[1];
  const Result<Loadable> kind = kind_of_path(path, invocation);
  // Of two bad files the program is named first.
  const Result<Program> program =
      kind.ok() && *kind == Loadable::kMuGraph
          ? load_program(invocation.operands[0], with_reference(path, invocation))
          : load_program(invocation.operands[0], invocation);
  if (!program.ok()) return program.error();
  if (!kind.ok()) return kind.error();
  if (*kind == Loadable::kProgram) {
    options.rounding = rounding_of(invocation);
    const Result<Program> candidate = load_program(path, invocation);
    if (!candidate.ok()) return candidate.error();
    SUNDOG_RETURN_IF_ERROR(verify::check_shapes(*program, *candidate));
    return verify::verify(*program, *candidate, options);
  }
  // A result is judged by its text, which may have been edited.
  const bool stored = *kind == Loadable::kResult && path.ends_with(".pb");
  if (stored) {
    const Result<StoredResult> result = load_result(path, invocation);
    if (!result.ok()) return result.error();
    SUNDOG_RETURN_IF_ERROR(verify::check_shapes(*program, result->program));
    options.rounding = rounding_of(invocation, result->rounding);
    return judge_mugraph(invocation, *program, result->report.candidates.front().graph, options);
  }
  const Result<LoadedGraph> loaded = load_mugraph_of(path, *program, invocation);
  if (!loaded.ok()) return loaded.error();
  options.rounding = rounding_of(invocation, loaded->rounding);
  return judge_mugraph(invocation, *program, loaded->graph, options);
}

std::string json_of(const Invocation& invocation, const verify::Verdict& verdict) {
  JsonWriter json;
  json.begin_object();
  json.key("program").value(invocation.operands[0]);
  json.key("candidate").value(invocation.operands[1]);
  json.key("answer").value(verify::name(verdict.answer));
  json.key("reason").value(verdict.reason);
  json.key("verdict");
  write_evidence(json, evidence_of(verdict));
  json.key("witness");
  if (verdict.witness) {
    const verify::Witness& witness = *verdict.witness;
    json.begin_object().key("output").value(witness.output).key("element").begin_array();
    for (const int64_t index : witness.element) json.value(index);
    json.end_array().key("expected").value(witness.expected).key("actual").value(witness.actual);
    json.key("seed").value(std::to_string(witness.seed));
    json.key("sizes").value(witness.sizes).key("inputs").value(witness.inputs);
    json.key("precision").value(witness.precision).key("fault").value(witness.fault).end_object();
  } else {
    json.null();
  }
  json.end_object();
  return json.text() + "\n";
}

std::string text_of(const verify::Verdict& verdict) {
  const Evidence evidence = evidence_of(verdict);
  std::string text = evidence.answer + ": " + verdict.reason + "\n";
  if (verdict.witness) text += "  witness   " + verify::to_string(*verdict.witness) + "\n";
  text += "  evidence  " + evidence_line(evidence) + "\n";
  for (const Evidence::Case& each : evidence.numerics) {
    char line[200];
    std::snprintf(line, sizeof line,
                  "  numerics  %-15s error %.2e (plain program %.2e, bound %.2e), other bits than "
                  "the plain program's in %lld of %lld elements%s\n",
                  each.name.c_str(), each.candidate_error, each.program_error, each.error_bound,
                  static_cast<long long>(each.differing), static_cast<long long>(each.compared),
                  each.accepted ? "" : "  REJECTED");
    text += line;
  }
  return text;
}

}  // namespace

int verify(const Invocation& invocation) {
  const size_t wanted = invocation.flag("evidence") ? 1 : 2;
  if (invocation.operands.size() != wanted) {
    return fail(
        bad_input("sundog verify takes PROGRAM CANDIDATE, or --evidence and the folder of a "
                  "result",
                  "sundog help verify"));
  }
  if (invocation.flag("evidence")) return verify_evidence(invocation);
  verify::VerifyOptions options;
  options.error_log2 = invocation.error_log2("error");
  options.seed = static_cast<uint64_t>(invocation.integer("seed"));
  options.time_limit_s = invocation.seconds("verify-time");
  options.prove = invocation.flag("prove");
  options.prove_s = invocation.seconds("prove-time");
  const Result<verify::Verdict> verdict = judge(invocation, options);
  if (!verdict.ok()) return fail(verdict.error());
  const Status status =
      write_output(invocation.flag("json") ? json_of(invocation, *verdict) : text_of(*verdict));
  return status.ok() ? code_of(verdict->answer) : fail(status.error());
}

}  // namespace sundog::cli
