#include "tests/codegen/generate_cases.h"

#include <gtest/gtest.h>

#include <functional>

#include "codegen/generate.h"
#include "codegen/kernel_check.h"
#include "codegen/launch_emulator.h"
#include "codegen/residue_check.h"
#include "core/device.h"
#include "core/join.h"
#include "core/text.h"

namespace sundog::codegen {
namespace {

using Change = std::function<void(std::string&)>;  // of the emitted text

Status run(const GenerateCase& c, const Change& change, bool exact, GenerateOutcome& outcome) {
  const Result<Program> program = parse_program(c.program, c.name + ".sd", {});
  if (!program.ok()) return program.error();
  const Result<MuGraph> graph = parse_mugraph(c.graph, c.name + ".mu", *program);
  if (!graph.ok()) return graph.error();
  SUNDOG_RETURN_IF_ERROR(check(*graph, *program));
  const Result<Device> device = find_device("h200");
  if (!device.ok()) return device.error();
  Result<Generated> generated = generate(*graph, *program, *device, {});
  if (!generated.ok()) return generated.error();
  if (change) change(generated->cuda);
  outcome.cuda = generated->cuda;
  const Result<CheckData> data = make_check_data(*program, Rounding::kWide, 1e9, 11);
  if (!data.ok()) return data.error();
  const Result<EmulatedRun> ran = run_on_emulator(*program, generated->plan, generated->cuda, *data,
                                                  kernel_tolerance(*program, *graph), {});
  if (!ran.ok()) return ran.error();
  outcome.max_rel_error = ran->check.max_rel_error;
  outcome.passed = ran->passed();
  outcome.failure = ran->failure();
  outcome.problems = join(ran->problems, "\n");
  double turns = 0, conflicts = 0;
  for (const BankUse& use : ran->banks) {
    turns += static_cast<double>(use.turns);
    conflicts += static_cast<double>(use.conflicts);
  }
  outcome.conflicts = turns > 0 ? conflicts / turns : 0;
  if (!exact) return {};
  const Result<ResidueCheck> residues =
      check_residues(*program, *graph, generated->plan, generated->cuda, {});
  if (!residues.ok()) return residues.error();
  outcome.residues_passed = residues->passed();
  outcome.residues = to_string(*residues);
  return {};
}

GenerateOutcome outcome_of(const GenerateCase& c, const Change& change, bool exact = false) {
  GenerateOutcome outcome;
  const Status status = run(c, change, exact, outcome);
  if (!status.ok()) outcome.failure = outcome.residues = to_string(status.error());
  return outcome;
}

// Everywhere behind the primitives.
Change replacing(const std::string& from, const std::string& to) {
  return [from, to](std::string& text) {
    size_t at = text.find(from, text.find("extern \"C\" __global__"));
    EXPECT_NE(at, std::string::npos) << from;
    for (; at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  };
}

}  // namespace

GenerateCase split_attention(const std::string& join, const std::string& columns,
                             const std::string& split) {
  return {
      "split_attention",
      "program p(q = 40, e = 16, f = 24, k = 90) {\n  input Q: f16[q, e]\n"
      "  input K: f16[k, e]\n  input V: f16[k, f]\n  s[q, k] = sum[e](Q * K)\n"
      "  m[q] = max[k](s)\n  p[q, k] = exp(s - m)\n"
      "  output O: f16[q, f] = sum[k](p * V) / sum[k](p)\n}\n",
      "ugraph g of p {\n  kernel part grid(q.o, k.s) warps(1) {\n    split q = q.o(3) * q.i(16)\n"
      "    split k = k.s(3) * k.o(2) * k.i(16)\n    qs[q.i, e] = Q : shared f16\n"
      "    loop k.o stages(2) {\n      ks[k.i, e] = K : shared f16\n"
      "      vs[k.i, f] = V : shared f16\n"
      "      t[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16)\n"
      "      m[q.i] = max[k.o, k.i](t) : reg f32\n      p[q.i, k.i] = exp(t - m) : shared f16\n"
      "      o[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 mma(m16n8k16) rescale m\n"
      "      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m\n    }\n"
      "    store m -> pm : f32[k.s, q]\n    store l -> pl : f32[k.s, q]\n"
      "    store o -> po : f32[k.s, q, f]\n  }\n"
      "  kernel join " +
          join + " {\n    split q = q.o(3) * q.i(16)\n" + split +
          "    ms[k.s, q.i] = pm : shared f32\n    top[q.i] = max[k.s](ms) : shared f32\n"
          "    w[k.s, q.i] = exp(ms - top) : shared f32\n"
          "    total[q.i] = sum[k.s](w * pl) : shared f32\n"
          "    out[q.i, " +
          columns +
          "] = sum[k.s](w * po) : reg f32\n"
          "    r[q.i, " +
          columns + "] = out / total : reg f32\n    store r -> O\n  }\n}\n"};
}

GenerateOutcome run_case(const GenerateCase& c) { return outcome_of(c, {}); }

GenerateOutcome run_changed(const GenerateCase& c, const std::string& from, const std::string& to) {
  return outcome_of(c, replacing(from, to));
}

GenerateOutcome run_exact(const GenerateCase& c) { return outcome_of(c, {}, true); }

GenerateOutcome run_exact_changed(const GenerateCase& c, const std::string& from,
                                  const std::string& to) {
  return outcome_of(c, replacing(from, to), true);
}

void expect_right(const GenerateCase& c) {
  const GenerateOutcome outcome = run_case(c);
  EXPECT_TRUE(outcome.passed) << c.name << ": " << outcome.failure << "\n"
                              << c.program << "\n"
                              << c.graph;
}

}  // namespace sundog::codegen
