// Scalar code.  Peepholes live here because only here the whole of an expression is seen: 1 /
// sqrt(x) is one instruction, x + (-1) y a subtraction, -max(-x, -y) a minimum.
#include "codegen/cuda_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "core/check.h"

namespace sundog::codegen {

// --- Writer

void Writer::line(std::string_view text) {
  if (text.substr(0, 1) != "#") text_.append(static_cast<size_t>(2 * depth_), ' ');
  text_ += text;
  text_ += '\n';
}

void Writer::open(std::string_view head) {
  line(std::string(head) + (head.empty() ? "{" : " {"));
  ++depth_;
}

void Writer::close(std::string_view tail) {
  --depth_;
  line("}" + std::string(tail));
}

std::string Writer::fresh(std::string_view prefix) {
  std::string name;
  do {
    name = std::string(prefix) + std::to_string(names_++);
  } while (reserved_.contains(name));
  return name;
}

void Writer::rewind(const Mark& mark) {
  text_.resize(mark.size);
  depth_ = mark.depth;
  names_ = mark.names;
}

// --- names and numbers

std::string_view cuda_type(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "sd::f16";
    case DType::kBF16:
      return "sd::bf16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kF8E4M3:
      return "sd::f8e4m3";
    case DType::kF8E5M2:
      return "sd::f8e5m2";
    case DType::kI8:
      return "int8_t";
  }
  SUNDOG_CHECK(false);
}

