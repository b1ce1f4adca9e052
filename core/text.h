// Program text (.sd) and µGraph text (.mu): reading and printing.  docs/language.md has the
// grammar.
//
//   Result<Program> p = parse_program(text, "rms_norm.sd", {{"b", 16}});
//   Result<MuGraph> g = parse_mugraph(mu_text, "rms_norm.mu", *p);
//   print(*p), print(*g, *p)        // read back, they give the same p and g
//
// Every error carries line, column and, where one can be given, a hint.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog {

// Reads a program.  `defines` replaces values of parameters.  The result satisfies check().  What
// is suspicious but no error (an unused input, a definition that nothing uses) is added to
// `warnings`.
Result<Program> parse_program(std::string_view text, std::string_view file_name,
                              const std::map<std::string, int64_t>& defines = {},
                              std::vector<Error>* warnings = nullptr);

// Reads a µGraph of `program`.  The result satisfies check().
Result<MuGraph> parse_mugraph(std::string_view text, std::string_view file_name,
                              const Program& program);

// The first line `# program: FILE NAME=VALUE ...` of a µGraph text: which program it belongs to.
struct ProgramReference {
  std::string path;  // as written: relative to the folder of the µGraph file
  std::map<std::string, int64_t> defines;
};
std::optional<ProgramReference> program_reference(std::string_view text);

// A line `# rounding: wide|eager` among the first comment lines of a text: what it was made with.
std::optional<Rounding> rounding_reference(std::string_view text);
std::string rounding_line(Rounding rounding);

// The text of a program or µGraph.  Reading it back gives renumbered(p), renumbered(g).
std::string print(const Program& program);
std::string print(const MuGraph& graph, const Program& program);

// The same program or µGraph with its terms numbered in the order of first use, without unused
// ones: what the readers return.
Program renumbered(const Program& program);
MuGraph renumbered(const MuGraph& graph);

// A term on one line, for messages and listings.  Definitions of the program (computations of the
// kernel) are named; a very long term is cut short with "...".
std::string print_term(const Program& program, TermId term);
std::string print_term(const MuGraph& graph, uint32_t kernel, TermId term);
std::string print_index(const Program& program, const IndexExpr& index);
std::string print_index(const MuGraph& graph, uint32_t kernel, const IndexExpr& index);

// Whether `name` may be a name in program text.
bool is_name(std::string_view name);

}  // namespace sundog
