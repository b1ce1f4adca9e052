// The mutation test at full size: wrong µGraphs and wrong kernels that must not be accepted, right
// ones that must not be refused.  A small version is part of `./dev test`.
//
//   sundog_mutation --mutants 9500 --right 10000 --emitted 500 [--seed 1]
//
// µGraphs are what search offers for every program of benchmarks/programs, at small sizes, and the
// right ones of tests/programs.  A mutant counts if a float64 oracle of its own, at those sizes,
// shows that it differs; every mutant of that kind must be refused.  A mutant of emitted code (a
// barrier or a wait left out, an index off by one) counts if its outputs, on any of three schedules
// of the emulator, are not those of the right kernel; it is judged by the comparison of floats, the
// race checker and the residues.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/support/workloads.h"
#include "codegen/generate.h"
#include "codegen/launch_emulator.h"
#include "codegen/residue_check.h"
#include "core/float_algebra.h"
#include "core/interpret.h"
#include "core/resize.h"
#include "search/superoptimize.h"
#include "verify/float_inputs.h"
#include "verify/mutate.h"
#include "verify/prime_field.h"
#include "verify/small_sizes.h"
#include "verify/verdict.h"

namespace sundog::benchmarks {
namespace {

struct Base {
  std::string name;
  Program program;  // small
  MuGraph graph;
  Program full_program;
  MuGraph full_graph;
};

using Tensors = std::vector<TensorValues<double>>;

std::optional<Tensors> outputs(const Program& program, const MuGraph* graph, uint64_t seed) {
  const auto inputs = verify::float_inputs(program, verify::InputKind::kOrdinary, seed);
  const std::span<const TensorValues<double>> in(inputs);
  Float64 algebra({.round_stores = false});
  auto result =
      graph == nullptr ? interpret(algebra, program, in) : interpret(algebra, *graph, program, in);
  if (!result.ok()) return std::nullopt;
  return *std::move(result);
}

// Whether the µGraph differs from the program in float64 on two sets of inputs.
bool differs(const Program& program, const MuGraph& graph) {
  for (const uint64_t seed : {901, 902}) {
    const auto expected = outputs(program, nullptr, seed), actual = outputs(program, &graph, seed);
    if (!expected) return false;
    if (!actual) return true;
    for (size_t o = 0; o < expected->size(); ++o) {
      for (size_t i = 0; i < (*expected)[o].values.size(); ++i) {
        const double x = (*expected)[o].values[i], y = (*actual)[o].values[i];
        if (std::isfinite(x) && !(std::fabs(x - y) <= 1e-7 * (1 + std::fabs(x)))) return true;
      }
    }
  }
  return false;
}

void add_bases(const Program& program, const MuGraph& graph, const std::string& name,
               std::vector<Base>* bases) {
  const auto cases = verify::small_cases(program, graph);
  if (!cases.ok()) return;
  const verify::SmallCase& small = cases->front();
  bases->push_back({name, small.program, std::get<MuGraph>(small.candidate), program, graph});
}

std::vector<Base> all_bases() {
  std::vector<Base> bases;
  for (const Workload& workload : workloads()) {
    const Program program = parse(workload);
    search::SearchOptions options;
    options.max_states = 3000;
    options.top_k = 6;
    const auto report = search::superoptimize(program, h200(), {}, options);
    if (!report.ok()) continue;
    verify::VerifyOptions whole;
    whole.exact_at_declared_sizes = false;  // what is mutated is looked at where it is small
    for (const search::Candidate& candidate : report->candidates) {
      const auto verdict = verify::verify(program, candidate.graph, whole);
      if (verdict.answer != verify::Verdict::kEquivalent) continue;
      add_bases(program, candidate.graph, workload.name, &bases);
    }
    std::printf("%s: %zu µGraphs\n", workload.name.c_str(), bases.size());
    std::fflush(stdout);
  }
  for (const char* file :
       {"add_rms_norm.equal.mu", "attention_causal_trim.equal.mu", "attention_online.equal.mu",
        "gated_mlp.equal.mu", "gqa_safe_split.equal.mu", "layer_norm_row.equal.mu", "lora.equal.mu",
        "n_trans.equal.mu", "rms_norm.equal.mu", "rms_norm_split_k.equal.mu",
        "rms_norm_two_pass.equal.mu"}) {
    const Pair pair = read_pair(file);
    add_bases(pair.program, pair.graph, file, &bases);
  }
  return bases;
}

verify::VerifyOptions quick() {
  verify::VerifyOptions options;
  options.full_size_work = 0;
  options.numerics_work = 1 << 10;
  return options;
}

struct Count {
  int tried = 0, wrong = 0, different = 0, unknown = 0, accepted = 0;
};

int run_mutants(const std::vector<Base>& bases, int wanted, uint64_t seed) {
  std::map<verify::Mutation, Count> counts;
  Count all;
  for (uint64_t n = 0; all.wrong < wanted && n < 40 * static_cast<uint64_t>(wanted); ++n) {
    const Base& base = bases[n % bases.size()];
    const auto mutant = verify::mutate(base.graph, base.program, verify::prf(seed, n));
    if (!mutant) continue;
    ++all.tried;
    if (!differs(base.program, mutant->graph)) continue;
    const auto verdict = verify::verify(base.program, mutant->graph, quick());
    for (Count* count : {&all, &counts[mutant->mutation]}) {
      ++count->wrong;
      count->different += verdict.answer == verify::Verdict::kDifferent;
      count->unknown += verdict.answer == verify::Verdict::kUnknown;
      count->accepted += verdict.answer == verify::Verdict::kEquivalent;
    }
    if (verdict.answer == verify::Verdict::kEquivalent) {
      std::printf("ACCEPTED %s, %s (draw %llu)\n", base.name.c_str(), mutant->what.c_str(),
                  static_cast<unsigned long long>(n));
    }
    if (all.wrong % 500 == 0) {
      std::printf("%d mutants\n", all.wrong);
      std::fflush(stdout);
    }
  }
  std::printf("mutants: %d of %d tried differ; %d different, %d unknown, %d accepted\n", all.wrong,
              all.tried, all.different, all.unknown, all.accepted);
  for (const auto& [kind, count] : counts) {
    std::printf("  kind %d: %d, %d unknown, %d accepted\n", static_cast<int>(kind), count.wrong,
                count.unknown, count.accepted);
  }
  return all.accepted;
}

int run_right(const std::vector<Base>& bases, int wanted, uint64_t seed) {
  Count all;
  for (uint64_t n = 0; all.tried < wanted && n < 40 * static_cast<uint64_t>(wanted); ++n) {
    const Base& base = bases[n % bases.size()];
    const auto variant = verify::vary(base.graph, base.program, verify::prf(seed, n, 1));
    if (!variant) continue;
    ++all.tried;
    const auto verdict = verify::verify(base.program, variant->graph, quick());
    all.different += verdict.answer == verify::Verdict::kDifferent;
    all.unknown += verdict.answer == verify::Verdict::kUnknown;
    if (verdict.answer != verify::Verdict::kEquivalent) {
      std::printf("%s %s, %s: %s\n",
                  verdict.answer == verify::Verdict::kDifferent ? "REFUSED" : "unknown",
                  base.name.c_str(), variant->what.c_str(), verdict.reason.c_str());
      std::fflush(stdout);
    }
  }
  std::printf("right variants: %d, %d different, %d unknown\n", all.tried, all.different,
              all.unknown);
  return all.different;
}

// ---- emitted code

// One slip in the kernels of a text, behind the primitives; empty if it has no place.
std::string mutate_text(const std::string& text, uint64_t draw, std::string* what) {
  const size_t kernels = text.find("extern \"C\" __global__");
  if (kernels == std::string::npos) return {};
  struct Slip {
    const char *was, *is;
  };
  static constexpr Slip kSlips[] = {{"sd::sync_threads();", ""},
                                    {"sd::sync_warp();", ""},
                                    {"sd::cp_async_wait<0>();", "sd::cp_async_wait<1>();"},
                                    {"sd::cp_async_wait<1>();", "sd::cp_async_wait<2>();"},
                                    {"sd::cp_async_wait<2>();", "sd::cp_async_wait<3>();"},
                                    {"sd::cp_async_commit();", ""},
                                    {" + c)", " + c + 8)"},
                                    {" * 8", " * 4"},
                                    {"lane / 4", "lane / 8"},
                                    {"lane % 4", "lane % 2"},
                                    {"[i]", "[0]"},
                                    {"tid / ", "1 + tid / "},
                                    {" + i * ", " + i + "},
                                    {"i < ", "i + 1 < "},
                                    {" * 64", " * 32"},
                                    {"warp * ", "0 * "},
                                    {"sd::lane_sum<31>", "sd::lane_sum<15>"},
                                    {"sd::lane_max<31>", "sd::lane_max<15>"},
                                    {"sd::fence_async_proxy();", ""},
                                    {"sd::warpgroup_commit();", ""},
                                    {"_next_phase = 1", "_next_phase = 0"},
                                    {"_phase ^= 1", "_phase ^= 0"},
                                    {"_stage == ", "_stage == 1 + "},
                                    {"_next == ", "_next == 1 + "},
                                    {" + ahead", " + 1 + ahead"},
                                    {"step * 32", "step * 64"}};
  const Slip& slip = kSlips[draw % std::size(kSlips)];
  std::vector<size_t> places;
  for (size_t at = text.find(slip.was, kernels); at != std::string::npos;
       at = text.find(slip.was, at + 1)) {
    places.push_back(at);
  }
  if (places.empty()) return {};
  const size_t at = places[(draw / std::size(kSlips)) % places.size()];
  std::string mutant = text;
  mutant.replace(at, std::string(slip.was).size(), slip.is);
  *what = "'" + std::string(slip.was) + "' is '" + slip.is + "'";
  return mutant;
}

struct Emitted {
  std::string name;
  Program program;
  MuGraph graph;
  codegen::Generated generated;
  codegen::CheckData data;
  double tolerance = 0;
};

std::vector<Emitted> all_emitted(const std::vector<Base>& bases) {
  std::vector<Emitted> emitted;
  std::map<std::string, int> of_program;
  for (const Base& base : bases) {
    if (++of_program[base.name] > 2) continue;
    const auto shrunk = shrink(base.full_graph, base.full_program, ShrinkPolicy::kKeepTiles);
    if (!shrunk.ok() || codegen::program_work(shrunk->program) > 4e6) continue;
    codegen::GenerateOptions options;
    options.name = "mutant";
    auto generated = codegen::generate(shrunk->graph, shrunk->program, h200(), options);
    auto data = codegen::make_check_data(shrunk->program, Rounding::kWide, 1e9, 5);
    if (!generated.ok() || !data.ok()) continue;
    emitted.push_back({base.name, shrunk->program, shrunk->graph, std::move(*generated),
                       std::move(*data),
                       codegen::kernel_tolerance(shrunk->program, shrunk->graph)});
  }
  return emitted;
}

int run_emitted(const std::vector<Base>& bases, int wanted, uint64_t seed) {
  const std::vector<Emitted> emitted = all_emitted(bases);
  std::printf("%zu emitted kernels to mutate\n", emitted.size());
  codegen::EmulatorOptions checked;
  codegen::EmulatorOptions plain;
  plain.race_check = false;
  int wrong = 0, accepted = 0, refused_right = 0, refused_exactly = 0, tried = 0, harmless = 0;
  for (uint64_t n = 0; !emitted.empty() && wrong < wanted && tried < 8 * wanted; ++n) {
    const Emitted& base = emitted[n % emitted.size()];
    std::string what;
    const std::string mutant = mutate_text(base.generated.cuda, verify::prf(seed, n, 2), &what);
    if (mutant.empty()) continue;
    ++tried;
    const auto judged = codegen::run_on_emulator(base.program, base.generated.plan, mutant,
                                                 base.data, base.tolerance, checked);
    if (!judged.ok()) continue;  // it does not compile
    bool passed = judged->passed();
    if (passed) {
      const auto residues =
          codegen::check_residues(base.program, base.graph, base.generated.plan, mutant, plain);
      if (residues.ok() && !residues->failure.empty()) {
        passed = false;
        ++refused_exactly;
      }
    }
    // The oracle: the numbers alone, an order of magnitude within what the check allows.
    bool differs = !judged->check.passed;
    if (passed) {
      const auto numbers = codegen::run_on_emulator(base.program, base.generated.plan, mutant,
                                                    base.data, base.tolerance / 10, plain);
      const auto right =
          codegen::run_on_emulator(base.program, base.generated.plan, base.generated.cuda,
                                   base.data, base.tolerance / 10, plain);
      differs = numbers.ok() && right.ok() && right->check.passed && !numbers->check.passed;
    }
    if (passed && differs) {
      ++accepted;
      std::printf("ACCEPTED %s, %s\n", base.name.c_str(), what.c_str());
    }
    if (!passed) {
      ++wrong;
      refused_right += judged->check.passed && !judged->problems.empty();
    } else if (!differs) {
      ++harmless;
    }
    if (tried % 50 == 0) {
      std::printf("%d emitted mutants\n", tried);
      std::fflush(stdout);
    }
  }
  std::printf(
      "emitted: %d tried, %d refused (%d of them by the race checker with right numbers, %d by "
      "their "
      "residues alone), %d accepted as they change nothing, %d wrongly accepted\n",
      tried, wrong, refused_right, refused_exactly, harmless, accepted);
  return accepted;
}

int main(int count, char** values) {
  std::map<std::string, int> options{
      {"--mutants", 9500}, {"--right", 10000}, {"--emitted", 500}, {"--seed", 1}};
  for (int i = 1; i + 1 < count; i += 2) options[values[i]] = std::atoi(values[i + 1]);
  const std::vector<Base> bases = all_bases();
  std::printf("%zu µGraphs\n", bases.size());
  const auto seed = static_cast<uint64_t>(options["--seed"]);
  const int wrong = run_mutants(bases, options["--mutants"], seed) +
                    run_right(bases, options["--right"], seed) +
                    run_emitted(bases, options["--emitted"], seed);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sundog::benchmarks

int main(int count, char** values) { return sundog::benchmarks::main(count, values); }
