// The text is read as lines.  At the level of namespaces a line either belongs to the frame
// (preprocessor, namespaces, aliases), or begins a declaration, which goes on to the line that ends
// it with all brackets closed.  A declaration is known by the name that it declares; overloads and
// specialisations of one name are kept or left together.  Nothing of C++ beyond that is understood,
// and nothing has to be: a declaration too many is harmless, and one too few does not compile.
#include "codegen/select_primitives.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "codegen/source_words.h"

namespace sundog::codegen {
namespace {

enum class Kind { kFrame, kBlank, kHeading, kDeclaration };

struct Item {
  Kind kind = Kind::kFrame;
  std::string text;  // whole lines, comments in front included
  std::string name;  // of a declaration
};

using Words = std::set<std::string, std::less<>>;

Words words_of(std::string_view text) {
  Words words;
  SourceWords scanner(text);
  while (const auto word = scanner.next()) words.insert(std::string(*word));
  return words;
}

// Words behind `sd::`, and behind `detail::` for primitives of ours.
Words primitives_in(std::string_view source) {
  Words words;
  SourceWords scanner(source);
  std::string_view last[3];
  while (const auto word = scanner.next()) {
    if (last[0] == "sd" && last[1] == ":" && last[2] == ":") words.insert(std::string(*word));
    last[0] = last[1];
    last[1] = last[2];
    last[2] = *word;
  }
  return words;
}

// The word in front of the parameters of a function, or of the body of a struct; template arguments
// of a specialisation stand between.
std::string declared_name(std::string_view text) {
  SourceWords scanner(text);
  std::string name, before;
  int angles = 0, brackets = 0;
  bool of_struct = false;
  while (const auto next = scanner.next()) {
    const std::string word(*next);
    if (word == "<") ++angles;
    if (word == ">") --angles;
    if (angles > 0 || word == ">") continue;
    if (word == "struct") of_struct = true;
    const bool skipped = before == "alignas";
    if (word == "(" && brackets++ == 0 && !of_struct && !skipped && !name.empty()) return name;
    if (word == ")") --brackets;
    if (brackets == 0 && (word == "{" || word == ";" || word == "=" || word == ":")) return name;
    if (brackets == 0 && is_word_character(word[0]) && word != "alignas") name = word;
    before = word;
  }
  return name;
}

bool is_frame(std::string_view line) {
  for (const char* start : {"#", "namespace ", "}", "using ", "typedef "}) {
    if (line.starts_with(start)) return true;
  }
  return false;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Item> read() {
    while (!text_.empty()) {
      const std::string line = take();
      if (line == "\n") {
        flush();
        items_.push_back({Kind::kBlank, line, {}});
      } else if (line.starts_with("// ---")) {
        flush();
        items_.push_back({Kind::kHeading, line, {}});
      } else if (line.starts_with("//")) {
        comment_ += line;
      } else if (is_frame(line)) {
        frame(line);
      } else if (line.starts_with("SD_") && !line.starts_with("SD_INLINE")) {
        macro(line);
      } else {
        declaration(line);
      }
    }
    flush();
    return std::move(items_);
  }

 private:
  std::string take() {
    const size_t end = std::min(text_.find('\n'), text_.size() - 1) + 1;
    std::string line(text_.substr(0, end));
    text_.remove_prefix(end);
    return line;
  }
  // A comment that belongs to nothing stays.
  void flush() {
    if (!comment_.empty()) items_.push_back({Kind::kFrame, std::move(comment_), {}});
    comment_.clear();
  }
  void frame(std::string line) {
    while (line.size() > 1 && line[line.size() - 2] == '\\' && !text_.empty()) line += take();
    items_.push_back({Kind::kFrame, comment_ + line, {}});
    comment_.clear();
  }
  // A macro that writes declarations, which needs no semicolon.
  void macro(std::string text) {
    while (brackets(text).first != 0 && !text_.empty()) text += take();
    items_.push_back({Kind::kFrame, comment_ + text, {}});
    comment_.clear();
  }
  void declaration(std::string text) {
    while (!ends(text) && !text_.empty()) text += take();
    std::string name = declared_name(text);
    items_.push_back({Kind::kDeclaration, comment_ + text, std::move(name)});
    comment_.clear();
  }
  // With all brackets closed, by a semicolon or a brace.
  static bool ends(std::string_view text) {
    const auto [open, last] = brackets(text);
    return open == 0 && (last == ';' || last == '}');
  }
  // How many are open at the end, and the last character.
  static std::pair<int, char> brackets(std::string_view text) {
    int open = 0;
    char last = 0;
    SourceWords scanner(text);
    while (const auto word = scanner.next()) {
      last = word->front();
      open += last == '(' || last == '{' || last == '[';
      open -= last == ')' || last == '}' || last == ']';
    }
    return {open, last};
  }

  std::string_view text_;
  std::string comment_;
  std::vector<Item> items_;
};

// Words in front of the body of a declaration.
Words head_of(const Item& item) { return words_of(item.text.substr(0, item.text.find('{'))); }

// Which items are needed: the declarations of what is wanted, and of what these mention.  Of the
// overloads and specialisations of a name those for a type of ours only if that type is needed.
std::vector<bool> needed_of(const std::vector<Item>& items, Words wanted) {
  Words types;
  std::vector<Words> heads(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].kind != Kind::kDeclaration) continue;
    heads[i] = head_of(items[i]);
    if (heads[i].contains("struct") && !heads[i].contains("template")) types.insert(items[i].name);
  }
  const auto types_known = [&](size_t i) {
    return std::all_of(types.begin(), types.end(), [&](const std::string& type) {
      return !heads[i].contains(type) || wanted.contains(type);
    });
  };
  std::vector<bool> needed(items.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < items.size(); ++i) {
      if (needed[i] || items[i].kind != Kind::kDeclaration) continue;
      if (!wanted.contains(items[i].name) || !types_known(i)) continue;
      needed[i] = changed = true;
      wanted.merge(words_of(items[i].text));
    }
  }
  return needed;
}

