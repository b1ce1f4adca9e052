// Why a rename and not, say, a marker written last: whoever looks at the folder (a build system, a
// second `sundog run`, a person after Ctrl-C) needs to know no convention.  Signals that end the
// tool are held back while the hidden folder exists, so that it is left behind only by SIGKILL or a
// power cut.
#include "cli/result_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cli/console.h"
#include "cli/files.h"

namespace sundog::cli {
namespace {

namespace fs = std::filesystem;

Error cannot(const std::string& what, const std::string& path, int number) {
  std::string hint;
  if (number == ENOSPC || number == EDQUOT) hint = "the disk is full: --out names another place";
  if (number == EACCES || number == EPERM || number == EROFS) hint = "--out names another place";
  if (number == EFBIG) hint = "the limit on file sizes (ulimit -f) is too low";
  return io_error("cannot " + what + " " + path + ": " + std::strerror(number), std::move(hint));
}

// Holds SIGINT, SIGTERM and SIGHUP back while it lives.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, number);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// A folder that is removed with everything in it unless `kept`.
struct TemporaryFolder {
  std::string path;
  bool kept = false;
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty() && !kept) fs::remove_all(path, ignored);
  }
};

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// What stands in the way of replacing `folder`, if anything.
Status check_replaceable(const std::string& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) {
    // A name that leads nowhere is free, unless it is a broken link.
    if (errno == ENOENT && !exists(folder)) return {};
    return cannot("write to", folder, errno);
  }
  if (!S_ISDIR(status.st_mode)) return io_error(folder + " is no folder", "--out names another");
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return cannot("write to", folder, errno);
  bool whole = false;
  std::optional<std::string> other;
  int count = 0;
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    ++count;
    whole |= name == kResultFile;
    const bool ours = name == kKernelFile || name == kMuGraphFile || name == kProgramFile ||
                      name == kResultFile || name == kReportFile;
    if (!ours && !other) other = name;
  }
  closedir(entries);
  if (count == 0 || (whole && !other)) return {};
  return io_error(folder + " holds something else than a result" +
                      (other ? " (" + *other + ")" : std::string()),
                  "--out names a new or empty folder, or an earlier result");
}

Status make_temporary(const std::string& folder, TemporaryFolder& temporary) {
  std::string name = parent_of(folder) + "/." + file_name(folder) + ".unfinished-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) return cannot("write in", parent_of(folder), errno);
  temporary.path = name;
  return {};
}

Status write_whole(const std::string& path, const std::string& shown, std::string_view content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return cannot("write", shown, errno);
  int failure = 0;
  while (!content.empty() && failure == 0) {
    const ssize_t size = write(fd, content.data(), content.size());
    if (size >= 0) {
      content.remove_prefix(static_cast<size_t>(size));
    } else if (errno != EINTR) {
      failure = errno;
    }
  }
  if (failure == 0 && fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) failure = errno;
  if (close(fd) != 0 && failure == 0) failure = errno;
  if (failure != 0) {
    unlink(path.c_str());
    return cannot("write", shown, failure);
  }
  return {};
}

// Puts `fresh` where `folder` is; what was there goes.
Status put_in_place(const std::string& fresh, const std::string& folder) {
  if (rename(fresh.c_str(), folder.c_str()) == 0) return {};  // free, or an empty folder
  if (errno != ENOTEMPTY && errno != EEXIST) return cannot("write", folder, errno);
  // Exchanging the two leaves no moment without a result; not every file system can.
  if (syscall(SYS_renameat2, AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) ==
      0) {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    return {};
  }
  const std::string old = fresh + "-old";
  if (rename(folder.c_str(), old.c_str()) != 0) return cannot("replace", folder, errno);
  if (rename(fresh.c_str(), folder.c_str()) != 0) {
    const int number = errno;
    if (rename(old.c_str(), folder.c_str()) != 0) {
      return io_error("cannot put " + old + " back to " + folder + ": " + std::strerror(errno));
    }
    return cannot("write", folder, number);
  }
  std::error_code ignored;
  fs::remove_all(old, ignored);
  return {};
}

// The folder itself where `path` is a link to one: a rename would replace the link.
std::string resolved(const std::string& path) {
  std::string folder = without_slashes(path);
  if (char* real = realpath(folder.c_str(), nullptr); real != nullptr) {
    folder = real;
    std::free(real);
  }
  return folder;
}

}  // namespace

Status check_result_folder(const std::string& path) {
  const std::string folder = resolved(path);
  SUNDOG_RETURN_IF_ERROR(check_replaceable(folder));
  // Where the parents do not exist yet, the nearest one that does must let us write.
  std::string parent = parent_of(folder);
  while (!exists(parent) && parent != "." && parent != "/") parent = parent_of(parent);
  const SignalsHeld held;
  TemporaryFolder probe;
  return make_temporary(parent + "/" + file_name(folder), probe);
}

Status write_result_folder(const std::string& path, const std::vector<ResultFile>& files) {
  const std::string folder = resolved(path);
  SUNDOG_RETURN_IF_ERROR(check_replaceable(folder));
  SUNDOG_RETURN_IF_ERROR(make_parents(folder));
  const SignalsHeld held;
  TemporaryFolder temporary;
  SUNDOG_RETURN_IF_ERROR(make_temporary(folder, temporary));
  for (const ResultFile& file : files) {
    SUNDOG_RETURN_IF_ERROR(
        write_whole(temporary.path + "/" + file.name, path + "/" + file.name, file.content));
  }
  const mode_t mask = umask(0);
  umask(mask);
  if (chmod(temporary.path.c_str(), 0777 & ~mask) != 0) return cannot("write", folder, errno);
  SUNDOG_RETURN_IF_ERROR(put_in_place(temporary.path, folder));
  temporary.kept = true;
  return {};
}

Status make_parents(const std::string& path) {
  std::error_code error;
  fs::create_directories(parent_of(path), error);
  return error ? cannot("make", parent_of(path), error.value()) : Status();
}

Status write_file(const std::string& path, std::string_view content) {
  if (path == "-") return write_output(content);
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (S_ISDIR(status.st_mode)) return io_error(path + " is a folder", "name a file");
    // A device or a pipe has nothing to keep whole, and must not be replaced by a file.
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return cannot("write", path, errno);
    const int failure = write_to(fd, content);
    close(fd);
    return failure == 0 ? Status() : cannot("write", path, failure);
  }
  const std::string target = exists(path) ? resolved(path) : path;
  SUNDOG_RETURN_IF_ERROR(make_parents(target));
  const SignalsHeld held;
  const std::string hidden =
      parent_of(target) + "/." + file_name(target) + ".unfinished-" + std::to_string(getpid());
  SUNDOG_RETURN_IF_ERROR(write_whole(hidden, path, content));
  if (rename(hidden.c_str(), target.c_str()) != 0) {
    const int number = errno;
    unlink(hidden.c_str());
    return cannot("write", path, number);
  }
  return {};
}

}  // namespace sundog::cli