std::string literal(double value) {
  const float x = static_cast<float>(value);
  if (std::isnan(x)) return "sd::bits_float(0x7fffffffu)";
  if (std::isinf(x)) return x > 0 ? "sd::bits_float(0x7f800000u)" : "sd::bits_float(0xff800000u)";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

std::string identifier(std::string_view name) {
  static const std::set<std::string, std::less<>> kReserved = {
      "alignas",  "and",     "asm",       "auto",      "bool",     "break",    "case",
      "catch",    "char",    "class",     "const",     "continue", "default",  "delete",
      "do",       "double",  "else",      "enum",      "explicit", "export",   "extern",
      "false",    "float",   "for",       "friend",    "goto",     "if",       "inline",
      "int",      "long",    "mutable",   "namespace", "new",      "not",      "operator",
      "or",       "private", "protected", "public",    "register", "return",   "short",
      "signed",   "sizeof",  "static",    "struct",    "switch",   "template", "this",
      "throw",    "true",    "try",       "typedef",   "typeid",   "typename", "union",
      "unsigned", "using",   "virtual",   "void",      "volatile", "while",    "xor",
      "sd",       "lane",    "warp",      "tid",       "arena",    "block",    "threadIdx",
      "blockIdx", "stage",   "v",         "c",         "e",        "ok",       "concept",
      "requires", "float2",  "int2",      "main",      "inputs",   "outputs",  "workspace",
      "stream",   "status",  "i",         "row",       "pair",     "vec",      "ahead",
      "step",     "sum",     "scale",     "now",       "j",        "a",        "b",
      "p",        "word",    "from",      "slot",      "signbit",  "fragment"};
  // Longer keywords, and macros of headers in small letters.
  static const std::set<std::string, std::less<>> kTaken = {"alignof",       "and_eq",
                                                            "assert",        "bitand",
                                                            "bitor",         "char16_t",
                                                            "char32_t",      "char8_t",
                                                            "co_await",      "co_return",
                                                            "co_yield",      "compl",
                                                            "const_cast",    "consteval",
                                                            "constexpr",     "constinit",
                                                            "decltype",      "dynamic_cast",
                                                            "errno",         "linux",
                                                            "noexcept",      "not_eq",
                                                            "nullptr",       "offsetof",
                                                            "or_eq",         "reinterpret_cast",
                                                            "static_assert", "static_cast",
                                                            "stderr",        "stdin",
                                                            "stdout",        "thread_local",
                                                            "unix",          "va_list",
                                                            "wchar_t",       "xor_eq"};
  std::string text;
  for (char ch : name) {
    const bool good =
        (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
    text += good ? ch : '_';
  }
  if (text.empty() || (text[0] >= '0' && text[0] <= '9') || text[0] == '_') text = "x" + text;
  // Macros of headers are all capitals: NULL, NAN, M_PI, INT_MAX.
  const bool shouts = text.size() > 2 && std::none_of(text.begin(), text.end(), [](char ch) {
                        return ch >= 'a' && ch <= 'z';
                      });
  if (shouts || kReserved.contains(text) || kTaken.contains(text)) text += "_";
  return text;
}

std::string entry_name(std::string_view name) {
  // What headers of C, POSIX and CUDA declare for everyone; a linker would take ours for theirs.
  static const std::set<std::string, std::less<>> kDeclared = {
      "abort",     "abs",       "accept",      "access",    "acos",     "acosh",    "alloca",
      "asin",      "asinh",     "atan",        "atan2",     "atanh",    "atexit",   "atof",
      "atoi",      "atol",      "basename",    "bind",      "bsearch",  "cabs",     "calloc",
      "cbrt",      "ceil",      "chdir",       "chmod",     "clearenv", "clock",    "clone",
      "close",     "connect",   "copysign",    "cos",       "cosh",     "cospi",    "creat",
      "ctime",     "daemon",    "difftime",    "dirname",   "div",      "dlclose",  "dlopen",
      "dlsym",     "drem",      "dup",         "ecvt",      "environ",  "erf",      "erfc",
      "erfcinv",   "erfcx",     "erfinv",      "errno",     "exec",     "exit",     "exp",
      "exp10",     "exp2",      "expm1",       "fabs",      "fclose",   "fcvt",     "fdim",
      "ferror",    "fflush",    "ffs",         "fgetc",     "fgets",    "finite",   "floor",
      "fma",       "fmax",      "fmin",        "fmod",      "fopen",    "fork",     "fprintf",
      "fputc",     "fputs",     "fread",       "free",      "frexp",    "fscanf",   "fseek",
      "fstat",     "ftell",     "fwrite",      "gamma",     "gcvt",     "getc",     "getchar",
      "getcpu",    "getdate",   "getenv",      "getline",   "getpid",   "gmtime",   "hypot",
      "ilogb",     "index",     "initstate",   "ioctl",     "isalnum",  "isalpha",  "isascii",
      "isblank",   "isdigit",   "isfinite",    "isgraph",   "isinf",    "islower",  "isnan",
      "isnormal",  "isprint",   "ispunct",     "isspace",   "isupper",  "j0",       "j1",
      "jn",        "kill",      "labs",        "ldexp",     "ldiv",     "lgamma",   "link",
      "listen",    "llabs",     "llmax",       "llmin",     "llrint",   "llround",  "localtime",
      "log",       "log10",     "log1p",       "log2",      "logb",     "lrint",    "lround",
      "lseek",     "malloc",    "max",         "memchr",    "memcmp",   "memcpy",   "memmove",
      "memset",    "min",       "mkdir",       "mktime",    "mmap",     "modf",     "mul24",
      "nan",       "nanosleep", "nearbyint",   "nextafter", "nice",     "norm",     "norm3d",
      "norm4d",    "normcdf",   "normcdfinv",  "open",      "pause",    "perror",   "pipe",
      "poll",      "popen",     "pow",         "printf",    "putc",     "putchar",  "putenv",
      "puts",      "qsort",     "raise",       "rand",      "random",   "rcbrt",    "read",
      "realloc",   "realpath",  "recv",        "remainder", "remove",   "remquo",   "rename",
      "rewind",    "rhypot",    "rindex",      "rint",      "rmdir",    "rnorm",    "rnorm3d",
      "rnorm4d",   "round",     "rsqrt",       "saturate",  "scalb",    "scalbln",  "scalbn",
      "scanf",     "select",    "send",        "setbuf",    "setenv",   "setstate", "shutdown",
      "sigaction", "signal",    "significand", "sin",       "sincos",   "sincospi", "sinh",
      "sinpi",     "sleep",     "snprintf",    "socket",    "splice",   "sprintf",  "sqrt",
      "srand",     "srandom",   "sscanf",      "stat",      "stderr",   "stdin",    "stdout",
      "strcat",    "strchr",    "strcmp",      "strcpy",    "strdup",   "strlen",   "strncmp",
      "strstr",    "strtod",    "strtol",      "swab",      "sync",     "syscall",  "system",
      "tan",       "tanh",      "tee",         "tempnam",   "tgamma",   "time",     "times",
      "tmpfile",   "tmpnam",    "toascii",     "toint",     "tolower",  "toupper",  "trunc",
      "truncate",  "ullmax",    "ullmin",      "umask",     "umax",     "umin",     "uname",
      "ungetc",    "unlink",    "unsetenv",    "unshare",   "usleep",   "utime",    "valloc",
      "vfork",     "wait",      "write",       "y0",        "y1",       "yn"};
  std::string text = identifier(name);
  const bool of_a_type = text.size() > 2 && (text.back() == 'f' || text.back() == 'l');
  const auto is_of = [&](std::string_view prefix) {
    return text.size() > prefix.size() && text.starts_with(prefix) && text[prefix.size()] >= 'A' &&
           text[prefix.size()] <= 'Z';
  };
  if (is_of("cuda") || is_of("cublas") || is_of("cu") || kDeclared.contains(text) ||
      (of_a_type && kDeclared.contains(text.substr(0, text.size() - 1)))) {
    text += "_";
  }
  return text;
}

// --- Linear

void Linear::add(const std::string& name, int64_t coefficient) {
  if (coefficient == 0) return;
  if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos) {
    constant += coefficient * std::stoll(name);
    return;
  }
  for (auto& item : items) {
    if (item.first != name) continue;
    item.second += coefficient;
    std::erase_if(items, [](const auto& i) { return i.second == 0; });
    return;
  }
  items.push_back({name, coefficient});
}

void Linear::add(const Linear& other, int64_t factor) {
  constant += factor * other.constant;
  for (const auto& [name, coefficient] : other.items) add(name, factor * coefficient);
}

std::string Linear::text(bool wide) const {
  std::string result;
  const auto append = [&](bool negative, const std::string& term) {
    if (result.empty()) {
      result = (negative ? "-" : "") + term;
    } else {
      result += (negative ? " - " : " + ") + term;
    }
  };
  for (const auto& [name, coefficient] : items) {
    const int64_t size = std::abs(coefficient);
    const std::string factor = wide ? "static_cast<int64_t>(" + name + ")" : name;
    append(coefficient < 0, size == 1 ? factor : factor + " * " + std::to_string(size));
  }
  if (constant != 0 || result.empty()) append(constant < 0, std::to_string(std::abs(constant)));
  return result;
}

// --- CudaText

namespace {

Text atom(std::string text) { return {std::move(text), 0, {}, {}, {}, {}}; }
Text product(std::string text) { return {std::move(text), 1, {}, {}, {}, {}}; }
Text sum(std::string text) { return {std::move(text), 2, {}, {}, {}, {}}; }

// Constants are folded in double.
Text number(double value) {
  Text x = atom(literal(value));
  x.constant = value;
  if (value < 0 && std::isfinite(static_cast<float>(value))) x.level = 2;
  return x;
}

// An operand of a product, or the right one of a subtraction.
std::string tight(const Text& x) { return x.level <= 1 ? x.text : "(" + x.text + ")"; }
std::string loose(const Text& x) { return x.level <= 2 ? x.text : "(" + x.text + ")"; }

// True if the text can be written twice without computing twice.
bool repeatable(const Text& x) {
  return x.text.find_first_of("(+*/? ") == std::string::npos || x.constant.has_value();
}

// A variable, an element of an array or a number.
bool is_name(const Text& x) { return x.level == 0 && x.text.find('(') == std::string::npos; }

// Counts how often an operator's body reads each operand.
struct UseCount {
  using Value = std::array<int, 3>;
  static Value merge(Value a, const Value& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }
  Value constant(const Number&) const { return {}; }
  Value add(const Value& x, const Value& y) const { return merge(x, y); }
  Value mul(const Value& x, const Value& y) const { return merge(x, y); }
  Value div(const Value& x, const Value& y) const { return merge(x, y); }
  Value exp(const Value& x) const { return x; }
  Value log(const Value& x) const { return x; }
  Value sqrt(const Value& x) const { return x; }
  Value max(const Value& x, const Value& y) const { return merge(x, y); }
  Value cast(DType, const Value& x) const { return x; }
  Value call(const Fn&, const Value& x) const { return x; }
  Value choose(Relation, const Value& l, const Value& r, const Value& t, const Value& e) const {
    return merge(merge(l, r), merge(t, e));
  }
};

}  // namespace

std::string_view relation_text(Relation relation) {
  switch (relation) {
    case Relation::kLess:
      return "<";
    case Relation::kLessEqual:
      return "<=";
    case Relation::kEqual:
      return "==";
    case Relation::kNotEqual:
      return "!=";
  }
  SUNDOG_CHECK(false);
}

Text CudaText::constant(const Number& n) const { return number(n.to_double()); }

Text CudaText::bind(const Text& x) {
  if (repeatable(x)) return x;
  const std::string name = out_.fresh("t");
  out_.line("const float " + name + " = " + x.text + ";");
  return atom(name);
}

// Keeps lines readable and stops repeated squaring from doubling the text.
Text CudaText::shortened(Text x) {
  constexpr size_t kLongest = 70;
  return x.text.size() > kLongest ? bind(x) : x;
}

Text CudaText::apply(const Op& op, std::vector<Text> operands) {
  UseCount counter;
  std::vector<UseCount::Value> marks(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) marks[i][i] = 1;
  const UseCount::Value uses = sundog::apply(counter, op, std::span<const UseCount::Value>(marks));
  for (size_t i = 0; i < operands.size(); ++i) {
    if (uses[i] > 1) operands[i] = bind(operands[i]);
  }
  return sundog::apply(*this, op, std::span<const Text>(operands));
}

// x - y, y being an atom.
Text CudaText::difference(const Text& x, const std::string& y) {
  Text text = shortened(sum(loose(x) + " - " + y));
  if (text.level == 0) return text;  // has a name now
  text.minuend = x.text;
  text.subtrahend = y;
  text.multiplicand = x.multiplicand;
  text.multiplier = x.multiplier;
  return text;
}

Text CudaText::add(const Text& x, const Text& y) {
  if (x.constant && y.constant) return number(*x.constant + *y.constant);
  if (!y.negated.empty()) return difference(x, y.negated);
  if (!x.negated.empty()) return difference(y, x.negated);
  return shortened(sum(loose(x) + " + " + tight(y)));
}

Text CudaText::sub(const Text& x, const Text& y) {
  if (x.constant && y.constant) return number(*x.constant - *y.constant);
  if (!y.negated.empty()) return shortened(sum(loose(x) + " + " + y.negated));
  return difference(x, tight(y));
}

Text CudaText::mul(const Text& x, const Text& y) {
  if (x.constant && y.constant) return number(*x.constant * *y.constant);
  if (x.constant && *x.constant == -1) return neg(y);
  if (y.constant && *y.constant == -1) return neg(x);
  if (x.constant && *x.constant == 1) return y;
  if (y.constant && *y.constant == 1) return x;
  if (x.text == y.text && !repeatable(x)) {
    const Text once = bind(x);
    return product(once.text + " * " + once.text);
  }
  Text text = shortened(product(tight(x) + " * " + y.atom()));
  if (text.level > 0 && is_name(x) && is_name(y)) {
    // The factor that is the same for many elements comes second.
    const bool swap = x.text.size() < y.text.size();
    text.multiplicand = swap ? y.text : x.text;
    text.multiplier = swap ? x.text : y.text;
  }
  return text;
}

Text CudaText::div(const Text& x, const Text& y) {
  if (x.constant && y.constant && *y.constant != 0) return number(*x.constant / *y.constant);
  if (!y.root.empty() && x.constant && *x.constant == 1) return atom("sd::rsqrt(" + y.root + ")");
  if (y.constant && *y.constant != 0 && std::isfinite(static_cast<float>(1 / *y.constant))) {
    return mul(x, number(1 / *y.constant));
  }
  if (options_.fast) {
    const Text reciprocal = atom("sd::reciprocal_fast(" + y.text + ")");
    return x.constant && *x.constant == 1 ? reciprocal : mul(x, reciprocal);
  }
  return shortened(atom("sd::div(" + x.text + ", " + y.text + ")"));
}

Text CudaText::neg(const Text& x) {
  if (x.constant) return number(-*x.constant);
  if (!x.negated.empty()) return atom(x.negated);
  if (!x.lower[0].empty()) return atom("sd::min(" + x.lower[0] + ", " + x.lower[1] + ")");
  Text y = sum("-" + x.atom());
  y.negated = x.atom();
  return y;
}

Text CudaText::exp(const Text& x) {
  if (x.constant) return number(std::exp(*x.constant));
  if (options_.fast && !x.minuend.empty() && !x.multiplier.empty()) {
    return shortened(atom("sd::exp_scaled_difference_fast(" + x.multiplicand + ", " + x.multiplier +
                          ", " + x.subtrahend + ")"));
  }
  if (options_.fast && !x.minuend.empty()) {
    return shortened(atom("sd::exp_difference_fast(" + x.minuend + ", " + x.subtrahend + ")"));
  }
  return shortened(atom((options_.fast ? "sd::exp_fast(" : "sd::exp(") + x.text + ")"));
}

Text CudaText::log(const Text& x) { return shortened(atom("sd::log(" + x.text + ")")); }

Text CudaText::sqrt(const Text& x) {
  if (x.constant && *x.constant >= 0) return number(std::sqrt(*x.constant));
  Text y = atom("sd::sqrt(" + x.text + ")");
  if (y.text.size() < 100) y.root = x.text;
  return y;
}

Text CudaText::max(const Text& x, const Text& y) {
  if (y.negated == x.text && !x.text.empty()) return atom("sd::abs(" + x.text + ")");
  if (!x.negated.empty() && (!y.negated.empty() || y.constant)) {
    // Minus the lesser of two.
    Text z = atom("sd::max(" + x.text + ", " + y.text + ")");
    z.lower[0] = x.negated;
    z.lower[1] = y.constant ? literal(-*y.constant) : y.negated;
    return z;
  }
  return shortened(atom("sd::max(" + x.text + ", " + y.text + ")"));
}

Text CudaText::cast(DType to, const Text& x) {
  if (!keeps_cast(options_.rounding, to)) return x;
  const std::string type(cuda_type(to));
  return atom("sd::to_float(sd::from_float<" + type + ">(" + x.text + "))");
}

Text CudaText::call(const Fn& fn, const Text& x) {
  return shortened(atom(std::string(fn.cuda) + "(" + x.text + ")"));
}

Text CudaText::choose(Relation relation, const Text& l, const Text& r, const Text& t,
                      const Text& e) {
  return shortened({"(" + loose(l) + " " + std::string(relation_text(relation)) + " " + loose(r) +
                        " ? " + t.text + " : " + e.text + ")",
                    0,
                    {},
                    {},
                    {},
                    {}});
}

}  // namespace sundog::codegen
