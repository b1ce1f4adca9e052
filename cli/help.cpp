#include "cli/commands.h"
#include "cli/console.h"

namespace sundog::cli {

int help(const Invocation& invocation) {
  const CommandSpec* command = nullptr;
  if (!invocation.operands.empty()) {
    command = find_command(invocation.operands[0]);
    if (command == nullptr) {
      return fail(bad_input("there is no command '" + invocation.operands[0] + "'",
                            "sundog help lists them"));
    }
  }
  const Status status = write_output(help_text(command));
  return status.ok() ? 0 : fail(status.error());
}

int fail(const Error& error) {
  print_error(error);
  return exit_code(error);
}

}  // namespace sundog::cli
