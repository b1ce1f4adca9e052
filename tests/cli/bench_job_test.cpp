#include "cli/bench_job.h"

#include <gtest/gtest.h>

#include "core/text.h"
#include "tests/cli/json_reader.h"

namespace sundog::cli {
namespace {

JsonValue job_of(const std::string& text) {
  const auto program = parse_program(text, "p.sd", {});
  if (!program.ok()) {
    ADD_FAILURE() << to_string(program.error());
    return {};
  }
  BaselineJob job;
  job.methods = {"eager"};
  job.rows.push_back({"row", &*program, "", "no GPU", ""});
  return JsonReader(job_text(job)).whole();
}

TEST(BenchJob, TensorsKeepTheirMemoryAndTheirRange) {
  const JsonValue job = job_of(
      "program p(n = 4, h = 6) {\n  input x: bf16[n, h] stride(1, n) offset 2 in [0, inf]\n"
      "  output y: f16[n, h] = x * 2\n}\n");
  EXPECT_EQ(job["device"].text, "cpu");
  const JsonValue& row = job["rows"].items.at(0);
  EXPECT_EQ(row["kernel"].kind, JsonValue::kNull);
  EXPECT_EQ(row["kernel_note"].text, "no GPU");
  const JsonValue& x = row["program"]["inputs"].items.at(0);
  EXPECT_EQ(x["dtype"].text, "bf16");
  EXPECT_EQ(x["strides"].items.at(1).number, 4);
  EXPECT_EQ(x["offset"].number, 2);
  EXPECT_EQ(x["elements"].number, 2 + 3 + 5 * 4 + 1);
  EXPECT_EQ(x["low"].number, 0);
  EXPECT_EQ(x["high"].kind, JsonValue::kNull);
}

TEST(BenchJob, TermsStandInOrderWithSizesAsNumbers) {
  const JsonValue job = job_of(
      "program p(n = 4, h = 6) {\n  input x: f16[n, h]\n"
      "  output y: f16[n, h] = select(n < 2, x[size(n) - 1 - n, h], -inf) * size(h)\n}\n");
  const JsonValue& program = job["rows"].items.at(0)["program"];
  bool reversed = false, infinite = false, size = false, select = false;
  const auto& terms = program["terms"].items;
  for (size_t t = 0; t < terms.size(); ++t) {
    for (const JsonValue& operand : terms[t]["operands"].items) EXPECT_LT(operand.number, t);
    const std::string& kind = terms[t]["kind"].text;
    if (kind == "input") {
      const JsonValue& index = terms[t]["index"].items.at(0);
      reversed =
          index["constant"].number == 3 && index["axes"].items.at(0).items.at(1).number == -1;
    }
    if (kind == "constant") {
      infinite |= terms[t]["value"].text == "-inf";
      size |= terms[t]["value"].number == 6;
    }
    select |= kind == "select" && terms[t]["relation"].text == "less";
  }
  EXPECT_TRUE(reversed && infinite && size && select);
  EXPECT_EQ(program["outputs"].items.at(0)["value"].number, static_cast<double>(terms.size() - 1));
}

}  // namespace
}  // namespace sundog::cli
