// What `optimize` says about what it found: a table for a terminal, JSON, and a page for a browser.
#pragma once

#include <string>
#include <vector>

#include "cli/pipeline.h"
#include "core/device.h"
#include "core/program.h"

namespace sundog::cli {

struct ReportContext {
  const Program& program;
  const Device& device;
  const PipelineResult& result;
  std::string folder;  // where the result lies
  std::string reuse;   // the command that uses it next time
};

std::string table_text(const ReportContext& context);
std::string json_text(const ReportContext& context);
std::string html_text(const ReportContext& context);

}  // namespace sundog::cli
