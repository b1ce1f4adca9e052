// The folder that `optimize` writes, as a whole or not at all: the files go to a hidden folder
// beside it, which takes its place by one rename once everything is on the disk.  A folder that
// holds anything but a result is never replaced.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sundog::cli {

struct ResultFile {
  std::string name;  // one of result_file_names()
  std::string content;
};

inline constexpr std::string_view kKernelFile = "best.cu";
inline constexpr std::string_view kMuGraphFile = "best.mu";
inline constexpr std::string_view kProgramFile = "program.sd";
inline constexpr std::string_view kResultFile = "result.pb";
inline constexpr std::string_view kReportFile = "report.html";

// Whether a result could be written to `folder`; tells before the search instead of after it.
Status check_result_folder(const std::string& folder);

// Writes the files, replacing an earlier result.  After an error `folder` is as it was.
Status write_result_folder(const std::string& folder, const std::vector<ResultFile>& files);

// Makes the folders above a file that is to be written.
Status make_parents(const std::string& path);

// Writes one file, with the folders above it, so that it is there as a whole or not at all; "-" is
// standard output.
Status write_file(const std::string& path, std::string_view content);

}  // namespace sundog::cli
