#include "search/checkpoint.h"

#include <gtest/gtest.h>

#include <random>

#include "core/via.h"
#include "search/superoptimize.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

Device h200() { return *find_device("h200"); }

SearchReport searched(const Program& program, const SearchOptions& options,
                      const SearchSpace& space = {}) {
  auto report = superoptimize(program, h200(), space, options);
  EXPECT_TRUE(report.ok());
  return std::move(*report);
}

// Everything but seconds, and what they decide.
void expect_same(const SearchReport& a, const SearchReport& b) {
  EXPECT_EQ(a.states, b.states);
  EXPECT_EQ(a.kernels_priced, b.kernels_priced);
  EXPECT_EQ(a.structures, b.structures);
  EXPECT_EQ(a.rounds, b.rounds);
  EXPECT_EQ(a.pruned, b.pruned);
  EXPECT_EQ(a.stop_reason, b.stop_reason);
  ASSERT_EQ(a.candidates.size(), b.candidates.size());
  for (size_t i = 0; i < a.candidates.size(); ++i) {
    EXPECT_EQ(a.candidates[i].graph, b.candidates[i].graph);
    EXPECT_EQ(a.candidates[i].predicted_us, b.candidates[i].predicted_us);
  }
}

// The checkpoints of a whole search, one a round.
std::vector<std::string> checkpoints(const Program& program, SearchOptions options,
                                     SearchReport* report) {
  std::vector<std::string> all;
  options.save_every_s = 0;
  options.save = [&](const std::string& bytes) { all.push_back(bytes); };
  *report = searched(program, options);
  return all;
}

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.max_states = 12000;
    options_.threads = 2;
  }
  Program program_ = load("gqa_safe", {{"b", 8}});
  SearchOptions options_;
};

// As long, but in the release build alone.
class CheckpointSlowTest : public CheckpointTest {};

TEST_F(CheckpointTest, ASearchThatGoesOnEndsAsIfUnbroken) {
  SearchReport unbroken;
  const std::vector<std::string> all = checkpoints(program_, options_, &unbroken);
  ASSERT_GE(all.size(), 4u);
  for (size_t i = 0; i < all.size(); i += 1 + all.size() / 5) {
    SearchOptions options = options_;
    options.threads = 1 + static_cast<int>(i % 3);
    options.resume = all[i];
    const SearchReport resumed = searched(program_, options);
    EXPECT_TRUE(resumed.resumed);
    EXPECT_TRUE(resumed.notes == unbroken.notes);
    expect_same(resumed, unbroken);
  }
}

// Cut by a clock, again and again, until nothing is left.
TEST_F(CheckpointTest, ASearchThatIsCutAnywhereEndsAsIfUnbroken) {
  const Program program = load("rms_norm", {{"b", 8}});
  const SearchReport unbroken = searched(program, {});
  std::string saved;
  SearchReport last;
  for (int run = 0; run < 1000; ++run) {
    double now = 0;
    SearchOptions options;
    options.clock = [&now] { return now += 0.001; };
    options.budget_s = 0.01 * (run + 5);
    options.save_every_s = 0;
    options.save = [&](const std::string& bytes) { saved = bytes; };
    options.resume = saved;
    last = searched(program, options);
    if (last.stop_reason == "exhausted") break;
    EXPECT_EQ(last.stop_reason, "budget");
  }
  EXPECT_TRUE(last.resumed);
  expect_same(last, unbroken);
}

// Between trees of three kernels and of four, too.
TEST_F(CheckpointSlowTest, ASearchOfManyKernelsGoesOn) {
  const Program program = parse(R"(program four(n = 16, a = 1024, b = 2048, c = 2048, d = 2048) {
  input X: f16[n, a]
  input W1: f16[a, b]
  input W2: f16[b, c]
  input W3: f16[c, d]
  input W4: f16[d, a]
  p[n, b] = max(sum[a](X * W1), 0)
  q[n, c] = max(sum[b](p * W2), 0)
  r[n, d] = max(sum[c](q * W3), 0)
  O[n, a] = sum[d](r * W4)
  output O: f16[n, a]
})");
  SearchReport unbroken;
  const std::vector<std::string> all = checkpoints(program, {}, &unbroken);
  ASSERT_EQ(launch_count(unbroken.candidates.front().graph), 4);
  for (const std::string& saved : all) {
    SearchOptions options;
    options.resume = saved;
    expect_same(searched(program, options), unbroken);
  }
}

