#include "cli/commands.h"
#include "cli/console.h"
#include "cli/result_folder.h"
#include "cli/search_files.h"
#include "search/space_text.h"

namespace sundog::cli {

int space(const Invocation& invocation) {
  search::SearchSpace space;
  if (!invocation.operands.empty()) {
    const Result<search::SearchSpace> read = read_space(invocation.operands[0]);
    if (!read.ok()) return fail(read.error());
    space = *read;
  }
  const std::string output = invocation.text("output");
  const Status status = write_file(output.empty() ? "-" : output, search::print(space));
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace sundog::cli
