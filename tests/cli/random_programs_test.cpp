// NOLINT(sundog-mirror): the whole way from program to kernel, on programs drawn at random.
//
// Each is searched under a budget in states; what search offers is verified; the pick is emitted
// and run on the emulator.  Many kernels are compiled at once, which is much faster.  More of them:
// benchmarks/search/random_programs.sh.
#include "tests/search/random_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "codegen/generate.h"
#include "codegen/launch_emulator.h"
#include "core/text.h"
#include "search/superoptimize.h"
#include "verify/verdict.h"

namespace sundog {
namespace {

constexpr int kPrograms = 200;
constexpr int kPerModule = 25;

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

struct Made {
  Program program;
  MuGraph graph;
  codegen::Generated generated;
};

class RandomProgramsSlowTest : public testing::TestWithParam<int> {
 protected:
  // What a run of the tool offers for the program: the first candidate that is accepted.
  void make(uint64_t seed) {
    const Program program = search::draw_from_catalog(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(program));
    std::string refusal;
    search::SearchOptions options;
    options.max_states = 2000;
    options.top_k = 1;
    options.accept = [&](const search::Candidate& c) { return is_right(program, c, &refusal); };
    const auto report = search::superoptimize(program, device_, {}, options);
    ASSERT_TRUE(report.ok()) << to_string(report.error());
    EXPECT_LE(report->states, options.max_states + 64 * 64);
    for (const std::string& note : report->notes) {
      EXPECT_EQ(note.find("wrongly"), std::string::npos) << note;
      EXPECT_EQ(note.find("unequal"), std::string::npos) << note;
    }
    const MuGraph& graph = report->candidates.front().graph;
    const bool fused = !(graph == report->unfused.graph);
    if (!fused) {
      ASSERT_TRUE(is_right(program, report->unfused, &refusal)) << refusal;
    }
    fused_ += fused ? 1 : 0;
    auto generated = codegen::generate(graph, program, device_, {});
    ASSERT_TRUE(generated.ok()) << to_string(generated.error()) << "\n" << print(graph, program);
    made_.push_back({program, graph, std::move(*generated)});
  }

  bool is_right(const Program& program, const search::Candidate& candidate, std::string* why) {
    verify::VerifyOptions options;
    options.full_size_work = 0;
    options.numerics_work = 1 << 12;
    options.time_limit_s = 600;  // whether it is right, however busy the machine is
    const verify::Verdict verdict = verify::verify(program, candidate.graph, options);
    if (verdict.answer == verify::Verdict::kEquivalent) return true;
    *why = verdict.reason + "\n" + print(candidate.graph, program);
    return false;
  }

  void emulate_all() {
    std::vector<std::string> sources;
    for (const Made& m : made_) sources.push_back(m.generated.cuda);
    codegen::EmulatorOptions options;
    options.time_limit_s = 300;
    const auto module = codegen::EmulatorModule::compile(sources, options);
    ASSERT_TRUE(module.ok()) << to_string(module.error());
    for (size_t i = 0; i < made_.size(); ++i) {
      const Made& m = made_[i];
      SCOPED_TRACE(print(m.program) + print(m.graph, m.program));
      const auto data = codegen::make_check_data(m.program, Rounding::kWide, 1e8, 11);
      ASSERT_TRUE(data.ok()) << to_string(data.error());
      const auto ran =
          codegen::run_on_emulator(m.program, m.generated.plan, *module, static_cast<int>(i), *data,
                                   codegen::kernel_tolerance(m.program, m.graph), options);
      ASSERT_TRUE(ran.ok()) << to_string(ran.error());
      EXPECT_TRUE(ran->passed()) << ran->failure();
    }
  }

  const Device device_ = *find_device("h200");
  std::vector<Made> made_;
  int fused_ = 0;
};

TEST_P(RandomProgramsSlowTest, EndWithARightKernel) {
  const int first = GetParam() * kPerModule + 1;
  for (int seed = first; seed < first + kPerModule; ++seed) make(static_cast<uint64_t>(seed));
  EXPECT_GE(fused_, kPerModule / 5);  // the draws are worth searching
  emulate_all();
}

INSTANTIATE_TEST_SUITE_P(Batches, RandomProgramsSlowTest,
                         testing::Range(from_environment("SUNDOG_RANDOM_FIRST_BATCH", 0),
                                        from_environment("SUNDOG_RANDOM_FIRST_BATCH", 0) +
                                            from_environment("SUNDOG_RANDOM_PROGRAMS", kPrograms) /
                                                kPerModule));

}  // namespace
}  // namespace sundog
