#include "cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sundog::cli {
namespace {

Error cannot(const std::string& what, const std::string& path, int number) {
  return io_error("cannot " + what + " " + path + ": " + std::strerror(number));
}

struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

std::string human_bytes(int64_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  return std::to_string(bytes) + " bytes";
}

// The first word of the text, after space and comments.
std::string_view first_word(std::string_view text) {
  while (!text.empty()) {
    const size_t at = text.find_first_not_of(" \t\r\n;");
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at);
    if (text.front() != '#') break;
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end);
  }
  return text.substr(0, text.find_first_of(" \t\r\n({#"));
}

}  // namespace

Result<std::string> read_file(const std::string& path, int64_t max_bytes) {
  // Without O_NONBLOCK a pipe that nobody writes to would keep us waiting for ever.
  File file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return cannot("read", path, errno);
  struct stat status {};
  if (fstat(file.fd, &status) != 0) return cannot("read", path, errno);
  if (S_ISDIR(status.st_mode)) return io_error(path + " is a folder", "name a file");
  fcntl(file.fd, F_SETFL, 0);
  std::string content;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t size = read(file.fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return cannot("read", path, errno);
    if (size == 0) return content;
    if (static_cast<int64_t>(content.size()) + size > max_bytes) {
      return Error{ErrorCode::kBadInput,
                   path + " is larger than " + human_bytes(max_bytes),
                   "--input-bytes raises the limit",
                   {}};
    }
    content.append(buffer.data(), static_cast<size_t>(size));
  }
}

FileKind kind_of(std::string_view bytes, std::string_view path) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\f') return FileKind::kBinary;
  }
  const std::string_view word = first_word(bytes);
  if (word == "program") return FileKind::kProgram;
  if (word == "ugraph") return FileKind::kMuGraph;
  if (path.ends_with(".pb")) return FileKind::kBinary;
  if (path.ends_with(".sd")) return FileKind::kProgram;
  if (path.ends_with(".mu")) return FileKind::kMuGraph;
  return FileKind::kText;
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_regular(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool exists(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

std::string beside(const std::string& file, const std::string& name) {
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? name : file.substr(0, slash + 1) + name;
}

std::string file_name(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path;
  const size_t slash = path.rfind('/', end);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end + 1 - begin);
}

}  // namespace sundog::cli
