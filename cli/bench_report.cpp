#include "cli/bench_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/json.h"

namespace sundog::cli {
namespace {

constexpr std::string_view kSundog = "sundog", kTriton = "triton";

const MethodResult* method_of(const BenchRow& row, std::string_view name) {
  for (const MethodResult& method : row.methods) {
    if (method.method == name) return &method;
  }
  return nullptr;
}

std::optional<double> least_us(const BenchRow& row) {
  std::optional<double> least;
  for (const MethodResult& method : row.methods) {
    const std::optional<double> us = compared_us(method);
    if (us && (!least || *us < *least)) least = us;
  }
  return least;
}

std::string formatted(const char* format, const std::optional<double>& value) {
  if (!value) return "-";
  char text[48];
  std::snprintf(text, sizeof text, format, *value);
  return text;
}

// Markdown that lines up as plain text.
std::string aligned(const std::vector<std::vector<std::string>>& lines, size_t left_columns) {
  std::vector<size_t> widths(lines.front().size(), 3);
  for (const auto& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string text;
  for (size_t n = 0; n < lines.size(); ++n) {
    text += "|";
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string pad(widths[c] - lines[n][c].size(), ' ');
      text += " " + (c < left_columns ? lines[n][c] + pad : pad + lines[n][c]) + " |";
    }
    text += "\n";
    if (n > 0) continue;
    text += "|";
    for (size_t c = 0; c < widths.size(); ++c) {
      text += std::string(widths[c] + (c < left_columns ? 2 : 1), '-') +
              (c < left_columns ? "|" : ":|");
    }
    text += "\n";
  }
  return text;
}

void write_method(JsonWriter& json, const MethodResult& method, std::optional<double> least) {
  const std::optional<double> us = compared_us(method);
  json.begin_object().key("method").value(method.method).key("part").value(method.part);
  json.key("right").value(method.right).key("cold_us").value(method.cold_us);
  json.key("warm_us").value(method.warm_us).key("cold_spread").value(method.cold_spread);
  json.key("warm_spread").value(method.warm_spread).key("percent_of_best");
  json.value(us && least ? std::optional<double>(100 * *least / *us) : std::nullopt);
  json.key("error").value(method.error).key("prepare_s").value(method.prepare_s);
  json.key("note").value(method.note).end_object();
}

void write_texts(JsonWriter& json, const char* key,
                 const std::map<std::string, std::string>& texts) {
  json.key(key).begin_object();
  for (const auto& [name, text] : texts) json.key(name).value(text);
  json.end_object();
}

void write_row(JsonWriter& json, const BenchRow& row) {
  json.begin_object().key("name").value(row.name).key("program").value(row.program);
  json.key("sizes").value(row.sizes).key("dtype").value(row.dtype);
  json.key("structure").value(row.structure).key("failure").value(row.failure);
  json.key("predicted_us").value(row.predicted_us).key("harness").begin_object();
  json.key("cold_us").value(row.harness.cold_us).key("warm_us").value(row.harness.warm_us);
  json.key("unfused_cold_us").value(row.harness.unfused_cold_us);
  json.key("unfused_warm_us").value(row.harness.unfused_warm_us);
  json.key("error").value(row.harness.error).end_object().key("methods").begin_array();
  const std::optional<double> least = least_us(row);
  for (const MethodResult& method : row.methods) write_method(json, method, least);
  json.end_array();
  const MethodResult* best = best_library(row);
  json.key("best_library").value(best ? std::optional<std::string>(best->method) : std::nullopt);
  write_texts(json, "clocks", row.clocks);
  write_texts(json, "texts", row.texts);
  json.end_object();
}

const std::vector<std::string> kCompiled = {"compile", "autotune"};

std::string summary(const BenchReport& report) {
  std::string text;
  const auto line = [&](const char* what, const std::vector<std::string>& prefixes) {
    const Speedup speedup = speedup_over(report, prefixes);
    if (speedup.rows == 0) return;
    char buffer[160];
    std::snprintf(buffer, sizeof buffer,
                  "sundog over the best of %s: %.2f times as fast, geometric mean of %d rows\n",
                  what, speedup.mean, speedup.rows);
    text += buffer;
  };
  line("all libraries", {});
  line("torch.compile", kCompiled);
  return text;
}

}  // namespace

std::optional<double> compared_us(const MethodResult& method) {
  if (!method.right || method.part) return std::nullopt;
  return method.cold_us ? method.cold_us : method.warm_us;
}

const MethodResult* best_library(const BenchRow& row, const std::vector<std::string>& prefixes) {
  const MethodResult* best = nullptr;
  for (const MethodResult& method : row.methods) {
    if (method.method == kSundog || method.method == kTriton || !compared_us(method)) continue;
    const bool meant = prefixes.empty() ||
                       std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& word) {
                         return method.method.starts_with(word);
                       });
    if (meant && (best == nullptr || *compared_us(method) < *compared_us(*best))) best = &method;
  }
  return best;
}

