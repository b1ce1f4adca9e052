#include "cli/result_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "core/process.h"
#include "tests/cli/scratch.h"

namespace sundog::cli {
namespace {

namespace fs = std::filesystem;

std::vector<ResultFile> files(const std::string& mark) {
  return {{std::string(kKernelFile), "cuda " + mark}, {std::string(kResultFile), "pb " + mark}};
}

TEST(ResultFolder, IsMadeWithItsParents) {
  const Scratch scratch;
  ASSERT_TRUE(check_result_folder(scratch.path("a/b/out")).ok());
  EXPECT_EQ(scratch.count(), 0) << "the check leaves nothing behind";
  ASSERT_TRUE(write_result_folder(scratch.path("a/b/out"), files("1")).ok());
  EXPECT_EQ(scratch.read("a/b/out/best.cu"), "cuda 1");
  EXPECT_EQ(scratch.count("a/b"), 1);
}

TEST(ResultFolder, ReplacesAnEarlierResultAsAWhole) {
  const Scratch scratch;
  std::vector<ResultFile> first = files("1");
  first.push_back({std::string(kReportFile), "report"});
  ASSERT_TRUE(write_result_folder(scratch.path("out/"), first).ok());
  ASSERT_TRUE(check_result_folder(scratch.path("out")).ok());
  ASSERT_TRUE(write_result_folder(scratch.path("out"), files("2")).ok());
  EXPECT_EQ(scratch.read("out/best.cu"), "cuda 2");
  EXPECT_EQ(scratch.count("out"), 2) << "the report of the first run is gone";
  EXPECT_EQ(scratch.count(), 1);
}

TEST(ResultFolder, FollowsALinkToTheFolder) {
  const Scratch scratch;
  fs::create_directory(scratch.path("real"));
  fs::create_directory_symlink(scratch.path("real"), scratch.path("link"));
  ASSERT_TRUE(write_result_folder(scratch.path("link"), files("1")).ok());
  EXPECT_TRUE(fs::is_symlink(scratch.path("link")));
  EXPECT_EQ(scratch.read("real/best.cu"), "cuda 1");
}

TEST(ResultFolder, NeverReplacesWhatIsNoResult) {
  const Scratch scratch;
  fs::create_directory(scratch.path("notes"));
  scratch.write("notes/diary.txt", "dear diary");
  const Status status = write_result_folder(scratch.path("notes"), files("1"));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("diary.txt"), std::string::npos);
  EXPECT_FALSE(check_result_folder(scratch.path("notes")).ok());
  EXPECT_EQ(scratch.read("notes/diary.txt"), "dear diary");

  // A result to which somebody added a file.
  ASSERT_TRUE(write_result_folder(scratch.path("out"), files("1")).ok());
  scratch.write("out/diary.txt", "dear diary");
  EXPECT_FALSE(write_result_folder(scratch.path("out"), files("2")).ok());
  EXPECT_EQ(scratch.read("out/best.cu"), "cuda 1");

  scratch.write("file", "x");
  EXPECT_FALSE(check_result_folder(scratch.path("file")).ok());
  EXPECT_FALSE(check_result_folder(scratch.path("file/out")).ok());
  EXPECT_FALSE(check_result_folder("/proc/sundog").ok());
  EXPECT_FALSE(write_result_folder("/proc/sundog", files("1")).ok());
}

TEST(ResultFolder, IsUntouchedAfterAFailedWrite) {
  const Scratch scratch;
  ASSERT_TRUE(write_result_folder(scratch.path("out"), files("1")).ok());
  const auto body = [&] {
    handle_signals();
    const rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<ResultFile> large = files("2");
    large[1].content = std::string(1000, 'x');
    const Status status = write_result_folder(scratch.path("out"), large);
    return status.ok() ? std::string("written") : status.error().message + status.error().hint;
  };
  const Result<std::string> message = run_in_child("the test", body, {});
  ASSERT_TRUE(message.ok()) << to_string(message.error());
  EXPECT_NE(message->find("result.pb: File too large"), std::string::npos) << *message;
  EXPECT_NE(message->find("ulimit"), std::string::npos);
  EXPECT_EQ(scratch.read("out/best.cu"), "cuda 1");
  EXPECT_EQ(scratch.count(), 1) << "the hidden folder is gone";
}

TEST(WriteFile, IsWholeOrNotAtAll) {
  const Scratch scratch;
  ASSERT_TRUE(write_file(scratch.path("k.cu"), "one").ok());
  ASSERT_TRUE(write_file(scratch.path("k.cu"), "two").ok());
  EXPECT_EQ(scratch.read("k.cu"), "two");
  EXPECT_EQ(scratch.count(), 1);
  ASSERT_TRUE(write_file(scratch.path("new/er/k.cu"), "x").ok());
  EXPECT_EQ(scratch.read("new/er/k.cu"), "x");
  const Status below = write_file(scratch.path("k.cu/x"), "x");
  ASSERT_FALSE(below.ok());
  EXPECT_NE(below.error().message.find("k.cu"), std::string::npos) << below.error().message;
  EXPECT_FALSE(write_file(scratch.path(), "x").ok());
  const Status full = write_file("/dev/full", "x");
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().message.find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace sundog::cli
