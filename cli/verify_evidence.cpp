// NOLINT(sundog-mirror): tested through the tool, tests/cli/optimize_test.cpp
//
// `sundog verify --evidence DIR`: whether a stored result still is what it says.  Everything is
// made again from the stored program, µGraph and seeds: the verdict with its primes and its bound,
// the text of the kernels, what they compute in the emulator.  Nothing that the result claims is
// used but to be compared.
#include <cmath>
#include <cstdio>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/evidence.h"
#include "cli/files.h"
#include "cli/json.h"
#include "cli/kernel_run.h"
#include "cli/load.h"
#include "cli/pipeline.h"
#include "cli/proof_claim.h"
#include "cli/result_folder.h"
#include "cli/schedule_check.h"
#include "core/text.h"
#include "verify/verdict.h"

namespace sundog::cli {
namespace {

struct Check {
  std::string what, failure;  // failure: empty if it holds
};

struct Stored {
  StoredResult result;
  std::string folder;
  const StoredCandidate& best() const { return result.report.candidates.front(); }
};

// The files beside result.pb are copies of what it holds.
Result<std::vector<Check>> check_files(const Stored& stored, const Invocation& invocation) {
  std::vector<Check> checks;
  const auto text_of = [&](std::string_view name) {
    return read_file(stored.folder + "/" + std::string(name), invocation.bytes("input-bytes"));
  };
  const Result<std::string> cuda = text_of(kKernelFile);
  if (!cuda.ok()) return cuda.error();
  checks.push_back({std::string(kKernelFile),
                    *cuda == stored.result.cuda ? "" : "it is not the text that was stored"});
  const Result<Program> program =
      load_program(stored.folder + "/" + std::string(kProgramFile), invocation);
  if (!program.ok()) return program.error();
  const bool same = print(*program) == print(stored.result.program);
  checks.push_back({std::string(kProgramFile), same ? "" : "it is not the program of the result"});
  const Result<LoadedGraph> loaded = load_mugraph_of(
      stored.folder + "/" + std::string(kMuGraphFile), stored.result.program, invocation);
  if (!loaded.ok()) return loaded.error();
  const bool equal = print(loaded->graph, stored.result.program) ==
                     print(stored.best().graph, stored.result.program);
  checks.push_back({std::string(kMuGraphFile), equal ? "" : "it is not the µGraph of the result"});
  return checks;
}

Check check_text(const Stored& stored, const Device& device) {
  Check check{"text of the kernels", ""};
  codegen::GenerateOptions options;
  options.name = identifier(stored.result.program.name);
  options.header_comment = header_text(stored.result.program, stored.best(), device);
  options.rounding = stored.result.rounding;
  const Result<codegen::Generated> made =
      codegen::generate(stored.best().graph, stored.result.program, device, options);
  if (!made.ok()) {
    check.failure = made.error().message;
  } else if (made->cuda != stored.result.cuda) {
    check.failure =
        "the µGraph gives another text now: it was edited, or comes from another version";
  } else if (!(made->plan == stored.result.plan)) {
    check.failure = "the µGraph gives another launch plan now";
  }
  return check;
}

// The verdict of the same seeds, and its proof if one was looked for.
std::vector<Check> check_verdict(const Stored& stored, const Invocation& invocation) {
  const Evidence& claimed = stored.best().evidence;
  verify::VerifyOptions options;
  options.seed = claimed.seed;
  options.error_log2 = claimed.asked_error_log2;
  options.time_limit_s = invocation.seconds("verify-time");
  options.rounding = stored.result.rounding;
  const std::string proof = split_proof(claimed.proof).mugraph;
  options.prove = proof != verify::kNotAttempted;
  options.prove_s = invocation.seconds("prove-time");
  options.exact_at_declared_sizes = false;  // as it was offered
  const Evidence now =
      evidence_of(verify::verify(stored.result.program, stored.best().graph, options));
  std::vector<Check> checks;
  const bool same = now.answer == "equivalent" && now.reason == claimed.reason;
  checks.push_back({"verdict", same ? "" : "it is " + now.answer + " now: " + now.reason});
  const bool replayed = now.primes == claimed.primes && now.seeds == claimed.seeds &&
                        now.sizes == claimed.sizes && now.rounds == claimed.rounds;
  checks.push_back({"primes, seeds and sizes of " + std::to_string(now.rounds) + " rounds",
                    replayed ? "" : "the seed of the result gives others"});
  const bool bounded = now.error_log2 <= claimed.asked_error_log2 &&
                       std::fabs(now.error_log2 - claimed.error_log2) < 1e-6;
  char bound[64];
  std::snprintf(bound, sizeof bound, "error below 2^%.2f", now.error_log2);
  checks.push_back({bound, bounded ? "" : "the result claims another bound"});
  if (options.prove) {
    Finding finding = compare_proofs(proof, now.proof);
    checks.push_back({std::move(finding.text), std::move(finding.failure)});
  }
  return checks;
}

// Bounds and races of the kernels.  require: the text that is stored follows from the µGraph.
Check check_safety(const Stored& stored, const std::string& claimed, double seconds) {
  const codegen::Generated emitted{stored.result.cuda, stored.result.plan, {}};
  Finding finding = compare_safety(
      claimed, verify::to_string(check_schedule(stored.best().graph, emitted, seconds)));
  return {"emitted kernels: " + finding.text, std::move(finding.failure)};
}

Check check_kernel(const Stored& stored, const Device& device) {
  Check check{"kernels in the emulator", ""};
  codegen::Generated generated;
  generated.plan = stored.result.plan;
  generated.cuda = stored.result.cuda;
  EmulatorRequest request;
  request.rounding = stored.result.rounding;
  request.seed = stored.best().evidence.seed + 1;  // inputs that they have not seen
  const Result<EmulatorOutcome> outcome =
      run_in_emulator(stored.result.program, stored.best().graph, device, generated, request);
  if (!outcome.ok()) {
    check.failure = outcome.error().message;
  } else if (!outcome->passed()) {
    check.failure = outcome->failure();
  } else {
    check.what += ": " + outcome->text();
  }
  return check;
}

Result<std::vector<Check>> check_all(const std::string& folder, const Invocation& invocation) {
  if (!is_folder(folder)) return bad_input(folder + " is no folder of a result");
  Result<StoredResult> result = load_result(folder, invocation);
  if (!result.ok()) return result.error();
  const Stored stored{std::move(*result), folder};
  if (stored.best().evidence.answer != "equivalent") {
    return bad_input(folder + " holds no evidence", "sundog optimize stores it with its result");
  }
  const Result<Device> device = find_device(stored.result.target);
  if (!device.ok()) return device.error();
  Result<std::vector<Check>> checks = check_files(stored, invocation);
  if (!checks.ok()) return checks.error();
  checks->push_back(check_text(stored, *device));
  const bool text_holds = checks->back().failure.empty();
  for (Check& check : check_verdict(stored, invocation)) checks->push_back(std::move(check));
  const std::string kernels = split_proof(stored.best().evidence.proof).kernels;
  if (text_holds && !kernels.empty()) {
    checks->push_back(check_safety(stored, kernels, invocation.seconds("prove-time")));
  }
  checks->push_back(check_kernel(stored, *device));
  return checks;
}

}  // namespace

int verify_evidence(const Invocation& invocation) {
  const Result<std::vector<Check>> checks = check_all(invocation.operands[0], invocation);
  if (!checks.ok()) return fail(checks.error());
  bool passed = true;
  std::string text;
  JsonWriter json;
  json.begin_object().key("checks").begin_array();
  for (const Check& check : *checks) {
    passed &= check.failure.empty();
    text += (check.failure.empty() ? "holds   " : "FAILS   ") + check.what +
            (check.failure.empty() ? "" : ": " + check.failure) + "\n";
    json.begin_object().key("what").value(check.what);
    json.key("holds").value(check.failure.empty());
    json.key("failure").value(check.failure).end_object();
  }
  json.end_array().key("holds").value(passed).end_object();
  const Status status = write_output(invocation.flag("json") ? json.text() + "\n" : text);
  if (!status.ok()) return fail(status.error());
  return passed ? 0 : 1;
}

}  // namespace sundog::cli
