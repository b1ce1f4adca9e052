// The plot of `sundog bench`: a block of horizontal bars a row, as long as the time of a method
// over that of the row's best library.
#include <algorithm>
#include <cstdio>

#include "cli/bench_report.h"

namespace sundog::cli {
namespace {

constexpr double kBar = 11, kGap = 10, kLabels = 250, kBars = 420, kTop = 40, kMost = 3;

struct Color {
  std::string_view method, color;
};
constexpr Color kColors[] = {
    {"sundog", "#e07b39"},   {"triton", "#8a6fb0"},        {"eager", "#9aa5b1"},
    {"sdpa", "#7d8894"},     {"compile", "#8fb0d9"},       {"compile_sdpa", "#7399c6"},
    {"autotune", "#5b7db1"}, {"autotune_sdpa", "#46659a"}, {"cublas", "#c9ced4"}};

std::string_view color_of(const std::string& method) {
  for (const Color& each : kColors) {
    if (each.method == method) return each.color;
  }
  return "#444444";
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else
      result += c;
  }
  return result;
}

class Svg {
 public:
  void text(double x, double y, const std::string& text, const char* style) {
    char place[96];
    std::snprintf(place, sizeof place, "<text x=\"%.1f\" y=\"%.1f\" ", x, y);
    body_ += place + std::string(style) + ">" + escaped(text) + "</text>\n";
  }
  void bar(double x, double y, double width, std::string_view color) {
    char rectangle[160];
    std::snprintf(rectangle, sizeof rectangle,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%.*s\"/>\n", x,
                  y, width, kBar - 2, static_cast<int>(color.size()), color.data());
    body_ += rectangle;
  }
  void rule(double x, double top, double bottom) {
    char line[128];
    std::snprintf(line, sizeof line,
                  "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#000\" "
                  "stroke-width=\"0.6\"/>\n",
                  x, top, x, bottom);
    body_ += line;
  }
  std::string whole(double width, double height) const {
    char head[160];
    std::snprintf(head, sizeof head,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "font-family=\"sans-serif\" font-size=\"9\">\n",
                  width, height);
    return head + body_ + "</svg>\n";
  }

 private:
  std::string body_;
};

constexpr const char* kRight = "text-anchor=\"end\"";
constexpr const char* kBold = "font-weight=\"bold\"";

}  // namespace

std::string bench_plot(const BenchReport& report) {
  Svg svg;
  const auto machine = report.machine.find("gpu");
  svg.text(8, 16,
           (machine == report.machine.end() ? "a CPU: no times of a GPU" : machine->second) +
               std::string(": time over that of the best library, and us; less is better"),
           kBold);
  double y = kTop;
  for (const BenchRow& row : report.rows) {
    const MethodResult* best = best_library(row);
    if (best == nullptr) continue;
    const double unit = *compared_us(*best);
    svg.text(8, y + kBar - 3, row.name, kBold);
    svg.text(8, y + 2 * kBar - 3, row.dtype + " " + row.sizes, "fill=\"#555\"");
    for (const MethodResult& method : row.methods) {
      const std::optional<double> us = method.part ? method.cold_us : compared_us(method);
      if (!us) continue;
      const double share = *us / unit;
      svg.bar(kLabels, y, std::min(share, kMost) / kMost * kBars, color_of(method.method));
      char value[64];
      std::snprintf(value, sizeof value, "%.2f%s", *us, share > kMost ? " (beyond the plot)" : "");
      svg.text(kLabels - 4, y + kBar - 3, method.method, kRight);
      svg.text(kLabels + std::min(share, kMost) / kMost * kBars + 3, y + kBar - 3, value, "");
      y += kBar;
    }
    y += kGap;
  }
  svg.rule(kLabels + kBars / kMost, kTop - 4, y - kGap);
  return svg.whole(kLabels + kBars + 120, y + 10);
}

}  // namespace sundog::cli
