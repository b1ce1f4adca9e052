// A recursive descent parser.  Types are skipped, templates are taken as they stand; what is no
// declaration is an expression.
#include "verify/emitted_syntax.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "core/characters.h"

namespace sundog::verify {
namespace {

struct Token {
  std::string text;
  bool word = false, number = false;
};

// Words take their scopes with them: "sd::cp_async" is one.
std::vector<Token> tokens_of(std::string_view text) {
  static constexpr std::string_view kOperators[] = {
      "<<=", ">>=", "<=", ">=", "==", "!=", "&&", "||", "++", "--",
      "+=",  "-=",  "*=", "/=", "%=", "^=", "&=", "|=", "<<", ">>"};
  std::vector<Token> result;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::string_view rest = text.substr(i);
    size_t size = 1;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
      continue;
    }
    if (rest.starts_with("//") || c == '#') {
      i = std::min(text.size(), text.find('\n', i));
      continue;
    }
    Token token;
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      const auto part = [&](size_t at) {
        const bool sign = (text[at] == '+' || text[at] == '-') && !rest.starts_with("0x") &&
                          (text[at - 1] == 'e' || text[at - 1] == 'E');
        return is_word_character(text[at]) || text[at] == '.' || sign;
      };
      while (i + size < text.size() && part(i + size)) ++size;
      token.number = true;
    } else if (is_word_character(c)) {
      while (i + size < text.size() &&
             (is_word_character(text[i + size]) || text.substr(i + size).starts_with("::") ||
              (text[i + size] == ':' && text[i + size - 1] == ':'))) {
        ++size;
      }
      token.word = true;
    } else {
      for (const std::string_view op : kOperators) {
        if (rest.starts_with(op)) {
          size = op.size();
          break;
        }
      }
    }
    token.text = std::string(rest.substr(0, size));
    result.push_back(std::move(token));
    i += size;
  }
  return result;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<std::vector<EmittedFunction>> run() {
    std::vector<EmittedFunction> result;
    while (at_ < tokens_.size() && !failed_) {
      if (peek() != "__global__") {
        ++at_;
        continue;
      }
      while (peek() != "void" && more()) ++at_;
      EmittedFunction function;
      ++at_;
      if (accept("__cluster_dims__")) {
        function.cluster = peek(1);
        skip_brackets("(", ")");
      }
      if (accept("__launch_bounds__")) skip_brackets("(", ")");
      function.name = word();
      expect("(");
      while (peek() != ")" && more()) function.parameters.push_back(parameter());
      expect(")");
      function.body.push_back(block());
      result.push_back(std::move(function));
    }
    if (failed_) return unsupported("the emitted text is not understood at '" + where_ + "'");
    return result;
  }

 private:
  std::string peek(size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].text : std::string();
  }
  bool more() const { return at_ < tokens_.size() && !failed_; }
  bool accept(std::string_view text) {
    if (peek() != text) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail();
  }
  void fail() {
    if (failed_) return;
    failed_ = true;
    for (size_t i = 0; i < 8 && at_ + i < tokens_.size(); ++i)
      where_ += tokens_[at_ + i].text + " ";
  }
  std::string word() {
    if (!more() || !tokens_[at_].word) fail();
    return failed_ ? std::string() : tokens_[at_++].text;
  }

  // From an opening bracket to the one that closes it; what lies between, without spaces.
  std::string skip_brackets(const std::string& open, const std::string& close) {
    std::string inside;
    expect(open);
    for (int depth = 1; more(); ++at_) {
      if (peek() == open) ++depth;
      if (peek() == close && --depth == 0) break;
      if (open == "<" && peek() == ">>" && (depth -= 2) <= 0) break;
      inside += peek();
    }
    ++at_;
    return inside;
  }

  EmittedFunction::Parameter parameter() {
    EmittedFunction::Parameter result;
    while (more() && peek() != "," && peek() != ")") {
      const std::string text = tokens_[at_++].text;
      if (text == "const" || text == "*" || text.starts_with("__")) continue;
      if (result.type.empty()) {
        result.type = text;
        if (peek() == "<") result.type += "<" + skip_brackets("<", ">") + ">";
      } else {
        result.name = text;
      }
    }
    accept(",");
    return result;
  }

  // --- statements

  EmittedStatement block() {
    EmittedStatement result;
    expect("{");
    while (more() && peek() != "}") {
      for (EmittedStatement& each : statement()) result.body.push_back(std::move(each));
    }
    expect("}");
    return result;
  }

  // A statement as a block.
  EmittedStatement branch() {
    if (peek() == "{") return block();
    EmittedStatement result;
    result.body = statement();
    return result;
  }

  std::vector<EmittedStatement> statement() {
    if (accept(";")) return {};
    while (accept("[")) {  // [[maybe_unused]]
      while (more() && peek() != "]") ++at_;
      accept("]");
      accept("]");
    }
    if (peek() == "{") return {block()};
    if (accept("for")) return {for_statement()};
    if (accept("if")) {
      EmittedStatement result;
      result.kind = EmittedStatement::kIf;
      expect("(");
      result.expressions.push_back(expression());
      expect(")");
      result.body.push_back(branch());
      if (accept("else")) result.body.push_back(branch());
      return {result};
    }
    if (accept("continue")) {
      EmittedStatement result;
      result.kind = EmittedStatement::kContinue;
      expect(";");
      return {result};
    }
    for (const char* other : {"while", "do", "switch", "goto", "return", "break", "asm", "case"}) {
      if (peek() == other) fail();
    }
    if (is_type()) return declaration();
    EmittedStatement result;
    result.kind = EmittedStatement::kExpression;
    result.expressions.push_back(expression());
    expect(";");
    return {result};
  }

  EmittedStatement for_statement() {
    EmittedStatement result;
    result.kind = EmittedStatement::kFor;
    expect("(");
    expect("int");
    result.name = word();
    expect("=");
    result.expressions.push_back(expression());
    expect(";");
    result.expressions.push_back(expression());
    expect(";");
    result.expressions.push_back(expression());
    expect(")");
    result.body.push_back(branch());
    return result;
  }

  bool is_type() const {
    static const std::vector<std::string> kTypes = {
        "const",  "int",     "float", "uint32_t", "uint16_t",   "unsigned", "bool",
        "double", "int64_t", "auto",  "sd::Vec",  "sd::Window", "uint64_t", "int8_t"};
    const std::string text = peek();
    if (std::find(kTypes.begin(), kTypes.end(), text) != kTypes.end()) return true;
    return text.starts_with("sd::") && at_ + 1 < tokens_.size() &&
           (tokens_[at_ + 1].word || tokens_[at_ + 1].text == "*");
  }

  std::string type() {
    std::string result;
    while (accept("const")) {
    }
    result = word();
    if (accept("char")) result += " char";
    if (peek() == "<") result += "<" + skip_brackets("<", ">") + ">";
    while (peek() == "*" || peek() == "const") {
      if (peek() == "*") result += "*";
      ++at_;
    }
    return result;
  }

  std::vector<EmittedStatement> declaration() {
    std::vector<EmittedStatement> results;
    const std::string type_name = type();
    do {
      EmittedStatement result;
      result.kind = EmittedStatement::kDeclaration;
      result.type = type_name;
      result.name = word();
      while (peek() == "[" && !failed_) skip_brackets("[", "]");
      if (accept("=")) {
        if (peek() == "[") return {lambda(std::move(result))};
        if (peek() == "{") {
          skip_brackets("{", "}");
        } else {
          result.expressions.push_back(expression());
        }
      }
      results.push_back(std::move(result));
    } while (accept(","));
    expect(";");
    return results;
  }

  EmittedStatement lambda(EmittedStatement result) {
    result.kind = EmittedStatement::kLambda;
    skip_brackets("[", "]");
    expect("(");
    while (more() && !accept(")")) {
      expect("int");
      result.parameters.push_back(word());
      accept(",");
    }
    result.body.push_back(block());
    expect(";");
    return result;
  }

  // --- expressions

  static int rank(const std::string& op) {
    static const std::map<std::string, int> kRanks = {
        {"*", 10}, {"/", 10}, {"%", 10}, {"+", 9},  {"-", 9},  {"<<", 8},
        {">>", 8}, {"<", 7},  {">", 7},  {"<=", 7}, {">=", 7}, {"==", 6},
        {"!=", 6}, {"&", 5},  {"^", 4},  {"|", 3},  {"&&", 2}, {"||", 1}};
    const auto at = kRanks.find(op);
    return at == kRanks.end() ? 0 : at->second;
  }
  static bool assigns(const std::string& op) {
    return op.size() >= 1 && op.back() == '=' && rank(op) == 0;
  }

  Expression expression() {
    if (++depth_ > 200) fail();
    Expression left = ternary();
    if (assigns(peek())) {
      const std::string op = tokens_[at_++].text;
      left = {Expression::kBinary, op, {}, {std::move(left), expression()}};
    }
    --depth_;
    return left;
  }

  Expression ternary() {
    Expression condition = binary(1);
    if (!accept("?")) return condition;
    Expression yes = expression();
    expect(":");
    Expression no = expression();
    return {Expression::kTernary, "?", {}, {std::move(condition), std::move(yes), std::move(no)}};
  }

  Expression binary(int least) {
    Expression left = unary();
    while (more() && rank(peek()) >= least) {
      const std::string op = tokens_[at_++].text;
      Expression right = binary(rank(op) + 1);
      left = {Expression::kBinary, op, {}, {std::move(left), std::move(right)}};
    }
    return left;
  }

  Expression unary() {
    for (const char* op : {"-", "!", "*", "&", "++", "--", "+"}) {
      if (!accept(op)) continue;
      if (++depth_ > 200) fail();
      Expression operand = unary();
      --depth_;
      return {Expression::kUnary, op, {}, {std::move(operand)}};
    }
    Expression result = primary();
    while (more()) {
      if (accept("[")) {
        Expression index = expression();
        expect("]");
        result = {Expression::kIndex, "", {}, {std::move(result), std::move(index)}};
      } else if (accept(".")) {
        result = {Expression::kUnary, "." + word(), {}, {std::move(result)}};
      } else if (!accept("++")) {
        break;
      }
    }
    return result;
  }

  Expression primary() {
    if (!more()) fail();
    if (failed_) return {};
    if (accept("(")) {
      Expression inner = expression();
      expect(")");
      return inner;
    }
    if (peek() == "{") {  // x = {}
      skip_brackets("{", "}");
      return {Expression::kNumber, "0", {}, {}};
    }
    if (tokens_[at_].number) return {Expression::kNumber, tokens_[at_++].text, {}, {}};
    Expression result{Expression::kName, word(), {}, {}};
    const bool scoped = result.text.starts_with("sd::") || result.text.ends_with("_cast");
    if (scoped && peek() == "<") result.arguments = skip_brackets("<", ">");
    if (!accept("(")) return result;
    result.kind = Expression::kCall;
    while (more() && !accept(")")) {
      result.parts.push_back(expression());
      accept(",");
    }
    return result;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
  std::string where_;
};

}  // namespace

namespace {

// Without what stands in place of a library's kernels.
std::string for_a_device(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find("#ifdef SUNDOG_EMULATOR\n", at), text.size());
    result += text.substr(at, begin - at);
    at = std::min(text.find("#endif", begin), text.size());
  }
  return result;
}

}  // namespace

Result<std::vector<EmittedFunction>> parse_emitted(std::string_view emitted) {
  const std::string without = for_a_device(emitted);
  const std::string_view text = without;
  // Primitives come first; kernels have C names.
  const size_t first = text.find("extern \"C\" __global__");
  if (first == std::string_view::npos) return std::vector<EmittedFunction>();
  const size_t end = text.find("#ifndef __CUDACC_RTC__", first);
  return Parser(tokens_of(text.substr(first, end == std::string_view::npos ? end : end - first)))
      .run();
}

}  // namespace sundog::verify
