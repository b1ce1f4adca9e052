// Reads what `optimize --trace` wrote: in sum, or event by event.
#include "search/trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/json.h"

namespace sundog::cli {
namespace {

using search::TaskTrace;
using search::TraceEvent;
using search::TraceHead;
using search::TraceKind;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, std::isfinite(value) ? "%.4g" : "inf", value);
  return text;
}

struct Counts {
  std::array<uint64_t, 7> events{};  // by kind
  std::array<uint64_t, search::kPruneRules> cuts{};
  uint64_t tasks = 0, rounds = 0;
  double best_us = HUGE_VAL;  // of the structures told
  std::map<int, std::array<uint64_t, search::kPruneRules>> cuts_by_depth;

  void add(const TaskTrace& task) {
    ++tasks;
    rounds = std::max(rounds, task.round + 1);
    int depth = 0;
    for (const TraceEvent& e : task.events) {
      ++events[static_cast<size_t>(e.kind)];
      if (e.kind < TraceKind::kCut) depth = e.depth + 1;
      if (e.kind == TraceKind::kStructure) best_us = std::min<double>(best_us, e.us);
      if (e.kind != TraceKind::kCut) continue;
      ++cuts[static_cast<size_t>(e.rule)];
      ++cuts_by_depth[depth][static_cast<size_t>(e.rule)];
    }
  }
};

constexpr std::array<const char*, 7> kKinds = {"kernel", "compute", "load",     "shape",
                                               "cut",    "price",   "structure"};

std::string summary_text(const TraceHead& head, const Counts& counts) {
  std::string text = head.program + "for " + head.device + "\n" + std::to_string(counts.rounds) +
                     " rounds, " + std::to_string(counts.tasks) + " tasks, best structure " +
                     number(counts.best_us) + " us\n";
  for (size_t k = 0; k < kKinds.size(); ++k) {
    text += "  " + std::string(kKinds[k]) + " " + std::to_string(counts.events[k]) + "\n";
  }
  text += "pruned after so many decisions:\n";
  for (const auto& [depth, cuts] : counts.cuts_by_depth) {
    text += "  " + std::to_string(depth) + ":";
    for (int r = 0; r < search::kPruneRules; ++r) {
      const uint64_t n = cuts[static_cast<size_t>(r)];
      if (n == 0) continue;
      text +=
          "  " + std::string(name_of(static_cast<search::PruneRule>(r))) + " " + std::to_string(n);
    }
    text += "\n";
  }
  return text;
}

std::string summary_json(const TraceHead& head, const Counts& counts) {
  JsonWriter json;
  json.begin_object();
  json.key("program").value(head.program).key("target").value(head.device);
  json.key("rounds").value(static_cast<int64_t>(counts.rounds));
  json.key("tasks").value(static_cast<int64_t>(counts.tasks));
  json.key("best_us").value(counts.best_us);
  json.key("events").begin_object();
  for (size_t k = 0; k < kKinds.size(); ++k) {
    json.key(kKinds[k]).value(static_cast<int64_t>(counts.events[k]));
  }
  json.end_object().key("pruned").begin_object();
  for (int r = 0; r < search::kPruneRules; ++r) {
    json.key(name_of(static_cast<search::PruneRule>(r)))
        .value(static_cast<int64_t>(counts.cuts[static_cast<size_t>(r)]));
  }
  json.end_object().end_object();
  return json.text();
}

// "t4[n, d]"; ranks of a file that does not know them are written as they are.
std::string term(const TraceHead& head, int bank, const TraceEvent& e) {
  const auto b = static_cast<size_t>(bank), r = static_cast<size_t>(e.term);
  if (b >= head.banks.size() || r >= head.banks[b].size()) return "#" + std::to_string(e.term);
  const search::TermText& t = head.banks[b][r];
  std::string text = t.name + "[" + t.axes + "]";
  if (e.kind == TraceKind::kCompute && e.index < t.nodes.size()) text += " = " + t.nodes[e.index];
  return text;
}

std::string event_text(const TraceHead& head, int bank, const TraceEvent& e) {
  switch (e.kind) {
    case TraceKind::kOutputs:
      return "kernel for " + term(head, bank, e) + ", others " + std::to_string(e.index);
    case TraceKind::kCompute:
      return "compute " + term(head, bank, e);
    case TraceKind::kLoad:
      return "load " + term(head, bank, e);
    case TraceKind::kShape:
      return "shape " + std::to_string(e.index);
    case TraceKind::kCut:
      return std::string("cut: ") + name_of(e.rule) +
             (e.us > 0 ? " at " + number(e.us) + " us" : "");
    case TraceKind::kPrice:
      return "price " + number(e.us) + " us";
    case TraceKind::kStructure:
      return "structure " + number(e.us) + " us";
  }
  return "";
}

Status print_events(const TraceHead& head, const TaskTrace& task) {
  std::string text = "round " + std::to_string(task.round) + ", bank " + std::to_string(task.bank) +
                     ", at most " + std::to_string(task.kernels) + " kernels, to beat " +
                     number(task.best_us) + " us\n";
  size_t depth = 0;
  for (const TraceEvent& e : task.events) {
    if (e.kind < TraceKind::kCut) depth = e.depth;
    const size_t indent = 2 + 2 * (e.kind < TraceKind::kCut ? depth : depth + 1);
    text += std::string(indent, ' ') + event_text(head, task.bank, e) + "\n";
  }
  return write_output(text);
}

}  // namespace

int trace(const Invocation& invocation) {
  const Result<std::string> bytes =
      read_file(invocation.operands[0], invocation.bytes("input-bytes"));
  if (!bytes.ok()) return fail(bytes.error());
  TraceHead head;
  Counts counts;
  Status printed;
  const bool events = invocation.flag("events");
  search::TraceReader reader;
  reader.head = [&](const TraceHead& h) { head = h; };
  reader.task = [&](const TaskTrace& task) {
    counts.add(task);
    if (events && printed.ok()) printed = print_events(head, task);
  };
  bool whole = true;
  if (Status read = search::read_trace(*bytes, reader, &whole); !read.ok()) {
    Error error = read.error();
    error.message = invocation.operands[0] + ": " + error.message;
    return fail(error);
  }
  if (!whole) note("sundog: the last record of " + invocation.operands[0] + " is cut short");
  if (!events) {
    printed = write_output(invocation.flag("json") ? summary_json(head, counts)
                                                   : summary_text(head, counts));
  }
  return printed.ok() ? 0 : fail(printed.error());
}

}  // namespace sundog::cli
