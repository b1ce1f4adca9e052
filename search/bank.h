// The bank of terms: what there is to compute on the way to a program's outputs.
//
// A class is a set of equal terms, identified by its values at small sizes in the field image
// (core/field.h), its axes and its range class.  It has views, flattened forms that rewriting works
// on (search/rewrite.h), and nodes, the single steps by which it can be computed.  Placement
// chooses a node for each class that a kernel needs (search/place_kernel.h).
//
// The axes of the bank are factors: a reduced axis of the program has a part (on the grid, its
// partial results are stored), a step (a loop) and a tile; any other axis is whole.  Each factor
// has two values at small sizes, and a sum over it carries a random weight, so that sizes act as
// symbols: what is equal at one size only is not equal here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/field.h"
#include "core/program.h"
#include "search/coefficient.h"
#include "search/range_class.h"

namespace sundog::search {

using ClassId = uint32_t;
inline constexpr ClassId kNoClass = ~ClassId{0};

enum class Level : uint8_t { kWhole, kPart, kStep, kTile };

struct BankAxis {
  AxisId base = 0;  // axis of the program
  Level level = Level::kWhole;
};

// The factors of one axis of the program; kNoAxis where it has none.
inline constexpr AxisId kNoAxis = ~AxisId{0};
struct BaseAxis {
  bool reduced = false;
  AxisId whole = kNoAxis, part = kNoAxis, step = kNoAxis, tile = kNoAxis;
  AxisSet all;
};

enum class ViewKind : uint8_t { kProduct, kLinear, kExp, kReciprocal, kMax, kOpaque };

// kProduct: coefficient * sum[reduced](product of factors); kLinear: sum of coefficients[i] *
// factors[i]; kMax: max[reduced](factors[0]); kOpaque: an operator that no axiom looks into.
struct View {
  ViewKind kind = ViewKind::kProduct;
  Coefficient coefficient;
  AxisSet reduced;
  std::vector<ClassId> factors;           // sorted for products
  std::vector<Coefficient> coefficients;  // kLinear
  uint32_t opaque = 0;                    // kOpaque: index into Bank::opaques()
};

enum class NodeKind : uint8_t {
  kProduct,  // a * b
  kLinear,   // ca * a + cb * b
  kScale,    // ca * a
  kExp,
  kReciprocal,
  kOpaque,
  kSum,        // sum[axis](a)
  kMax,        // max[axis](a)
  kOnlineSum,  // sum[axis](exp(a - max[axis](a)) * b), computed as b arrives
};

struct Node {
  NodeKind kind = NodeKind::kProduct;
  std::vector<ClassId> operands;
  AxisId axis = kNoAxis;
  Coefficient ca, cb;
  uint32_t opaque = 0;
  bool operator==(const Node&) const = default;
};

enum class LeafKind : uint8_t { kNone, kInput, kConstant, kSize, kIndex };

struct TermClass {
  AxisSet axes;
  std::vector<FieldImage::Value> values;  // by the members of `axes`, lowest first, fastest
  RangeClass range = 0;
  LeafKind leaf = LeafKind::kNone;
  TermId term = kNoTerm;     // of a leaf: the program's term
  bool inline_only = false;  // reads that only the select around them makes valid
  bool nonnegative = false;
  bool is_zero = false;
  bool reaches_minus_infinity = false;  // by a mask that writes it
  std::string name;                     // from the program's definitions
  std::vector<View> views;
  std::vector<Node> nodes;
};

// An operator, select or compare that the bank does not look into, at given bank axes.
struct Opaque {
  Term term;  // ApplyTerm, SelectTerm or CompareTerm of the program; its operands are not used
  std::vector<uint64_t> key;
};

struct BankOptions {
  AxisSet parts;  // program axes that get a part factor
  uint64_t seed = 1;
  int64_t shortest_loop = 128;  // reduced axes that are longer get a step factor
  size_t most_classes = 2000;
  Rounding rounding = Rounding::kWide;  // which casts stay
};

class Bank {
 public:
  Bank(const Program& program, const BankOptions& options);

