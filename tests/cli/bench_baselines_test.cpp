#include "cli/bench_baselines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/cli/scratch.h"

namespace sundog::cli {
namespace {

// A "Python" that answers as the test says: a shell script that is given the folder and the job.
class FakePython {
 public:
  explicit FakePython(const std::string& script)
      : path_(scratch_.write("python", "#!/bin/bash\n" + script)) {
    chmod(path_.c_str(), 0755);
  }
  BaselineRun run(const std::vector<std::string>& rows, double seconds = 20) const {
    BaselineJob job;
    job.methods = {"eager"};
    const Program program;
    for (const std::string& row : rows) job.rows.push_back({row, &program, "", "", ""});
    return run_baselines(path_, job, {.seconds = seconds});
  }

 private:
  Scratch scratch_;
  std::string path_;
};

TEST(BenchBaselines, TimesAndReasonsAreRead) {
  BaselineRun run;
  const auto begun = take_answers(
      "{\"machine\": {\"torch\": \"2.11\", \"clocks\": {\"sm\": \"1980 MHz\"}}}\n"
      "{\"begin\": \"a\"}\n"
      "{\"row\": \"a\", \"methods\": [{\"method\": \"eager\", \"right\": true, \"part\": false, "
      "\"cold_us\": 2.5, \"warm_us\": 2, \"error\": 1e-3, \"note\": \"\"}, {\"method\": \"sdpa\", "
      "\"right\": false, \"cold_us\": null, \"note\": \"not run: no attention in it\"}], "
      "\"texts\": {\"eager\": \"def compute(): pass\", \"sdpa\": null}}\n"
      "not JSON\n{\"begin\": \"b\"}\n",
      run);
  EXPECT_EQ(begun, "b");
  EXPECT_EQ(run.machine.at("torch"), "2.11");
  EXPECT_EQ(run.machine.at("clocks.sm"), "1980 MHz");
  ASSERT_EQ(run.rows.size(), 1u);
  ASSERT_EQ(run.rows[0].methods.size(), 2u);
  EXPECT_EQ(run.rows[0].methods[0].cold_us, 2.5);
  EXPECT_EQ(run.rows[0].methods[0].error, 1e-3);
  EXPECT_TRUE(run.rows[0].methods[0].right);
  EXPECT_FALSE(run.rows[0].methods[1].cold_us.has_value());
  EXPECT_EQ(run.rows[0].methods[1].note, "not run: no attention in it");
  EXPECT_EQ(run.rows[0].texts.count("sdpa"), 0u);
}

// The script answers for every row of the job but dies at one.
constexpr char kDiesAtB[] = R"(
for name in $(grep -oE '"name": ?"[a-c]"' "$3" | grep -oE '[a-c]"' | tr -d '"'); do
  echo "{\"begin\": \"$name\"}"
  if [[ $name == b ]]; then echo "b is bad" >&2; kill -SEGV $$; fi
  echo "{\"row\": \"$name\", \"methods\": []}"
done
)";

TEST(BenchBaselines, ARowThatCrashesCostsItself) {
  const BaselineRun run = FakePython(kDiesAtB).run({"a", "b", "c"});
  ASSERT_EQ(run.rows.size(), 3u) << run.not_run;
  EXPECT_EQ(run.rows[0].failure, "");
  EXPECT_EQ(run.rows[1].row, "b");
  EXPECT_NE(run.rows[1].failure.find("signal 11"), std::string::npos) << run.rows[1].failure;
  EXPECT_NE(run.rows[1].failure.find("b is bad"), std::string::npos) << run.rows[1].failure;
  EXPECT_EQ(run.rows[2].row, "c");
  EXPECT_EQ(run.rows[2].failure, "");
}

TEST(BenchBaselines, ARowThatHangsIsEndedByTheClock) {
  const BaselineRun run = FakePython("echo '{\"begin\": \"a\"}'; sleep 100").run({"a"}, 0.5);
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_NE(run.rows[0].failure.find("exceeded"), std::string::npos) << run.rows[0].failure;
}

TEST(BenchBaselines, WithoutAPythonThatWorksThereIsAReason) {
  const BaselineRun broken =
      FakePython("echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1").run({"a"});
  EXPECT_TRUE(broken.rows.empty());
  EXPECT_NE(broken.not_run.find("No module named 'torch'"), std::string::npos) << broken.not_run;
  BaselineJob job;
  const Program program;
  job.rows.push_back({"a", &program, "", "", ""});
  const BaselineRun none = run_baselines("/no/such/python", job, {.seconds = 5});
  EXPECT_NE(none.not_run.find("/no/such/python"), std::string::npos) << none.not_run;
}

}  // namespace
}  // namespace sundog::cli
