#include "search/trace.h"

#include <gtest/gtest.h>

#include <random>

#include "search/superoptimize.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

TraceHead some_head() {
  return {"program p() {\n}\n",
          "h200",
          "online: true\n",
          {{{"x", "n, h", false, {}}, {"t1", "", true, {"x * x"}}}, {}}};
}

TaskTrace some_task(uint64_t seed) {
  std::mt19937_64 random(seed);
  TaskTrace task{seed, static_cast<int>(seed % 3), 2, 17.5, {}};
  for (int i = 0; i < 50; ++i) {
    TraceEvent e;
    e.kind = static_cast<TraceKind>(random() % 7);
    if (e.kind < TraceKind::kCut) {
      e.depth = static_cast<uint16_t>(random() % 40);
      e.term = static_cast<int32_t>(random() % 20) - 1;
      e.index = static_cast<uint32_t>(random() % 4096);
    } else {
      e.us = static_cast<float>(random() % 1000) / 8;
      if (e.kind == TraceKind::kCut) e.rule = static_cast<PruneRule>(random() % kPruneRules);
    }
    task.events.push_back(e);
  }
  return task;
}

struct Read {
  std::vector<TraceHead> heads;
  std::vector<TaskTrace> tasks;
  bool whole = false, ok = false;
};

Read read(const std::string& bytes) {
  Read r;
  const TraceReader reader{[&](const TraceHead& h) { r.heads.push_back(h); },
                           [&](const TaskTrace& t) { r.tasks.push_back(t); }};
  r.ok = read_trace(bytes, reader, &r.whole).ok();
  return r;
}

std::string some_file() {
  std::string bytes = trace_bytes(some_head());
  for (uint64_t i = 0; i < 5; ++i) bytes += trace_bytes(some_task(i));
  return bytes;
}

TEST(TraceTest, IsReadAsItWasWritten) {
  const Read r = read(some_file());
  ASSERT_TRUE(r.ok);
  EXPECT_TRUE(r.whole);
  ASSERT_EQ(r.heads.size(), 1u);
  EXPECT_EQ(r.heads[0], some_head());
  ASSERT_EQ(r.tasks.size(), 5u);
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(r.tasks[i], some_task(i));
}

TEST(TraceTest, WhatWasWrittenUntilTheEndCameCanBeRead) {
  const std::string bytes = some_file();
  const size_t head = trace_bytes(some_head()).size();
  for (size_t size = head; size < bytes.size(); ++size) {
    const Read r = read(bytes.substr(0, size));
    ASSERT_TRUE(r.ok) << size;
    ASSERT_LT(r.tasks.size(), 5u);
    for (size_t i = 0; i < r.tasks.size(); ++i) EXPECT_EQ(r.tasks[i], some_task(i));
  }
}

TEST(TraceTest, DamageNeverCrashes) {
  const std::string bytes = some_file();
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = bytes;
    for (int flips = 1 + i % 3; flips > 0; --flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    read(damaged);
  }
  EXPECT_FALSE(read("").ok);
  EXPECT_FALSE(read("program p() {\n}\n").ok);
}

std::string traced(int threads) {
  SearchOptions options;
  options.max_states = 6000;
  options.threads = threads;
  std::string bytes;
  options.trace.head = [&](const TraceHead& h) { bytes += trace_bytes(h); };
  options.trace.task = [&](const TaskTrace& t) { bytes += trace_bytes(t); };
  EXPECT_TRUE(superoptimize(load("gqa_safe", {{"b", 8}}), *find_device("h200"), {}, options).ok());
  return bytes;
}

TEST(TraceTest, ThreadsDoNotChangeIt) {
  const std::string one = traced(1);
  EXPECT_GT(one.size(), 10000u);
  EXPECT_EQ(one, traced(3));
}

// Cuts and structures are those of the report.
TEST(TraceTest, AgreesWithTheReport) {
  SearchOptions options;
  std::vector<uint64_t> cuts(kPruneRules);
  uint64_t structures = 0;
  double best = 1e30;
  options.trace.task = [&](const TaskTrace& t) {
    for (const TraceEvent& e : t.events) {
      if (e.kind == TraceKind::kCut) ++cuts[static_cast<size_t>(e.rule)];
      if (e.kind != TraceKind::kStructure) continue;
      ++structures;
      best = std::min<double>(best, e.us);
    }
  };
  const auto report =
      superoptimize(load("rms_norm", {{"b", 8}}), *find_device("h200"), {}, options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(structures, report->structures);
  for (const auto& [rule, count] : report->pruned) {
    for (int r = 0; r < kPruneRules; ++r) {
      // What does not fit is counted once in the report, at each use in a trace.
      if (rule == name_of(static_cast<PruneRule>(r)) && rule != "does not fit") {
        EXPECT_EQ(count, cuts[static_cast<size_t>(r)]) << rule;
      }
    }
  }
  EXPECT_LE(best, report->unfused.predicted_us);
}

}  // namespace
}  // namespace sundog::search