// Without namespaces of nothing, headings over nothing and runs of blank lines.
std::string tidied(const std::vector<Item>& items) {
  std::vector<Item> kept;
  const auto drop_blanks = [&kept] {
    while (!kept.empty() && kept.back().kind == Kind::kBlank) kept.pop_back();
  };
  const auto opens = [](const Item& i) { return i.text.starts_with("namespace "); };
  const auto closes = [](const Item& i) { return i.text.starts_with("}  // namespace"); };
  for (const Item& item : items) {
    if (item.kind == Kind::kBlank && (kept.empty() || kept.back().kind == Kind::kBlank)) continue;
    const bool ends_section = item.kind == Kind::kHeading || closes(item);
    if (ends_section) {
      drop_blanks();
      if (!kept.empty() && kept.back().kind == Kind::kHeading) {
        kept.pop_back();
        drop_blanks();
      }
      if (closes(item) && !kept.empty() && opens(kept.back())) {
        kept.pop_back();
        continue;
      }
      if (!kept.empty()) kept.push_back({Kind::kBlank, "\n", {}});
    }
    kept.push_back(item);
  }
  std::string text;
  for (const Item& item : kept) text += item.text;
  return text;
}

}  // namespace

std::string select_primitives(std::string_view primitives, std::string_view source,
                              std::string_view inside) {
  std::vector<Item> items = Reader(primitives).read();
  Words wanted = primitives_in(source);
  wanted.merge(words_of(inside));
  const std::vector<bool> needed = needed_of(items, std::move(wanted));
  std::vector<Item> kept;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].kind != Kind::kDeclaration || needed[i]) kept.push_back(std::move(items[i]));
  }
  return tidied(kept);
}

std::string select_sections(std::string_view primitives, std::string_view source) {
  std::vector<Item> items = Reader(primitives).read();
  // The section of each item: 0 before the first heading.
  std::vector<size_t> section_of;
  size_t sections = 0;
  for (const Item& item : items) {
    sections += item.kind == Kind::kHeading;
    const bool end = item.text.starts_with("}  // namespace sd\n");
    section_of.push_back(end ? 0 : sections);
    if (end) sections = 0;
  }
  std::vector<bool> kept(items.size() + 1, false);
  kept[0] = true;
  Words words = primitives_in(source);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < items.size(); ++i) {
      if (kept[section_of[i]] || !words.contains(items[i].name)) continue;
      kept[section_of[i]] = changed = true;
      for (size_t j = 0; j < items.size(); ++j) {
        if (section_of[j] == section_of[i]) words.merge(words_of(items[j].text));
      }
    }
  }
  std::vector<Item> left;
  for (size_t i = 0; i < items.size(); ++i) {
    if (kept[section_of[i]]) left.push_back(items[i]);
  }
  return tidied(left);
}

}  // namespace sundog::codegen
