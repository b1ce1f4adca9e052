#include "cli/report.h"

#include <algorithm>
#include <cstdio>

#include "cli/evidence.h"
#include "cli/graph_view.h"
#include "cli/json.h"
#include "cli/result_folder.h"
#include "core/text.h"
#include "core/via.h"

namespace sundog::cli {
namespace {

std::string formatted(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string us(std::optional<double> value) {
  return value && *value > 0 ? formatted("%.2f", *value) : "-";
}

std::string padded(std::string text, size_t width, bool right = false) {
  if (text.size() >= width) return text;
  return right ? std::string(width - text.size(), ' ') + text
               : text + std::string(width - text.size(), ' ');
}

const Row& best_of(const PipelineResult& result) { return result.rows[result.best]; }

const Row* unfused_of(const PipelineResult& result) {
  for (const Row& row : result.rows) {
    if (row.unfused) return &row;
  }
  return nullptr;
}

std::string status_of(const PipelineResult& result, size_t i) {
  const Row& row = result.rows[i];
  if (!row.dropped.empty()) return "dropped: " + row.dropped;
  return i == result.best ? "best" : "";
}

// How many candidates went which way, on one line.
std::string summary(const PipelineResult& result) {
  size_t usable = 0, timed = 0;
  for (const Row& row : result.rows) {
    usable += row.dropped.empty();
    timed += row.gpu.has_value();
  }
  return std::to_string(result.rows.size()) + " candidates: " + std::to_string(usable) +
         " usable, " + std::to_string(result.rows.size() - usable) + " dropped, " +
         std::to_string(timed) + " timed";
}

// "NVRTC 13.0, 54 registers, no spills".
std::string compiled_line(const Row& row) {
  int registers = 0;
  int64_t spilled = 0;
  for (const codegen::KernelResources& kernel : row.resources) {
    registers = std::max(registers, kernel.registers);
    spilled += kernel.spill_store_bytes + kernel.spill_load_bytes;
  }
  return row.compiler + ", " + std::to_string(registers) + " registers, " +
         (spilled == 0 ? "no spills" : std::to_string(spilled) + " bytes spilled");
}

void write_compiled(JsonWriter& json, const Row& row) {
  if (row.compiler.empty()) {
    json.null();
    return;
  }
  json.begin_object().key("compiler").value(row.compiler).key("kernels").begin_array();
  for (const codegen::KernelResources& kernel : row.resources) {
    json.begin_object().key("name").value(kernel.name).key("registers").value(kernel.registers);
    json.key("spill_bytes").value(kernel.spill_store_bytes + kernel.spill_load_bytes);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_files(JsonWriter& json, const std::string& folder) {
  json.begin_object().key("folder").value(folder);
  const std::pair<const char*, std::string_view> files[] = {{"cuda", kKernelFile},
                                                            {"mugraph", kMuGraphFile},
                                                            {"program", kProgramFile},
                                                            {"result", kResultFile},
                                                            {"report", kReportFile}};
  for (const auto& [key, name] : files) json.key(key).value(folder + "/" + std::string(name));
  json.end_object();
}

// Under the cost model, and proved: nothing can be below the bound.  A space that is exhausted is
// no proof, since what it leaves out was never priced.
bool is_optimal(const PipelineResult& result) {
  return result.report.bound_us > 0 && gap_of(result) <= 1e-9;
}

std::string stop_text(const PipelineResult& result) {
  const std::string& reason = result.report.stop_reason;
  if (is_optimal(result)) return reason + "; optimal under the model";
  if (reason == "exhausted") return "nothing left to look at; not proved optimal";
  if (reason == "budget") return "stopped by the budget of time";
  if (reason == "states") return "stopped by the budget of states";
  if (reason == "memory") return "stopped for want of memory";
  return reason;
}

void write_search(JsonWriter& json, const PipelineResult& result) {
  const StoredReport& report = result.report;
  json.begin_object();
  json.key("states").value(static_cast<int64_t>(report.states));
  json.key("seconds").value(report.seconds);
  json.key("seconds_to_best").value(report.seconds_to_best);
  json.key("resumed").value(report.resumed);
  json.key("stop_reason").value(report.stop_reason);
  json.key("optimal").value(is_optimal(result));
  json.key("bound_us").value(report.bound_us);
  json.key("gap").value(gap_of(result));
  json.key("pruned").begin_object();
  for (const auto& [rule, count] : report.pruned) {
    json.key(rule).value(static_cast<int64_t>(count));
  }
  json.end_object();
  for (const auto& [what, count] : report.counts) {
    json.key(what).value(static_cast<int64_t>(count));
  }
  json.key("kept_undecided").value(static_cast<int64_t>(report.kept_undecided));
  json.key("seed").value(static_cast<int64_t>(report.seed));
  json.end_object();
}

}  // namespace

std::string table_text(const ReportContext& context) {
  const PipelineResult& result = context.result;
  const Row& best = best_of(result);
  std::string text =
      context.program.name + " for " + context.device.name + ", " + result.timing + "\n\n";
  text += "   predicted   measured  structure\n";
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const Row& row = result.rows[i];
    text += (i == result.best ? " * " : "   ") + padded(us(row.candidate.predicted_us), 9, true) +
            padded(us(row.candidate.measured_us), 11, true) + "  " +
            (row.unfused ? "unfused: " : "") + row.candidate.structure + " (" +
            launch_text(row.candidate.graph) + ")\n";
    if (!row.dropped.empty()) text += std::string(25, ' ') + "dropped: " + row.dropped + "\n";
  }
  text += "\n  best       " + us(best.candidate.predicted_us) + " us  bound " +
          us(result.report.bound_us) + " us  gap " + formatted("%.0f", 100 * gap_of(result)) + " %";
  if (const Row* unfused = unfused_of(result)) {
    text += "  unfused " + us(unfused->candidate.predicted_us) + " us";
  }
  text += "  (predicted)\n  verified   " + evidence_line(best.candidate.evidence) + "\n";
  if (result.max_rel_error > 0) {
    text += "  error      " + formatted("%.2e", result.max_rel_error) + " of the row\n";
  }
  if (!best.compiler.empty()) text += "  compiled   " + compiled_line(best) + "\n";
  text += "  search     " + std::to_string(result.report.states) + " states in " +
          formatted("%.2f", result.report.seconds) + " s, " + stop_text(result) + "\n";
  text += "  " + summary(result) + "\n";
  for (const std::string& note : result.notes) text += "  note       " + note + "\n";
  text += "  files      " + context.folder + "/\n";
  return text + "\nnext time: " + context.reuse + "\n";
}

std::string json_text(const ReportContext& context) {
  const PipelineResult& result = context.result;
  const Row& best = best_of(result);
  const Row* unfused = unfused_of(result);
  JsonWriter json;
  json.begin_object();
  json.key("program").value(context.program.name);
  json.key("sizes").value(sizes_text(context.program));
  json.key("target").value(context.device.name);
  json.key("timing").value(result.timing);
  json.key("best").begin_object();
  json.key("kernels").value(int64_t{launch_count(best.candidate.graph)});
  const bool fused = unfused == nullptr ||
                     launch_count(best.candidate.graph) < launch_count(unfused->candidate.graph);
  json.key("fused").value(fused && !best.unfused);
  json.key("predicted_us").value(best.candidate.predicted_us);
  json.key("unfused_predicted_us");
  unfused != nullptr ? json.value(unfused->candidate.predicted_us) : json.null();
  json.key("measured_us").value(best.candidate.measured_us);
  json.key("unfused_measured_us");
  unfused != nullptr ? json.value(unfused->candidate.measured_us) : json.null();
  json.key("warm_us");
  best.gpu ? json.value(best.gpu->timing.warm_us) : json.null();
  json.key("max_rel_error").value(result.max_rel_error);
  json.key("verdict");
  write_evidence(json, best.candidate.evidence);
  json.key("structure").value(best.candidate.structure);
  json.key("compiled");
  write_compiled(json, best);
  json.end_object();
  json.key("candidates").begin_array();
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const Row& row = result.rows[i];
    json.begin_object().key("structure").value(row.candidate.structure);
    json.key("launches").value(launch_text(row.candidate.graph));
    json.key("kernels").value(int64_t{launch_count(row.candidate.graph)});
    json.key("unfused").value(row.unfused);
    json.key("predicted_us").value(row.candidate.predicted_us);
    json.key("measured_us").value(row.candidate.measured_us);
    json.key("best").value(i == result.best);
    json.key("dropped");
    row.dropped.empty() ? json.null() : json.value(row.dropped);
    json.end_object();
  }
  json.end_array().key("search");
  write_search(json, result);
  json.key("notes").begin_array();
  for (const std::string& each : result.notes) json.value(each);
  json.end_array();
  json.key("files");
  write_files(json, context.folder);
  json.key("reuse").value(context.reuse);
  json.end_object();
  return json.text() + "\n";
}

std::string html_text(const ReportContext& context) {
  const PipelineResult& result = context.result;
  const Row& best = best_of(result);
  const std::string title = escaped_xml(context.program.name + " on " + context.device.name);
  std::string text =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>" + title +
      "</title>\n<style>body{font:15px/1.5 system-ui,sans-serif;max-width:1150px;margin:2em auto;"
      "padding:0 1em;color:#222}table{border-collapse:collapse}td,th{padding:.25em .8em;text-align:"
      "left;border-bottom:1px solid #ddd}td.n{text-align:right;font-variant-numeric:tabular-nums}"
      "tr.best{background:#eef7ee;font-weight:600}pre{background:#f7f7f4;padding:1em;overflow:auto}"
      "</style>\n<h1>" +
      title + "</h1>\n<p>" + escaped_xml(sizes_text(context.program)) + ". Predicted " +
      us(best.candidate.predicted_us) + " us, bound " + us(result.report.bound_us) + " us, gap " +
      formatted("%.0f", 100 * gap_of(result)) + " %. " + escaped_xml(result.timing) + ".</p>\n";
  text += "<h2>The best µGraph</h2>\n<p>" + escaped_xml(best.candidate.structure) + "</p>\n" +
          svg(best.candidate.graph, context.program) + "<details><summary>as text</summary><pre>" +
          escaped_xml(print(best.candidate.graph, context.program)) + "</pre></details>\n";
  text +=
      "<h2>Candidates</h2>\n<table><tr><th>structure<th>kernels<th>predicted us<th>measured "
      "us<th>\n";
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const Row& row = result.rows[i];
    text += std::string(i == result.best ? "<tr class=\"best\">" : "<tr>") + "<td>" +
            (row.unfused ? "unfused: " : "") + escaped_xml(row.candidate.structure) +
            "<td class=\"n\">" + std::to_string(launch_count(row.candidate.graph)) +
            "<td class=\"n\">" + us(row.candidate.predicted_us) + "<td class=\"n\">" +
            us(row.candidate.measured_us) + "<td>" + escaped_xml(status_of(result, i)) + "\n";
  }
  const Evidence& evidence = best.candidate.evidence;
  text += "</table>\n<h2>Evidence</h2>\n<p>" + escaped_xml(evidence_line(evidence)) + "</p>\n<p>" +
          escaped_xml(evidence.reason) + "</p>\n";
  if (!evidence.numerics.empty()) {
    text += "<table><tr><th>inputs<th>error<th>error of the plain program\n";
    for (const Evidence::Case& each : evidence.numerics) {
      text += "<tr><td>" + escaped_xml(each.name) + "<td class=\"n\">" +
              formatted("%.2e", each.candidate_error) + "<td class=\"n\">" +
              formatted("%.2e", each.program_error) + "\n";
    }
    text += "</table>\n";
  }
  text += "<h2>Search</h2>\n<p>" + std::to_string(result.report.states) + " states in " +
          formatted("%.2f", result.report.seconds) + " s, " +
          escaped_xml(result.report.stop_reason) + ". " + summary(result) +
          ".</p>\n<h2>Program</h2>\n<pre>" + escaped_xml(print(context.program)) +
          "</pre>\n<p>Next time: <code>" + escaped_xml(context.reuse) + "</code></p>\n</html>\n";
  return text;
}

}  // namespace sundog::cli
