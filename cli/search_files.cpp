#include "cli/search_files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "cli/console.h"
#include "cli/files.h"
#include "cli/result_folder.h"
#include "search/checkpoint.h"
#include "search/space_text.h"

namespace sundog::cli {
namespace {

constexpr int64_t kMostSpaceBytes = 1 << 20;
constexpr int64_t kMostCheckpointBytes = int64_t{1} << 30;
constexpr std::string_view kCheckpointFile = "search.checkpoint";

}  // namespace

Result<search::SearchSpace> read_space(const std::string& path) {
  const Result<std::string> text = read_file(path, kMostSpaceBytes);
  if (!text.ok()) return text.error();
  return search::parse_space(*text, path);
}

Status take_space(const Invocation& invocation, search::SearchSpace* space) {
  const std::string path = invocation.text("space");
  if (path.empty()) return {};
  const Result<search::SearchSpace> read = read_space(path);
  if (!read.ok()) return read.error();
  *space = *read;
  return {};
}

Status take_checkpoint(const Invocation& invocation, PipelineOptions* options) {
  std::string path = invocation.text("checkpoint");
  if (path.empty()) return {};
  if (is_folder(path) || path.ends_with('/')) path += "/" + std::string(kCheckpointFile);
  if (exists(path) && !is_regular(path)) {
    return bad_input(path + " is no file that a checkpoint could be read from", "name a new file");
  }
  if (exists(path)) {
    Result<std::string> bytes = read_file(path, kMostCheckpointBytes);
    if (!bytes.ok()) return bytes.error();
    if (!bytes->empty() && !search::is_checkpoint(*bytes)) {
      return bad_input(path + " is no checkpoint of a search", "name a new file");
    }
    options->resume = std::move(*bytes);
  } else {
    SUNDOG_RETURN_IF_ERROR(write_file(path, ""));  // an error now, not after minutes
  }
  options->save_every_s = invocation.seconds("checkpoint-every");
  options->save = [path, told = false](const std::string& bytes) mutable {
    const Status written = write_file(path, bytes);
    if (!written.ok() && !std::exchange(told, true)) {
      note("sundog: no checkpoint: " + written.error().message);
    }
  };
  return {};
}

Status take_trace(const Invocation& invocation, PipelineOptions* options) {
  const std::string path = invocation.text("trace");
  if (path.empty()) return {};
  SUNDOG_RETURN_IF_ERROR(make_parents(path));
  const auto file = std::make_shared<std::ofstream>(path, std::ios::binary | std::ios::trunc);
  if (!*file) return io_error("cannot write " + path + ": " + std::strerror(errno));
  const auto write = [file, path](const std::string& bytes) {
    if (!*file) return;  // told already
    errno = 0;
    file->write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file->flush();
    if (!*file)
      note("sundog: the trace ends early: cannot write " + path + ": " + std::strerror(errno));
  };
  options->trace.head = [write](const search::TraceHead& head) {
    write(search::trace_bytes(head));
  };
  options->trace.task = [write](const search::TaskTrace& task) {
    write(search::trace_bytes(task));
  };
  return {};
}

}  // namespace sundog::cli
