#include <unistd.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/graph_view.h"
#include "cli/load.h"
#include "cli/result_folder.h"
#include "core/proto.h"
#include "core/text.h"

namespace sundog::cli {
namespace {

enum class Form { kText, kDot, kProto };

// Bytes go to files and pipes, the readable form to a terminal.
bool readable(const Invocation& invocation) {
  const std::string output = invocation.text("output");
  return (output.empty() || output == "-") && isatty(STDOUT_FILENO) == 1;
}

std::string shown(const Program& program, Form form, bool text) {
  switch (form) {
    case Form::kText:
      return print(program);
    case Form::kDot:
      return dot(program);
    case Form::kProto:
      return text ? proto_text(program) : serialize(program);
  }
  return {};
}

std::string shown(const Candidate& candidate, Form form, bool text) {
  switch (form) {
    case Form::kText:
      return print(candidate.graph, candidate.program);
    case Form::kDot:
      return dot(candidate.graph, candidate.program);
    case Form::kProto:
      return text ? proto_text(candidate.graph) : serialize(candidate.graph);
  }
  return {};
}

std::string shown(const StoredResult& result, Form form, bool text) {
  const StoredCandidate& best = result.report.candidates.front();
  switch (form) {
    case Form::kText:
      return print(result.program) + "\n" + print(best.graph, result.program);
    case Form::kDot:
      return dot(best.graph, result.program);
    case Form::kProto:
      return text ? proto_text(result) : serialize(result);
  }
  return {};
}

Result<std::string> text_of(const Invocation& invocation, Form form) {
  const std::string& path = invocation.operands[0];
  const bool text = readable(invocation);
  const Result<Loadable> kind = kind_of_path(path, invocation);
  if (!kind.ok()) return kind.error();
  switch (*kind) {
    case Loadable::kProgram: {
      const Result<Program> program = load_program(path, invocation);
      if (!program.ok()) return program.error();
      return shown(*program, form, text);
    }
    case Loadable::kMuGraph: {
      const Result<Candidate> candidate = load_mugraph(path, invocation);
      if (!candidate.ok()) return candidate.error();
      return shown(*candidate, form, text);
    }
    case Loadable::kResult: {
      const Result<StoredResult> result = load_result(path, invocation);
      if (!result.ok()) return result.error();
      return shown(*result, form, text);
    }
  }
  return std::string();
}

}  // namespace

int show(const Invocation& invocation) {
  const bool as_dot = invocation.flag("dot"), as_proto = invocation.flag("proto");
  if (as_dot + as_proto + invocation.flag("text") > 1) {
    return fail(bad_input("--text, --dot and --proto exclude one another"));
  }
  const Form form = as_dot ? Form::kDot : as_proto ? Form::kProto : Form::kText;
  const Result<std::string> text = text_of(invocation, form);
  if (!text.ok()) return fail(text.error());
  const std::string output = invocation.text("output");
  const Status status = write_file(output.empty() ? "-" : output, *text);
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace sundog::cli
