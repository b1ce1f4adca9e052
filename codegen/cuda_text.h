// CUDA C++ as text: an algebra over the operator catalog whose values are expressions, index
// arithmetic as linear sums, and a writer that indents.
//
//   Writer out;
//   CudaText a(out);
//   Text y = apply(a, op::Silu{}, {&x, 1});   // x bound to a name first: silu reads it twice
//   out.line("y[i] = " + y.text + ";");
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/algebra.h"
#include "core/axis.h"
#include "core/dtype.h"
#include "core/join.h"
#include "core/op.h"

namespace sundog::codegen {

// Lines of code with indentation.
class Writer {
 public:
  void line(std::string_view text);
  void open(std::string_view head);        // head {
  void close(std::string_view tail = "");  // }tail
  void blank() { text_ += "\n"; }
  const std::string& text() const { return text_; }

  // A name that no other call has given and nobody reserved: prefix with a number.
  std::string fresh(std::string_view prefix);
  void reserve(std::set<std::string> names) { reserved_ = std::move(names); }

  // For trial emission: go back to an earlier state.
  struct Mark {
    size_t size;
    int depth, names;
  };
  Mark mark() const { return {text_.size(), depth_, names_}; }
  void rewind(const Mark& mark);

 private:
  std::string text_;
  int depth_ = 0, names_ = 0;
  std::set<std::string> reserved_;
};

// "sd::f16", "float", "int8_t", ...: the type of an element in memory.
std::string_view cuda_type(DType dtype);
// A float literal: "1.5f"; infinities by their bits.
std::string literal(double value);
// A C identifier from a name of the µGraph: "q.i" becomes "q_i".
std::string identifier(std::string_view name);
// The same for a function with C linkage: "exp" becomes "exp_", for there is one.
std::string entry_name(std::string_view name);

// constant + sum of coefficient * name; the names are atoms of text.
struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<std::string, int64_t>> items;

  static Linear of(std::string name) { return {0, {{std::move(name), 1}}}; }
  static Linear of_constant(int64_t value) { return {value, {}}; }
  void add(const std::string& name, int64_t coefficient);  // a number as name is folded
  void add(const Linear& other, int64_t factor);
  bool is_zero() const { return constant == 0 && items.empty(); }
  // `wide`: in 64 bits.
  std::string text(bool wide = false) const;
};

// An expression of type float.
struct Text {
  std::string text;
  int level = 0;         // how tightly it binds: 0 atom or call, 1 product, 2 sum, 3 anything
  std::string negated;   // not empty: the value is minus this atom
  std::string root;      // not empty: the value is the square root of this
  std::string lower[2];  // not empty: the value is minus the lesser of these
  std::optional<double> constant;
  std::string minuend = {}, subtrahend = {};       // not empty: the value is their difference
  std::string multiplicand = {}, multiplier = {};  // not empty: it, or its minuend, their product

  std::string atom() const { return level == 0 ? text : "(" + text + ")"; }
};

struct CudaTextOptions {
  bool fast = false;                    // approximate exp and division: for results of 16 bits
  Rounding rounding = Rounding::kWide;  // which casts are kept
};

// The algebra.  Long or repeated subexpressions become named temporaries in `out`.
class CudaText {
 public:
  using Value = Text;
  CudaText(Writer& out, CudaTextOptions options) : out_(out), options_(options) {}

  Text constant(const Number& n) const;
  Text add(const Text& x, const Text& y);
  Text sub(const Text& x, const Text& y);
  Text mul(const Text& x, const Text& y);
  Text div(const Text& x, const Text& y);
  Text neg(const Text& x);
  Text exp(const Text& x);
  Text log(const Text& x);
  Text sqrt(const Text& x);
  Text max(const Text& x, const Text& y);
  Text cast(DType to, const Text& x);
  Text call(const Fn& fn, const Text& x);
  Text choose(Relation relation, const Text& l, const Text& r, const Text& t, const Text& e);

  // `x` as a name, number or element that may be repeated.
  Text bind(const Text& x);
  // The operator applied, with operands that it reads more than once bound first.
  Text apply(const Op& op, std::vector<Text> operands);

 private:
  Text shortened(Text x);
  Text difference(const Text& x, const std::string& y);
  Writer& out_;
  CudaTextOptions options_;
};

// "<", "<=", "==" or "!=".
std::string_view relation_text(Relation relation);

}  // namespace sundog::codegen