  const Program& program() const { return *program_; }
  const BankOptions& options() const { return options_; }
  const std::vector<BankAxis>& axes() const { return axes_; }
  const BaseAxis& base(AxisId program_axis) const { return bases_[program_axis]; }
  size_t base_count() const { return bases_.size(); }
  const TermClass& operator[](ClassId id) const { return classes_[id]; }
  ClassId size() const { return static_cast<ClassId>(classes_.size()); }
  size_t view_count() const { return view_count_; }
  size_t node_count() const { return node_count_; }
  const Opaque& opaque(uint32_t id) const { return opaques_[id]; }
  // The view of a class as operator O of its factors, if it has one.
  template <class O>
  const View* applied(ClassId id) const {
    for (const View& v : classes_[id].views) {
      if (v.kind != ViewKind::kOpaque) continue;
      const auto* apply = std::get_if<ApplyTerm>(&opaques_[v.opaque].term);
      if (apply != nullptr && std::holds_alternative<O>(apply->op)) return &v;
    }
    return nullptr;
  }
  ClassId one() const { return one_; }
  AxisSet factors(AxisSet program_axes) const;  // all factors of those axes
  bool is_constant(ClassId id) const;           // a number: no axes, made of 1

  // Constructors: each files the result under its value and gives its class, or kNoClass where it
  // cannot be expressed (a coefficient that does not fit, a partial sum of what does not vary).
  ClassId leaf(TermId term);
  // `extra`: bits that the result's range class has besides those of its form.
  ClassId product(Coefficient c, AxisSet reduced, std::vector<ClassId> factors,
                  RangeClass extra = 0);
  ClassId linear(std::vector<std::pair<Coefficient, ClassId>> addends, RangeClass extra = 0);
  ClassId exponential(ClassId x);
  ClassId reciprocal(ClassId x);
  ClassId maximum(AxisSet reduced, ClassId x);
  ClassId opaque(Term term, const std::vector<ClassId>& operands);

  void add_node(ClassId id, Node node);
  void set_name(ClassId id, const std::string& name);
  std::optional<std::string> failure() const { return failure_; }

  // Whether x is <= 0 by construction, as below.
  bool is_bounded_exponent(ClassId x) const;
  // a - max[S](a), or a - (a partial maximum of a): gives (a, max's view) of a difference.
  struct Shifted {
    ClassId from = kNoClass, maximum = kNoClass;
    AxisSet over;
  };
  std::vector<Shifted> shifted_by_maximum(ClassId difference) const;

  // a - M where M is an operator's maximum of several values, m one of them: a itself, or max[S](a)
  // as above.  Gives (a, M, m).
  struct ShiftedByLarger {
    ClassId from = kNoClass, larger = kNoClass, maximum = kNoClass;
  };
  std::vector<ShiftedByLarger> shifted_by_larger(ClassId difference) const;

 private:
  void add_axes();
  void fail(std::string why);
  ClassId file(View view, AxisSet axes, RangeClass extra);
  ClassId intern(AxisSet axes, RangeClass range, std::vector<FieldImage::Value> values);
  void inherit(ClassId id, const View& view);
  RangeClass range_of(const View& view) const;
  bool is_nonnegative(const View& view) const;
  bool is_inline_only(const View& view) const;
  bool reaches_minus_infinity(const View& view) const;
  std::optional<View> maximum_of(const Coefficient& c, ClassId x, ClassId maximum) const;
  std::vector<ClassId> arguments_of_maximum(ClassId id) const;
  void take_out_scales(std::optional<Coefficient>& c, std::vector<ClassId>& factors) const;
  std::pair<Coefficient, ClassId> without_scale(ClassId id) const;
  std::optional<Coefficient> count_of(AxisSet axes) const;

  // bank_values.cpp
  FieldImage::Value value_of(const Coefficient& c);
  FieldImage::Value opaque_value(const Opaque& o, const std::vector<FieldImage::Value>& in,
                                 uint64_t assignment);
  FieldImage::Value leaf_value(const Term& term, uint64_t assignment);
  uint64_t index_key(const IndexExpr& e, uint64_t assignment) const;
  std::vector<FieldImage::Value> values_of(const View& view, AxisSet axes);
  FieldImage::Value value_at(const View& view, uint64_t assignment);
  const FieldImage::Value& at(ClassId id, uint64_t assignment) const;

  const Program* program_;
  BankOptions options_;
  FieldImage field_;
  std::vector<BankAxis> axes_;
  std::vector<BaseAxis> bases_;
  std::vector<FieldImage::Value> weights_;  // of a sum over each axis of the bank
  std::vector<TermClass> classes_;
  std::unordered_map<uint64_t, ClassId> by_value_;
  std::unordered_map<std::string, ClassId> by_view_;
  std::vector<Opaque> opaques_;
  ClassId one_ = 0;
  size_t view_count_ = 0, node_count_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace sundog::search