Speedup speedup_over(const BenchReport& report, const std::vector<std::string>& prefixes) {
  double logarithms = 0;
  int rows = 0;
  for (const BenchRow& row : report.rows) {
    const MethodResult* ours = method_of(row, kSundog);
    const MethodResult* best = best_library(row, prefixes);
    if (ours == nullptr || best == nullptr || !compared_us(*ours)) continue;
    logarithms += std::log(*compared_us(*best) / *compared_us(*ours));
    ++rows;
  }
  return {rows > 0 ? std::exp(logarithms / rows) : 0, rows};
}

std::string bench_table(const BenchReport& report) {
  std::vector<std::vector<std::string>> lines = {
      {"program", "shape", "dtype", "method", "cold us", "warm us", "of best", "error"}};
  std::string remarks;
  for (const BenchRow& row : report.rows) {
    const std::optional<double> least = least_us(row);
    if (!row.failure.empty()) remarks += row.name + ": " + row.failure + "\n";
    bool first = true;
    for (const MethodResult& method : row.methods) {
      const std::string where = row.name + ", " + method.method + ": ";
      if (!method.cold_us && !method.warm_us) {
        if (!method.note.starts_with("not run: no ")) remarks += where + method.note + "\n";
        if (!method.error) continue;
      }
      const std::optional<double> us = compared_us(method);
      const auto percent = us && least ? std::optional<double>(100 * *least / *us) : std::nullopt;
      const std::string share = method.part     ? "a part"
                                : !method.right ? "wrong"
                                                : formatted("%.0f %%", percent);
      lines.push_back({first ? row.name : "", first ? row.sizes : "", first ? row.dtype : "",
                       method.method, formatted("%.2f", method.cold_us),
                       formatted("%.2f", method.warm_us), share, formatted("%.1e", method.error)});
      first = false;
    }
  }
  std::string text = aligned(lines, 4);
  for (const std::string& note : report.notes) text += note + "\n";
  return text + remarks + summary(report);
}

std::string bench_json(const BenchReport& report) {
  JsonWriter json;
  json.begin_object().key("target").value(report.target).key("gpu").value(report.gpu);
  write_texts(json, "machine", report.machine);
  json.key("notes").begin_array();
  for (const std::string& note : report.notes) json.value(note);
  json.end_array().key("rows").begin_array();
  for (const BenchRow& row : report.rows) write_row(json, row);
  json.end_array().key("speedup").begin_object();
  const auto mean = [&](const char* key, const std::vector<std::string>& prefixes) {
    const Speedup speedup = speedup_over(report, prefixes);
    json.key(key).begin_object().key("geometric_mean");
    json.value(speedup.rows > 0 ? std::optional<double>(speedup.mean) : std::nullopt);
    json.key("rows").value(speedup.rows).end_object();
  };
  mean("over_libraries", {});
  mean("over_torch_compile", kCompiled);
  json.end_object().end_object();
  return json.text() + "\n";
}

}  // namespace sundog::cli