// Each part is searched for itself, one of them for long: a checkpoint may be of the middle of
// that.
TEST_F(CheckpointSlowTest, ASearchInPartsGoesOn) {
  const Program program = load("mlp_block");
  SearchOptions options;
  options.max_states = 20000;
  size_t of_parts = 0;  // checkpoints before the search of the whole began
  std::vector<std::string> all;
  options.progress = [&](const Progress&) {
    if (of_parts == 0) of_parts = all.size();
  };
  options.save_every_s = 0;
  options.save = [&](const std::string& bytes) { all.push_back(bytes); };
  const SearchReport unbroken = searched(program, options);
  options.save = {};
  options.progress = {};
  EXPECT_GT(of_parts, 10u);
  for (size_t i : {size_t{0}, of_parts / 3, of_parts / 2, of_parts - 1, all.size() - 1}) {
    options.resume = all[i];
    const SearchReport resumed = searched(program, options);
    EXPECT_TRUE(resumed.resumed);
    expect_same(resumed, unbroken);
    EXPECT_EQ(resumed.notes, unbroken.notes);
  }
}

// With another limit of states parts are searched anew, and not wrongly.
TEST_F(CheckpointTest, PartsOfAnotherLimitAreNotTaken) {
  const Program program = load("mlp_block");
  SearchOptions options;
  options.max_states = 4000;
  SearchReport fewer;
  const std::string first = checkpoints(program, options, &fewer).front();
  options.max_states = 8000;
  const SearchReport unbroken = searched(program, options);
  options.resume = first;
  expect_same(searched(program, options), unbroken);
}

TEST_F(CheckpointTest, MoreStatesGoOnFromFewer) {
  SearchOptions fewer = options_;
  fewer.max_states = 7001;
  std::string saved;
  fewer.save = [&](const std::string& bytes) { saved = bytes; };
  searched(program_, fewer);
  SearchOptions more = options_;
  more.resume = saved;
  const SearchReport resumed = searched(program_, more);
  EXPECT_TRUE(resumed.resumed);
  expect_same(resumed, searched(program_, options_));
}

TEST_F(CheckpointTest, WhatBelongsToAnotherSearchIsRefused) {
  SearchReport report;
  SearchOptions options = options_;
  options.max_states = 800;
  const std::string bytes = checkpoints(program_, options, &report).front();
  const auto refusal = [&](const Program& program, SearchOptions other, const SearchSpace& space) {
    other.resume = bytes;
    const SearchReport r = searched(program, other, space);
    EXPECT_FALSE(r.resumed);
    expect_same(r, [&] {
      other.resume.clear();
      return searched(program, other, space);
    }());
    return r.notes.empty() ? std::string() : r.notes.back();
  };
  EXPECT_NE(refusal(load("gqa_safe", {{"b", 4}}), options, {}).find("another program"),
            std::string::npos);
  SearchSpace space;
  space.online = false;
  EXPECT_NE(refusal(program_, options, space).find("another search space"), std::string::npos);
  SearchOptions seed = options;
  seed.seed = 9;
  EXPECT_NE(refusal(program_, seed, {}).find("another seed"), std::string::npos);
}

TEST_F(CheckpointTest, DamageIsRefused) {
  SearchReport report;
  SearchOptions options = options_;
  options.max_states = 2000;
  const std::string whole = checkpoints(program_, options, &report).back();
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = whole;
    if (i % 3 == 0) {
      damaged.resize(random() % damaged.size());
    } else if (i % 3 == 1) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    } else {
      damaged += "x";
    }
    std::vector<std::unique_ptr<BankRun>> none;
    Checkpoint found;
    const Status read = read_checkpoint(damaged, {}, machine_of(h200()), &found, none);
    ASSERT_FALSE(read.ok());
    const std::string& why = read.error().message;
    EXPECT_TRUE(why.find("damaged") != std::string::npos ||
                why.find("no checkpoint") != std::string::npos)
        << why;
  }
  options.resume = whole.substr(0, whole.size() / 2);
  const SearchReport afresh = searched(program_, options);
  EXPECT_FALSE(afresh.resumed);
  ASSERT_FALSE(afresh.notes.empty());
  EXPECT_NE(afresh.notes.back().find("damaged"), std::string::npos);
  expect_same(afresh, report);
}

}  // namespace
}  // namespace sundog::search
