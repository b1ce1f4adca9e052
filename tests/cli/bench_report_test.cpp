#include "cli/bench_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/json_reader.h"

namespace sundog::cli {
namespace {

MethodResult timed(const char* name, double cold, double warm) {
  MethodResult method;
  method.method = name;
  method.right = true;
  method.cold_us = cold;
  method.warm_us = warm;
  method.error = 1e-3;
  return method;
}

// Sundog wins by 2 and loses by 2 against the best library; against torch.compile it wins by 4 and
// by 1.
BenchReport two_rows() {
  BenchReport report;
  report.gpu = true;
  report.machine["gpu"] = "a <GPU> & more";
  BenchRow row;
  row.name = "first";
  row.sizes = "n=4";
  row.dtype = "f16";
  row.methods = {timed("sundog", 10, 9), timed("triton", 5, 5), timed("eager", 20, 12),
                 timed("compile", 40, 30), timed("autotune_sdpa", 50, 30)};
  MethodResult part = timed("cublas", 1, 1);
  part.part = true;
  row.methods.push_back(part);
  MethodResult wrong = timed("sdpa", 2, 2);
  wrong.right = false;
  wrong.note = "wrong";
  row.methods.push_back(wrong);
  report.rows.push_back(row);
  row.name = "second";
  row.methods = {timed("sundog", 10, 9), timed("eager", 5, 4), timed("compile", 10, 8)};
  report.rows.push_back(row);
  return report;
}

TEST(BenchReport, TheBestLibraryIsRightAndWholeAndNobodysOwn) {
  const BenchReport report = two_rows();
  ASSERT_NE(best_library(report.rows[0]), nullptr);
  EXPECT_EQ(best_library(report.rows[0])->method, "eager");
  EXPECT_EQ(best_library(report.rows[0], {"compile", "autotune"})->method, "compile");
  EXPECT_EQ(best_library(report.rows[0], {"autotune"})->method, "autotune_sdpa");
  EXPECT_EQ(best_library(report.rows[1], {"sdpa"}), nullptr);
}

TEST(BenchReport, SpeedupsAreGeometricMeansOverRowsThatHaveBoth) {
  BenchReport report = two_rows();
  EXPECT_NEAR(speedup_over(report, {}).mean, 1, 1e-12);
  EXPECT_NEAR(speedup_over(report, {"compile"}).mean, 2, 1e-12);
  EXPECT_EQ(speedup_over(report, {"compile"}).rows, 2);
  report.rows[1].methods.erase(report.rows[1].methods.begin());
  EXPECT_NEAR(speedup_over(report, {"compile"}).mean, 4, 1e-12);
  EXPECT_EQ(speedup_over(report, {"compile"}).rows, 1);
  EXPECT_EQ(speedup_over(report, {"nobody"}).rows, 0);
}

TEST(BenchReport, ColdCountsWhereThereIsOne) {
  MethodResult method = timed("eager", 3, 2);
  EXPECT_EQ(compared_us(method), 3);
  method.cold_us.reset();
  EXPECT_EQ(compared_us(method), 2);
  method.part = true;
  EXPECT_EQ(compared_us(method), std::nullopt);
}

TEST(BenchReport, TheTableGivesSharesOfTheBestAndSaysWhatWasNotRun) {
  BenchReport report = two_rows();
  MethodResult failed;
  failed.method = "autotune";
  failed.note = "RuntimeError: no such kernel";
  report.rows[1].methods.push_back(failed);
  report.rows[1].failure = "an output is wrong";
  report.notes.emplace_back("baselines not run: no PyTorch");
  const std::string table = bench_table(report);
  // Of the best, which the Triton kernel is: 5 us.
  for (const char* part :
       {"| first   | n=4   | f16   | sundog        |   10.00 |    9.00 |    50 % | 1.0e-03 |",
        "triton        |    5.00 |    5.00 |   100 % |",
        "cublas        |    1.00 |    1.00 |  a part |",
        "sdpa          |    2.00 |    2.00 |   wrong |",
        "second, autotune: RuntimeError: no such kernel", "second: an output is wrong",
        "baselines not run: no PyTorch",
        "over the best of torch.compile: 2.00 times as fast, geometric mean of 2 rows"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  }
}

TEST(BenchReport, JsonHasWhatTheTableHas) {
  const JsonValue json = JsonReader(bench_json(two_rows())).whole();
  const JsonValue& first = json["rows"].items.at(0);
  EXPECT_EQ(first["best_library"].text, "eager");
  EXPECT_EQ(first["methods"].items.at(0)["percent_of_best"].number, 50);
  EXPECT_EQ(first["methods"].items.at(5)["percent_of_best"].kind, JsonValue::kNull);
  EXPECT_EQ(json["speedup"]["over_torch_compile"]["geometric_mean"].number, 2);
}

TEST(BenchReport, ThePlotHasABarForEachTimeAndEscapesNames) {
  const std::string plot = bench_plot(two_rows());
  EXPECT_NE(plot.find("a &lt;GPU> &amp; more"), std::string::npos);
  size_t bars = 0;
  for (size_t at = plot.find("<rect"); at != std::string::npos; at = plot.find("<rect", at + 1)) {
    ++bars;
  }
  EXPECT_EQ(bars, 9u);  // all but the wrong one
  EXPECT_EQ(plot.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace sundog::cli
