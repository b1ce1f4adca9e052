#include "cli/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/cli/scratch.h"

namespace sundog::cli {
namespace {

TEST(Files, ReadsAFileAsItIs) {
  const Scratch scratch;
  const std::string bytes("a\0b\r\n", 5);
  const Result<std::string> read = read_file(scratch.write("x", bytes), 100);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, bytes);
}

TEST(Files, SaysWhatIsWrong) {
  const Scratch scratch;
  const auto message = [](const Result<std::string>& result) {
    return result.ok() ? "read" : result.error().message;
  };
  EXPECT_NE(message(read_file(scratch.path("none"), 100)).find("No such file"), std::string::npos);
  EXPECT_NE(message(read_file(scratch.path(), 100)).find("is a folder"), std::string::npos);
  const std::string large = scratch.write("large", std::string(101, 'x'));
  EXPECT_NE(message(read_file(large, 100)).find("larger than 100 bytes"), std::string::npos);
  EXPECT_TRUE(read_file(large, 101).ok());
  EXPECT_NE(message(read_file("/dev/zero", 1 << 20)).find("larger than 1 MiB"), std::string::npos);
  EXPECT_NE(message(read_file(large + "/x", 100)).find("Not a directory"), std::string::npos);
}

TEST(Files, APipeWithoutAWriterIsEmptyAndDoesNotHang) {
  const Scratch scratch;
  ASSERT_EQ(mkfifo(scratch.path("pipe").c_str(), 0600), 0);
  const Result<std::string> read = read_file(scratch.path("pipe"), 100);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, "");
}

TEST(Files, KindIsToldByContent) {
  EXPECT_EQ(kind_of("# x\n\n program p() {}", "x"), FileKind::kProgram);
  EXPECT_EQ(kind_of("#c\nugraph g of p {}", "x.sd"), FileKind::kMuGraph);
  EXPECT_EQ(kind_of(std::string_view("\x0a\x03\x00", 3), "x.sd"), FileKind::kBinary);
  EXPECT_EQ(kind_of("", "x.pb"), FileKind::kBinary);
  EXPECT_EQ(kind_of("", "x.sd"), FileKind::kProgram);
  EXPECT_EQ(kind_of("programs", "x.mu"), FileKind::kMuGraph);
  EXPECT_EQ(kind_of("hello", "x.txt"), FileKind::kText);
  EXPECT_EQ(kind_of("# only a comment", "x"), FileKind::kText);
  EXPECT_EQ(kind_of("µ", "x"), FileKind::kText) << "UTF-8 is text";
}

TEST(Files, NamesAreTakenApart) {
  EXPECT_EQ(beside("a/b/c.mu", "d"), "a/b/d");
  EXPECT_EQ(beside("c.mu", "d"), "d");
  EXPECT_EQ(file_name("a/b/"), "b");
  EXPECT_EQ(file_name("b"), "b");
  EXPECT_EQ(file_name("/"), "/");
}

}  // namespace
}  // namespace sundog::cli
