#include "core/temporary_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace sundog {
namespace {

namespace fs = std::filesystem;

// A temporary directory of its own, so that nobody else's folders are counted.
class TemporaryFolderTest : public testing::Test {
 protected:
  TemporaryFolderTest() {
    std::string name = (fs::temp_directory_path() / "temporary-test-XXXXXX").string();
    base_ = mkdtemp(name.data());
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", base_.c_str(), 1);
  }
  ~TemporaryFolderTest() override {
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(base_);
  }
  int folders() const { return static_cast<int>(std::distance(fs::directory_iterator(base_), {})); }
  // Makes a folder in another process, says so, and waits to be killed.
  pid_t owner() {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto folder = TemporaryFolder::make("owner");
      const char byte = folder.ok() ? 'y' : 'n';
      if (write(ready[1], &byte, 1) != 1) _exit(1);
      while (true) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
  }

  fs::path base_;
  std::string before_;
};

TEST_F(TemporaryFolderTest, GoesWithItsOwner) {
  fs::path path;
  {
    auto folder = TemporaryFolder::make("kind");
    ASSERT_TRUE(folder.ok()) << to_string(folder.error());
    path = folder->path();
    EXPECT_TRUE(path.filename().string().starts_with("sundog-kind-"));
    std::ofstream(path / "file") << "text";
    TemporaryFolder moved = std::move(*folder);
    EXPECT_TRUE(fs::exists(moved.path() / "file"));
    auto other = TemporaryFolder::make("kind");
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(folders(), 2) << "a folder in use stays";
    moved = std::move(*other);
    EXPECT_FALSE(fs::exists(path)) << "what is replaced goes";
  }
  EXPECT_EQ(folders(), 0);
}

TEST_F(TemporaryFolderTest, OfAProcessThatWasKilledGoesWithTheNextOne) {
  const pid_t child = owner();
  EXPECT_EQ(folders(), 1);
  {
    const auto folder = TemporaryFolder::make("other");
    ASSERT_TRUE(folder.ok());
    EXPECT_EQ(folders(), 2) << "its owner lives";
  }
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(folders(), 1);
  const auto folder = TemporaryFolder::make("other");
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folders(), 1) << "only the new one";
}

TEST_F(TemporaryFolderTest, OthersAreLeftAlone) {
  fs::create_directory(base_ /
                       "sundog-emulator-abcdef");  // without a lock: not yet made, or not ours
  fs::create_directory(base_ / "elsewhere");
  std::ofstream(base_ / "sundog-file") << "text";
  const auto folder = TemporaryFolder::make("kind");
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folders(), 4);
}

TEST_F(TemporaryFolderTest, SaysWhyThereIsNone) {
  setenv("TMPDIR", (base_ / "missing").c_str(), 1);
  const auto folder = TemporaryFolder::make("kind");
  // The standard library falls back to /tmp where TMPDIR is no folder; either is an answer.
  if (folder.ok()) return;
  EXPECT_NE(folder.error().message.find("temporary folder"), std::string::npos);
}

}  // namespace
}  // namespace sundog
