#include "cli/search_files.h"

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
  if (is_folder(path)) path += "/" + std::string(kCheckpointFile);
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

}  // namespace sundog::cli
