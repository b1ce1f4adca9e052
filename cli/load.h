// From the names on a command line to programs and µGraphs.
//
// A µGraph text belongs to a program, which is looked for in this order: --program; its first line
// `# program: FILE NAME=VALUE ...`; the file NAME.sd beside it, where NAME stands behind `of`;
// program.sd beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/result.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::cli {

// A program file; warnings go to standard error.  With `defines` the -D of the command line apply.
Result<Program> load_program(const std::string& path, const Invocation& invocation);

// A µGraph with its program.
struct Candidate {
  Program program;
  MuGraph graph;
  std::optional<Rounding> rounding;  // that its text names
};
Result<Candidate> load_mugraph(const std::string& path, const Invocation& invocation);
// A µGraph of a program that is known, and the rounding that its text names.
struct LoadedGraph {
  MuGraph graph;
  std::optional<Rounding> rounding;
};
Result<LoadedGraph> load_mugraph_of(const std::string& path, const Program& program,
                                    const Invocation& invocation);

// The invocation with the parameters that the first line of a µGraph text gives, where -D does not.
Invocation with_reference(const std::string& path, const Invocation& invocation);

// What --rounding says; where it is not given, what was recorded with the candidate.
Rounding rounding_of(const Invocation& invocation, std::optional<Rounding> recorded = {});

// result.pb, or the folder that holds it.
Result<StoredResult> load_result(const std::string& path, const Invocation& invocation);
// Likewise, for what shows, emits or runs it as it was made: a -D that says something else, and a
// --program, are errors.
Result<StoredResult> load_result_as_made(const std::string& path, const Invocation& invocation);

// What a path is, for commands that take several things.
enum class Loadable { kProgram, kMuGraph, kResult };
Result<Loadable> kind_of_path(const std::string& path, const Invocation& invocation);

}  // namespace sundog::cli
