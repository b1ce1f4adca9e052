// Several sources become one translation unit, each in a namespace of its own, because starting the
// compiler and reading the headers costs more than a kernel does.  The primitives stand outside of
// the namespaces and come precompiled: their include guard turns the pasted text into nothing. That
// is sound only while the pasted text is ours, hence compare_primitives.
#include "codegen/emulator_source.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "codegen/source_words.h"

namespace sundog::codegen {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) {
      line.remove_suffix(1);
    }
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::vector<std::string> find_kernels(std::string_view source) {
  std::vector<std::string> kernels;
  SourceWords scanner(source);
  std::string_view before, word;
  while (auto next = scanner.next()) {
    before = word;
    word = *next;
    if (word != "__global__" || before == ">") continue;
    // Attributes with arguments may follow; the name is the word before the list of parameters.
    std::string_view name;
    int depth = 0;
    for (auto token = scanner.next(); token; token = scanner.next()) {
      word = *token;
      if (word == "(" && depth == 0 && name != "__launch_bounds__" && name != "__cluster_dims__") {
        break;
      }
      if (word == "(") ++depth;
      if (word == ")") --depth;
      if (depth == 0 && is_word_character(word[0])) name = word;
      if (word == ";" || word == "{") break;
    }
    if (word == "(" && !name.empty()) {
      const std::string text(name);
      if (std::find(kernels.begin(), kernels.end(), text) == kernels.end()) kernels.push_back(text);
    }
  }
  return kernels;
}

PrimitivesText compare_primitives(std::string_view source, std::string_view ours) {
  constexpr std::string_view kStart = "#ifndef SUNDOG_PRIMITIVES_CUH";
  constexpr std::string_view kEnd = "#endif  // SUNDOG_PRIMITIVES_CUH";
  const size_t start = source.find(kStart);
  if (start == std::string_view::npos) return PrimitivesText::kIncluded;
  const size_t end = source.find(kEnd, start);
  if (end == std::string_view::npos) return PrimitivesText::kForeign;
  const std::vector<std::string_view> known = lines_of(ours);
  size_t at = 0;
  for (std::string_view line : lines_of(source.substr(start, end - start))) {
    while (at < known.size() && known[at] != line) ++at;
    if (at == known.size()) return PrimitivesText::kForeign;
    ++at;
  }
  return PrimitivesText::kOurs;
}

std::string without_c_linkage(std::string_view source) {
  constexpr std::string_view kLinkage = "extern \"C\"";
  std::string text;
  for (size_t at = 0; at < source.size();) {
    const size_t found = source.find(kLinkage, at);
    text += source.substr(at, found == std::string_view::npos ? found : found - at);
    if (found == std::string_view::npos) break;
    text += "extern \"C++\"";
    at = found + kLinkage.size();
  }
  return text;
}

std::string module_text(const std::vector<std::vector<std::string>>& kernels,
                        bool foreign_primitives) {
  std::string text;
  if (!foreign_primitives) text += "#include \"prelude.h\"\n";
  for (size_t unit = 0; unit < kernels.size(); ++unit) {
    const std::string number = std::to_string(unit);
    const std::string include = "#include \"unit_" + number + ".cu\"\n";
    text += foreign_primitives ? include : "namespace unit_" + number + " {\n" + include + "}\n";
  }
  text +=
      "namespace sd::emulator {\nextern const Kernel kKernels[];\nconst Kernel kKernels[] = {\n";
  int count = 0;
  for (size_t unit = 0; unit < kernels.size(); ++unit) {
    for (const std::string& kernel : kernels[unit]) {
      const std::string number = std::to_string(unit);
      const std::string invoke =
          "Invoke<&::" + (foreign_primitives ? "" : "unit_" + number + "::") + kernel + ">";
      text += "    {\"" + kernel + "\", " + number + ", " + invoke + "::kParameters, " + invoke +
              "::call},\n";
      ++count;
    }
  }
  text += "};\nextern const int kKernelCount;\nconst int kKernelCount = " + std::to_string(count) +
          ";\nextern const bool kChecked;\n#ifdef SUNDOG_EMULATOR_CHECKED\nconst bool kChecked = "
          "true;\n#else\nconst bool kChecked = false;\n#endif\n}\n";
  return text;
}

}  // namespace sundog::codegen
