#include "search/replan.h"

#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "core/resize.h"
#include "search/superoptimize.h"
#include "tests/search/expect_right.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

using Sizes = std::map<std::string, int64_t>;

SearchReport searched(const Program& program, const std::string& device = "h200") {
  SearchOptions options;
  options.max_states = 3000;
  options.top_k = 4;
  auto report = superoptimize(program, *find_device(device), {}, options);
  EXPECT_TRUE(report.ok());
  return std::move(*report);
}

// At sizes that an interpreter can manage.
void expect_right_when_small(const Program& program, const MuGraph& graph) {
  const auto small = shrink(graph, program, ShrinkPolicy::kFewElements);
  ASSERT_TRUE(small.ok()) << to_string(small.error());
  expect_right(small->program, small->graph);
}

struct Case {
  const char* program;
  Sizes from, to;
  double most;  // price, relative to what a search for these sizes finds
};

TEST(ReplanTest, AStructureFitsOtherSizes) {
  const Case cases[] = {
      {"rms_norm", {{"b", 8}}, {{"b", 16}}, 1.1},
      {"rms_norm", {{"b", 1}}, {{"b", 8}}, 1.1},
      {"rms_norm", {{"b", 8}}, {{"b", 5}, {"h", 5000}, {"d", 3000}}, 1.25},
      {"gated_mlp", {{"b", 16}}, {{"b", 1}}, 1.1},
      {"lora", {{"b", 8}}, {{"b", 3}, {"d", 1000}}, 1.25},
      {"n_trans", {{"b", 8}}, {{"b", 64}}, 1.1},
      {"softmax", {}, {{"n", 300}, {"k", 2000}}, 1.2},
      {"layer_norm", {}, {{"n", 77}, {"h", 3000}}, 1.2},
      // At b = 1 a block's keys are held whole, and stay so.
      {"gqa_safe", {{"b", 2}}, {{"b", 8}}, 1.2},
      {"gqa_safe", {{"b", 8}}, {{"b", 2}}, 1.2},
  };
  const Device device = *find_device("h200");
  for (const Case& c : cases) {
    SCOPED_TRACE(c.program);
    const SearchReport at_first = searched(load(c.program, c.from));
    const Program program = load(c.program, c.to);
    const SearchReport anew = searched(program);
    const auto begin = std::clock();
    const auto fitted = replan(at_first.candidates.front().graph, program, device);
    const double ms = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    ASSERT_TRUE(fitted.ok()) << to_string(fitted.error()) << "\n"
                             << print(at_first.candidates.front().graph, load(c.program, c.from));
    EXPECT_LT(ms, 100);
    for (const Candidate& f : *fitted) expect_right_when_small(program, f.graph);
    EXPECT_LT(fitted->front().predicted_us, c.most * anew.candidates.front().predicted_us)
        << fitted->front().structure << "\n"
        << anew.candidates.front().structure;
  }
}

TEST(ReplanTest, ItsOwnSizesAreFoundAgain) {
  const Device device = *find_device("h200");
  for (const char* name : {"rms_norm", "gated_mlp", "gqa_safe", "softmax", "qk_norm_safe"}) {
    const Program program = load(name);
    const SearchReport report = searched(program);
    for (const Candidate& c : report.candidates) {
      if (c.kind == "unfused") continue;  // its pieces are not kept apart
      const auto fitted = replan(c.graph, program, device);
      ASSERT_TRUE(fitted.ok()) << to_string(fitted.error()) << print(c.graph, program);
      EXPECT_LT(fitted->front().predicted_us, 1.03 * c.predicted_us) << name << ": " << c.structure;
    }
  }
}

TEST(ReplanTest, AStructureFitsAnotherDevice) {
  const Program program = load("rms_norm", {{"b", 8}});
  const Device device = *find_device("a100");
  const auto fitted = replan(searched(program).candidates.front().graph, program, device);
  ASSERT_TRUE(fitted.ok()) << to_string(fitted.error());
  for (const Candidate& f : *fitted) {
    EXPECT_TRUE(fits_device(f.graph, device));
    expect_right_when_small(program, f.graph);
  }
  EXPECT_LT(fitted->front().predicted_us,
            1.1 * searched(program, "a100").candidates.front().predicted_us);
}

// The blocks of a cluster have their shares at other sizes, too; a device without clusters gets
// none.
TEST(ReplanTest, AClusterStaysOne) {
  const auto of_cluster = [](const Candidate& c) {
    return c.graph.kernels.back().via == Via::kCluster;
  };
  SearchOptions options;
  options.max_states = 3000;
  options.top_k = 200;
  const Program first = load("gqa_safe", {{"g", 2}, {"q", 64}, {"k", 1024}});
  SearchSpace space;
  space.cluster = true;
  const auto report = superoptimize(first, *find_device("h200"), space, options);
  ASSERT_TRUE(report.ok());
  const auto& all = report->candidates;
  const auto found = std::find_if(all.begin(), all.end(), of_cluster);
  ASSERT_NE(found, all.end());
  const Program program = load("gqa_safe", {{"g", 3}, {"q", 48}, {"k", 2000}});
  const auto fitted = replan(found->graph, program, *find_device("h200"), 16);
  ASSERT_TRUE(fitted.ok()) << to_string(fitted.error()) << print(found->graph, first);
  EXPECT_TRUE(std::any_of(fitted->begin(), fitted->end(), of_cluster));
  for (const Candidate& f : *fitted) expect_right_when_small(program, f.graph);
  const auto older = replan(found->graph, program, *find_device("a100"), 16);
  ASSERT_TRUE(older.ok()) << to_string(older.error());
  EXPECT_FALSE(std::any_of(older->begin(), older->end(), of_cluster));
}

TEST(ReplanTest, AnotherProgramIsRefused) {
  const MuGraph graph = searched(load("rms_norm")).candidates.front().graph;
  const auto refused = replan(graph, load("softmax"), *find_device("h200"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
}

TEST(ReplanTest, ARowThatIsTooLongIsSaidSo) {
  const MuGraph graph = searched(load("softmax")).candidates.front().graph;
  const auto refused = replan(graph, load("softmax", {{"k", 3000000}}), *find_device("h200"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace sundog::search
