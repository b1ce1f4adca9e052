// A lock (flock) rather than the number of the process in the name: numbers are used again, and two
// containers that share a temporary directory do not see one another's processes.  Children made by
// fork share the lock until they end or run another program.
#include "core/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace sundog {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "sundog-";
constexpr const char* kLock = ".lock";

// Whether a folder's owner is gone.  One without a lock may just be being made.
bool is_abandoned(const fs::path& folder) {
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  if (status.st_uid != geteuid()) return false;
  const int lock = open((folder / kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (lock < 0) return false;
  const bool free = flock(lock, LOCK_EX | LOCK_NB) == 0;
  close(lock);
  return free;
}

void remove_abandoned(const fs::path& base) {
  std::error_code failed;
  for (fs::directory_iterator at(base, failed), end; !failed && at != end; at.increment(failed)) {
    const fs::path& folder = at->path();
    if (!folder.filename().string().starts_with(kPrefix) || !is_abandoned(folder)) continue;
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
}

Error cannot_make() {
  return io_error("cannot make a temporary folder: " + std::string(std::strerror(errno)),
                  "TMPDIR chooses another place");
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make(std::string_view kind) {
  std::error_code failed;
  fs::path base = fs::temp_directory_path(failed);
  if (failed) base = "/tmp";
  remove_abandoned(base);
  std::string name = (base / (kPrefix + std::string(kind) + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) return cannot_make();
  TemporaryFolder folder;
  folder.path_ = name;
  // Locked under another name first: a lock that others see is held.  A file system without locks
  // only lacks the tidying.
  const fs::path hidden = folder.path_ / ".lock-new";
  folder.lock_ = open(hidden.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (folder.lock_ >= 0 && flock(folder.lock_, LOCK_EX | LOCK_NB) == 0) {
    fs::rename(hidden, folder.path_ / kLock, failed);
  }
  return folder;
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  if (this == &other) return *this;
  remove();
  path_ = std::exchange(other.path_, {});
  lock_ = std::exchange(other.lock_, -1);
  return *this;
}

TemporaryFolder::~TemporaryFolder() { remove(); }

void TemporaryFolder::remove() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace sundog
