#include <unistd.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/cost_table.h"
#include "cli/graph_view.h"
#include "cli/kernel_run.h"
#include "cli/load.h"
#include "cli/result_folder.h"
#include "core/proto.h"
#include "core/schedule/cluster.h"
#include "core/text.h"

namespace sundog::cli {
namespace {

enum class Form { kText, kDot, kProto, kCost };

// Bytes go to files and pipes, the readable form to a terminal.
bool readable(const Invocation& invocation) {
  const std::string output = invocation.text("output");
  return (output.empty() || output == "-") && isatty(STDOUT_FILENO) == 1;
}

std::string shown(const MuGraph& graph, const Program& program, Form form, bool text,
                  const Device& device) {
  switch (form) {
    case Form::kText:
      return print(graph, program);
    case Form::kDot:
      return dot(graph, program);
    case Form::kProto:
      return text ? proto_text(graph) : serialize(graph);
    case Form::kCost:
      return cost_table(graph, device);
  }
  return {};
}

std::string shown(const Program& program, Form form, bool text) {
  switch (form) {
    case Form::kCost:  // refused before
    case Form::kText:
      return print(program);
    case Form::kDot:
      return dot(program);
    case Form::kProto:
      return text ? proto_text(program) : serialize(program);
  }
  return {};
}

// The cost model knows nothing of what a device does not have.
Status priceable(const MuGraph& graph, Form form, const Device& device) {
  return form == Form::kCost ? clusters_run_on(device, graph) : Status();
}

Result<std::string> shown(const StoredResult& result, Form form, bool text, const Invocation& in,
                          const Device& device) {
  const std::vector<StoredCandidate>& all = result.report.candidates;
  if (in.given("candidate")) {
    const auto n = static_cast<size_t>(in.integer("candidate"));
    if (n >= all.size()) {
      return bad_input("this result has " + std::to_string(all.size()) + " candidates, from 0");
    }
    SUNDOG_RETURN_IF_ERROR(priceable(all[n].graph, form, device));
    const std::string graph = shown(all[n].graph, result.program, form, text, device);
    if (form != Form::kText || !all[n].measured_us) return graph;
    return "# measured_us: " + std::to_string(*all[n].measured_us) + "\n" + graph;
  }
  SUNDOG_RETURN_IF_ERROR(priceable(all.front().graph, form, device));
  if (form == Form::kProto) return text ? proto_text(result) : serialize(result);
  const std::string graph = shown(all.front().graph, result.program, form, text, device);
  return form == Form::kText ? print(result.program) + "\n" + graph : graph;
}

Result<std::string> text_of(const Invocation& invocation, Form form) {
  const std::string& path = invocation.operands[0];
  const bool text = readable(invocation);
  const Result<Loadable> kind = kind_of_path(path, invocation);
  if (!kind.ok()) return kind.error();
  if (invocation.given("candidate") && *kind != Loadable::kResult) {
    return bad_input(path + " is no result", "--candidate is one of those that a result holds");
  }
  const Result<Device> device = choose_device(invocation.text("target"), std::nullopt);
  if (!device.ok()) return device.error();
  switch (*kind) {
    case Loadable::kProgram: {
      if (form == Form::kCost) {
        return bad_input(path + " is a program and has no kernels", "give a µGraph or a result");
      }
      const Result<Program> program = load_program(path, invocation);
      if (!program.ok()) return program.error();
      return shown(*program, form, text);
    }
    case Loadable::kMuGraph: {
      const Result<Candidate> candidate = load_mugraph(path, invocation);
      if (!candidate.ok()) return candidate.error();
      if (Status s = priceable(candidate->graph, form, *device); !s.ok()) return s.error();
      return shown(candidate->graph, candidate->program, form, text, *device);
    }
    case Loadable::kResult: {
      const Result<StoredResult> result = load_result_as_made(path, invocation);
      if (!result.ok()) return result.error();
      return shown(*result, form, text, invocation, *device);
    }
  }
  return std::string();
}

}  // namespace

int show(const Invocation& invocation) {
  const bool as_dot = invocation.flag("dot"), as_proto = invocation.flag("proto");
  const bool as_cost = invocation.flag("cost");
  if (as_dot + as_proto + as_cost + invocation.flag("text") > 1) {
    return fail(bad_input("--text, --dot, --proto and --cost exclude one another"));
  }
  const Form form = as_dot     ? Form::kDot
                    : as_proto ? Form::kProto
                    : as_cost  ? Form::kCost
                               : Form::kText;
  const Result<std::string> text = text_of(invocation, form);
  if (!text.ok()) return fail(text.error());
  const std::string output = invocation.text("output");
  const Status status = write_file(output.empty() ? "-" : output, *text);
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace sundog::cli
