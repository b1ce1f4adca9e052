#include <algorithm>
#include <set>

#include "core/index_limit.h"
#include "core/text.h"
#include "core/text_limits.h"
#include "core/text_program_syntax.h"
#include "core/text_suggest.h"
#include "core/text_tensor.h"
#include "core/text_terms.h"

// From the syntax of a program to a Program: parameters, then axes (parameters that something uses
// as an axis, in the order of the parameters, factors in the place of what they split), then
// tensors and definitions in the order of the text.

namespace sundog {
namespace text {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 62;

class ProgramBuilder : public Scope {
 public:
  ProgramBuilder(const ProgramSyntax& syntax, const std::map<std::string, int64_t>& defines,
                 Diagnostics& diagnostics)
      : syntax_(syntax),
        defines_(defines),
        diagnostics_(diagnostics),
        builder_(*this, diagnostics) {}

  Program build() {
    program_.name = syntax_.name.text;
    read_parameters();
    make_axes();
    for (const TensorSyntax& input : syntax_.inputs) {
      if (failed()) break;
      claim(input.name);
      program_.inputs.push_back(declare(input, false));
    }
    for (const DefinitionSyntax& definition : syntax_.definitions) {
      if (failed()) break;
      define(definition);
    }
    for (const OutputSyntax& output : syntax_.outputs) {
      if (failed()) break;
      add_output(output);
    }
    if (program_.outputs.empty() && !failed()) {
      diagnostics_.fail(syntax_.name.at, "program '" + program_.name + "' has no output",
                        "add: output NAME: f16[axes]");
    }
    if (!failed()) warn_unused();
    return std::move(program_);
  }

  TermGraph& terms() override { return program_.terms; }

  double reach(const IndexExpr& index) const override {
    return index_reach(index, extents(program_), extents(program_));
  }

  std::vector<AxisId> axes(const Ident& ident) override {
    if (const ProgramSplit* split = find_split(ident.text)) return split->factors;
    if (const auto axis = find_axis(program_, ident.text)) return {*axis};
    unknown_axis(ident);
    return {};
  }

  IndexExpr index(const Ident& ident, AxisSet bound) override {
    if (const ProgramSplit* split = find_split(ident.text)) {
      for (AxisId factor : split->factors) {
        if (!bound.has(factor)) return extent(ident);
      }
      return composite(*split);
    }
    if (const auto axis = find_axis(program_, ident.text)) {
      return bound.has(*axis) ? IndexExpr::of(*axis) : extent(ident);
    }
    if (const Parameter* parameter = find_parameter(ident.text)) {
      return IndexExpr::of_constant(parameter->value);
    }
    if (is_tensor_name(ident.text)) {
      diagnostics_.fail(
          ident.at, "'" + ident.text + "' makes the index depend on data",
          "indices are affine in the axes: gather and scatter by data are not covered",
          ErrorCode::kUnsupported);
    } else {
      unknown_axis(ident);
    }
    return {};
  }

  IndexExpr extent(const Ident& ident) override {
    if (const ProgramSplit* split =
            find_split(ident.text)) {  // sizes are linear: all but one fixed
      int64_t inner = 1;
      for (size_t i = 1; i < split->factors.size(); ++i) inner *= extent_of(split->factors[i]);
      return IndexExpr{0, {}, {{split->factors[0], inner}}};
    }
    if (const auto axis = find_axis(program_, ident.text)) return IndexExpr{0, {}, {{*axis, 1}}};
    if (const Parameter* parameter = find_parameter(ident.text)) {
      return IndexExpr::of_constant(parameter->value);
    }
    unknown_axis(ident);
    return {};
  }

  TermId size(const Ident& ident) override {
    TermId result = kNoTerm;
    for (AxisId axis : axes(ident)) {
      const TermId factor = terms().size(axis);
      result = result == kNoTerm ? factor : terms().apply(op::Mul{}, {result, factor});
    }
    return result == kNoTerm ? builder_.nothing() : result;
  }

  bool is_index_name(std::string_view name) const override {
    return find_split(name) != nullptr || find_axis(program_, name) ||
           find_parameter(name) != nullptr;
  }

  TermId read(const Expr& e, AxisSet bound, const Guards& guards, TermBuilder& builder) override;

 private:
  struct Named {
    TermId value;
    std::vector<AxisId> axes;
    bool used = false;
  };

  bool failed() const { return diagnostics_.failed(); }
  int64_t extent_of(AxisId axis) const { return program_.axes[axis].extent; }

  const Parameter* find_parameter(std::string_view name) const {
    for (const Parameter& p : program_.parameters) {
      if (p.name == name) return &p;
    }
    return nullptr;
  }
  const ProgramSplit* find_split(std::string_view name) const {
    for (const ProgramSplit& split : program_.splits) {
      if (split.axis == name) return &split;
    }
    return nullptr;
  }
  bool is_tensor_name(std::string_view name) const {
    return find_input(program_, name) || named_.contains(std::string(name));
  }

  static IndexExpr composite(const ProgramSplit& split, const std::vector<Axis>& axes) {
    IndexExpr result;
    int64_t stride = 1;
    for (size_t i = split.factors.size(); i-- > 0;) {
      result = result + IndexExpr::of(split.factors[i]) * stride;
      stride *= axes[split.factors[i]].extent;
    }
    return result;
  }
  IndexExpr composite(const ProgramSplit& split) const { return composite(split, program_.axes); }

  std::vector<std::string> axis_names() const {
    std::vector<std::string> names;
    for (const Axis& axis : program_.axes) names.push_back(axis.name);
    for (const ProgramSplit& split : program_.splits) names.push_back(split.axis);
    return names;
  }
  std::vector<std::string> parameter_names() const {
    std::vector<std::string> names;
    for (const Parameter& p : program_.parameters) names.push_back(p.name);
    return names;
  }

  void unknown_axis(const Ident& ident) {
    if (find_parameter(ident.text) != nullptr) {
      return diagnostics_.fail(ident.at, "'" + ident.text + "' is a number, not an axis",
                               "no tensor, definition or reduction uses it as one");
    }
    if (is_tensor_name(ident.text)) {
      return diagnostics_.fail(ident.at, "'" + ident.text + "' is a tensor, not an axis");
    }
    diagnostics_.fail(ident.at, "unknown axis '" + ident.text + "'",
                      suggestion(ident.text, axis_names()));
  }

  // A name may be given once.
  void claim(const Ident& ident) {
    if (failed()) return;
    const auto [at, added] = claimed_.emplace(ident.text, ident.at);
    if (!added) {
      diagnostics_.fail(ident.at, "the name '" + ident.text + "' is used twice",
                        "it is already given in line " + std::to_string(at->second.line));
    }
  }

  void read_parameters();
  void make_axes();
  void add_axis(const std::string& name, int64_t extent, Place at);
  void add_split(const SplitSyntax& split);
  AxisId fresh_axis(AxisId like, Place at);
  TensorDecl declare(const TensorSyntax& tensor, bool written);
  void define(const DefinitionSyntax& definition);
  void add_output(const OutputSyntax& output);
  void check_axes(const std::string& what, TermId value, AxisSet allowed, Place at);
  void check_bounds(const Expr& e, const IndexExpr& index, int64_t extent, const std::string& of,
                    const Guards& guards);
  TermId read_input(const Expr& e, uint32_t input, AxisSet bound, const Guards& guards,
                    TermBuilder& builder);
  TermId read_named(const Expr& e, Named& named, AxisSet bound, const Guards& guards,
                    TermBuilder& builder);
  void unknown_tensor(const Expr& e);
  void warn_unused();

  IntegerOf value_of_parameter() {
    return [this](const Ident& ident) -> std::optional<int64_t> {
      if (const Parameter* p = find_parameter(ident.text)) return p->value;
      diagnostics_.fail(ident.at, "unknown parameter '" + ident.text + "'",
                        suggestion(ident.text, parameter_names()));
      return std::nullopt;
    };
  }

  const ProgramSyntax& syntax_;
  const std::map<std::string, int64_t>& defines_;
  Diagnostics& diagnostics_;
  TermBuilder builder_;
  Program program_;
  std::map<std::string, Place> claimed_;
  std::map<std::string, Named> named_;
};

void ProgramBuilder::read_parameters() {
  for (const ParameterSyntax& parameter : syntax_.parameters) {
    if (failed()) return;
    claim(parameter.name);
    Parameter result;
    result.name = parameter.name.text;
    result.position = diagnostics_.position(parameter.name.at);
    if (const auto given = defines_.find(result.name); given != defines_.end()) {
      result.value = given->second;
    } else if (parameter.value) {
      const auto value = integer_value(*parameter.value, value_of_parameter(), diagnostics_);
      result.value = value.value_or(0);
      if (parameter.value->kind != Expr::Kind::kNumber) {
        result.expression = integer_text(*parameter.value);
        if (literal(*parameter.value)) result.expression.clear();  // a negative number
      }
    } else {
      diagnostics_.fail(parameter.name.at, "parameter '" + result.name + "' has no value",
                        "give one on the command line: -D " + result.name + "=8");
    }
    program_.parameters.push_back(std::move(result));
  }
  for (const auto& [name, value] : defines_) {
    if (failed() || find_parameter(name) != nullptr) continue;
    diagnostics_.fail(
        syntax_.name.at,
        "program '" + program_.name + "' has no parameter '" + excerpt(name) + "', which -D sets",
        suggestion(name, parameter_names()));
  }
}

void ProgramBuilder::add_axis(const std::string& name, int64_t extent, Place at) {
  if (failed()) return;
  if (program_.axes.size() == static_cast<size_t>(kMaxAxes)) {
    return diagnostics_.fail(at, "the program has more than 64 axes", {}, ErrorCode::kUnsupported);
  }
  if (extent < 0 || extent > kMaxExtent) {
    return diagnostics_.fail(at,
                             "axis '" + name + "' cannot have the extent " + std::to_string(extent),
                             extent < 0 ? "extents are not negative" : "extents are at most 2^62");
  }
  program_.axes.push_back({name, extent});
}

void ProgramBuilder::add_split(const SplitSyntax& split) {
  const int64_t extent = find_parameter(split.axis.text)->value;
  const auto extents = split_extents(split, extent, value_of_parameter(), true, diagnostics_);
  if (failed()) return;
  ProgramSplit result{split.axis.text, extent, {}};
  for (size_t i = 0; i < extents.size(); ++i) {
    if (split.factors[i].name.text != split.axis.text) claim(split.factors[i].name);
    result.factors.push_back(static_cast<AxisId>(program_.axes.size()));
    add_axis(split.factors[i].name.text, extents[i], split.factors[i].name.at);
  }
  program_.splits.push_back(std::move(result));
}

void ProgramBuilder::make_axes() {
  std::map<std::string, Place> wanted;
  std::set<std::string> factors;
  for (const SplitSyntax& split : syntax_.splits) {
    for (const FactorSyntax& factor : split.factors) factors.insert(factor.name.text);
  }
  const auto want = [&](const Ident& ident) {
    if (!factors.contains(ident.text)) wanted.emplace(ident.text, ident.at);
  };
  for (const TensorSyntax& tensor : syntax_.inputs) {
    for (const Ident& dim : tensor.dims) want(dim);
  }
  for (const OutputSyntax& output : syntax_.outputs) {
    for (const Ident& dim : output.tensor.dims) want(dim);
    if (output.value) for_each_reduced(*output.value, want);
  }
  for (const DefinitionSyntax& definition : syntax_.definitions) {
    for (const Ident& axis : definition.axes) want(axis);
    for_each_reduced(definition.value, want);
  }
  std::map<std::string, const SplitSyntax*> splits;
  for (const SplitSyntax& split : syntax_.splits) {
    wanted.emplace(split.axis.text, split.axis.at);
    if (!splits.emplace(split.axis.text, &split).second) {
      diagnostics_.fail(split.axis.at, "'" + split.axis.text + "' is split twice",
                        "name all its factors in one split");
    }
  }
  for (const ParameterSyntax& parameter : syntax_.parameters) {
    const auto found = wanted.find(parameter.name.text);
    if (found == wanted.end() || failed()) continue;
    const auto split = splits.find(found->first);
    if (split == splits.end()) {
      add_axis(found->first, find_parameter(found->first)->value, parameter.name.at);
    } else {
      add_split(*split->second);
    }
    wanted.erase(found);
  }
  // Splits are kept in the order of the text.
  const auto place = [&](const ProgramSplit& split) { return splits.at(split.axis); };
  std::sort(program_.splits.begin(), program_.splits.end(),
            [&](const auto& a, const auto& b) { return place(a) < place(b); });
  // The first in the text is the one to report.
  const auto first =
      std::min_element(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.line, a.second.column) <
               std::pair(b.second.line, b.second.column);
      });
  if (first != wanted.end() && !failed()) {
    const auto guess = nearest(first->first, parameter_names());
    diagnostics_.fail(first->second, "unknown axis '" + first->first + "'",
                      guess ? "did you mean '" + *guess + "'?"
                            : "axes are parameters: add it to the list behind 'program " +
                                  program_.name + "', with its extent");
  }
}

AxisId ProgramBuilder::fresh_axis(AxisId like, Place at) {
  const Axis original = program_.axes[like];
  const Parameter* parameter = find_parameter(original.name);
  std::string name = original.name;
  do {
    name += "'";
  } while (claimed_.contains(name) || find_parameter(name) != nullptr || find_axis(program_, name));
  add_axis(name, original.extent, at);
  if (failed()) return like;
  program_.parameters.push_back(
      {name, original.extent, parameter != nullptr ? original.name : std::string()});
  return static_cast<AxisId>(program_.axes.size() - 1);
}

TensorDecl ProgramBuilder::declare(const TensorSyntax& tensor, bool written) {
  TensorDecl result;
  result.name = tensor.name.text;
  result.dtype = tensor.dtype;
  builder_.axis_list(tensor.dims);  // reports unknown and repeated ones
  if (failed()) return result;
  for (const Ident& dim : tensor.dims) {
    const ProgramSplit* split = find_split(dim.text);
    const auto axis = find_axis(program_, dim.text);
    result.dim_names.push_back(dim.text);
    result.dims.push_back(split != nullptr ? composite(*split) : IndexExpr::of(*axis));
    result.extents.push_back(split != nullptr ? split->extent : extent_of(*axis));
  }
  set_attributes(tensor, value_of_parameter(), written, diagnostics_, result);
  return result;
}

void ProgramBuilder::check_axes(const std::string& what, TermId value, AxisSet allowed, Place at) {
  const AxisSet extra = program_.terms.axes(value) - allowed;
  if (extra.empty() || failed()) return;
  const std::string name = program_.axes[*extra.begin()].name;
  diagnostics_.fail(
      at, "the value of " + what + " depends on axis '" + name + "', which its axes do not include",
      "reduce it, as in sum[" + name + "](...), or add it to the axes");
}

void ProgramBuilder::define(const DefinitionSyntax& definition) {
  claim(definition.name);
  const std::vector<AxisId> axes = builder_.axis_list(definition.axes);
  AxisSet bound;
  for (AxisId axis : axes) bound.insert(axis);
  const TermId value = builder_.value(definition.value, bound);
  if (failed()) return;
  check_axes("'" + definition.name.text + "'", value, bound, definition.name.at);
  for (AxisId missing : bound - program_.terms.axes(value)) {
    diagnostics_.warn(definition.name.at, "'" + definition.name.text +
                                              "' does not depend on axis '" +
                                              program_.axes[missing].name + "' on its left");
  }
  named_.emplace(definition.name.text, Named{value, axes});
  if (definition.let) return;
  program_.definitions.push_back(
      {definition.name.text, value, axes, diagnostics_.position(definition.name.at)});
}

void ProgramBuilder::add_output(const OutputSyntax& output) {
  const Ident& name = output.tensor.name;
  const auto named = named_.find(name.text);
  if (output.value || named == named_.end()) claim(name);
  for (const Output& other : program_.outputs) {
    if (other.tensor.name == name.text) {
      diagnostics_.fail(name.at, "two outputs are called '" + name.text + "'");
    }
  }
  Output result;
  result.tensor = declare(output.tensor, true);
  if (failed()) return;
  AxisSet bound;
  for (const IndexExpr& dim : result.tensor.dims) bound |= dim.axis_set();
  if (output.value) {
    result.value = builder_.value(*output.value, bound);
  } else if (named != named_.end()) {
    result.value = named->second.value;
    named->second.used = true;
  } else {
    std::vector<std::string> known;
    for (const auto& [known_name, value] : named_) known.push_back(known_name);
    return diagnostics_.fail(
        name.at, "output '" + name.text + "' names no definition",
        known.empty() ? "define it: " + name.text + "[axes] = ..." : suggestion(name.text, known));
  }
  if (failed()) return;
  check_axes("output '" + name.text + "'", result.value, bound, name.at);
  for (AxisId missing : bound - program_.terms.axes(result.value)) {
    diagnostics_.warn(name.at, "output '" + name.text + "' repeats one value along axis '" +
                                   program_.axes[missing].name + "'");
  }
  program_.outputs.push_back(std::move(result));
}

void ProgramBuilder::check_bounds(const Expr& e, const IndexExpr& index, int64_t extent,
                                  const std::string& of, const Guards& guards) {
  const auto range = guards.range(index, extents(program_));
  if (!range) return;  // no element is read
  const auto [low, high] = *range;
  if (low >= 0 && high < extent) return;
  std::string hint = guards.empty() ? "guard it: select(condition, " + of + "[...], 0)"
                                    : "so it is where the selects around it let it be read";
  if (e.is_plain_name() && index.axes.empty() && !index.sizes.empty()) {
    hint = "'" + e.text + "' is neither on the left nor reduced here, so it stands for its extent";
  }
  const bool always = low >= extent || high < 0;
  diagnostics_.fail(e.at,
                    "this index of '" + of + "' " + (always ? "is" : "can be") +
                        " out of bounds: it runs from " + std::to_string(low) + " to " +
                        std::to_string(high) + ", the extent is " + std::to_string(extent),
                    hint);
}

TermId ProgramBuilder::read(const Expr& e, AxisSet bound, const Guards& guards,
                            TermBuilder& builder) {
  const auto input = find_input(program_, e.text);
  if (input) return read_input(e, *input, bound, guards, builder);
  const auto named = named_.find(e.text);
  if (named != named_.end() && !e.device) {
    return read_named(e, named->second, bound, guards, builder);
  }
  if (!e.has_index && !e.device) {
    const auto axis = find_axis(program_, e.text);
    if (axis || find_split(e.text) != nullptr) {
      if (axis && bound.has(*axis)) {
        diagnostics_.fail(e.at, "'" + e.text + "' is an axis, not a value",
                          "write index(" + e.text + ") or size(" + e.text + ")");
        return builder.nothing();
      }
      return size({e.text, e.at});
    }
    if (const Parameter* parameter = find_parameter(e.text)) {
      return terms().constant(Number(parameter->value));
    }
  }
  unknown_tensor(e);
  return builder.nothing();
}

void ProgramBuilder::unknown_tensor(const Expr& e) {
  for (const DefinitionSyntax& later : syntax_.definitions) {
    if (later.name.text != e.text) continue;
    return diagnostics_.fail(
        e.at, "'" + e.text + "' is used before its definition",
        "it is defined in line " + std::to_string(later.name.at.line) + ": move that up");
  }
  std::vector<std::string> known;
  for (const TensorDecl& input : program_.inputs) known.push_back(input.name);
  for (const auto& [name, value] : named_) known.push_back(name);
  diagnostics_.fail(e.at, "unknown name '" + e.text + "'", suggestion(e.text, known));
}

TermId ProgramBuilder::read_input(const Expr& e, uint32_t input, AxisSet bound,
                                  const Guards& guards, TermBuilder& builder) {
  const TensorDecl& tensor = program_.inputs[input];
  if (!e.has_index) return terms().input(input, tensor.dims);
  if (e.index.size() != tensor.dims.size()) {
    diagnostics_.fail(e.at, "'" + e.text + "' has " + std::to_string(tensor.dims.size()) +
                                " dimensions and is read with " + std::to_string(e.index.size()));
    return builder.nothing();
  }
  std::vector<IndexExpr> index;
  for (size_t d = 0; d < e.index.size(); ++d) {
    index.push_back(builder.index(e.index[d], bound));
    if (failed()) continue;
    check_bounds(e.index[d], index[d], tensor.extents[d], tensor.name, guards);
  }
  return failed() ? builder.nothing() : terms().input(input, std::move(index));
}

TermId ProgramBuilder::read_named(const Expr& e, Named& named, AxisSet bound, const Guards& guards,
                                  TermBuilder& builder) {
  named.used = true;
  if (!e.has_index) return named.value;
  std::vector<IndexExpr> index;  // one for each axis; a split name stands for its factors
  std::vector<const Expr*> sources;
  for (const Expr& part : e.index) {
    const ProgramSplit* split = part.is_plain_name() ? find_split(part.text) : nullptr;
    if (split == nullptr) {
      index.push_back(builder.index(part, bound));
      sources.push_back(&part);
      continue;
    }
    for (AxisId factor : split->factors) {
      index.push_back(IndexExpr::of(factor));
      sources.push_back(&part);
    }
  }
  if (failed()) return builder.nothing();
  if (index.size() != named.axes.size()) {
    diagnostics_.fail(e.at, "'" + e.text + "' has " + std::to_string(named.axes.size()) +
                                " axes and is read with " + std::to_string(index.size()));
    return builder.nothing();
  }
  std::vector<IndexExpr> replacement;
  for (AxisId axis = 0; axis < program_.axes.size(); ++axis) {
    replacement.push_back(IndexExpr::of(axis));
  }
  for (size_t i = 0; i < index.size(); ++i) {
    const int64_t extent = extent_of(named.axes[i]);
    check_bounds(*sources[i], index[i], extent, e.text, guards);
    replacement[named.axes[i]] = index[i];
    if (!coefficients_fit(index[i])) fail_numbers(diagnostics_, sources[i]->at);
  }
  if (failed()) return builder.nothing();
  const TermId before = terms().size();
  const TermId result = substitute_axes(terms(), named.value, replacement,
                                        [&](AxisId like) { return fresh_axis(like, e.at); });
  check_substituted(e, terms(), before, extents(program_), diagnostics_);
  return result;
}

void ProgramBuilder::warn_unused() {
  std::set<uint32_t> read;
  std::vector<TermId> roots;
  for (const Output& output : program_.outputs) roots.push_back(output.value);
  for (TermId id : reachable(program_.terms, roots)) {
    if (const auto* input = std::get_if<InputTerm>(&program_.terms[id])) read.insert(input->tensor);
  }
  for (uint32_t i = 0; i < program_.inputs.size(); ++i) {
    if (read.contains(i)) continue;
    diagnostics_.warn(syntax_.inputs[i].name.at,
                      "no output depends on input '" + program_.inputs[i].name + "'");
  }
  for (const DefinitionSyntax& definition : syntax_.definitions) {
    if (named_.at(definition.name.text).used) continue;
    diagnostics_.warn(definition.name.at, "nothing uses '" + definition.name.text + "'",
                      "to keep it, name it as an output");
  }
}

}  // namespace
}  // namespace text

Result<Program> parse_program(std::string_view text, std::string_view file_name,
                              const std::map<std::string, int64_t>& defines,
                              std::vector<Error>* warnings) {
  text::Diagnostics diagnostics(file_name);
  text::Cursor cursor(text, diagnostics);
  const text::ProgramSyntax syntax = text::parse_program_syntax(cursor);
  if (diagnostics.failed()) return diagnostics.error();
  Program program = text::ProgramBuilder(syntax, defines, diagnostics).build();
  if (diagnostics.failed()) return diagnostics.error();
  program = renumbered(program);
  for (const Status& status : {text::check_limits(program), check(program)}) {
    if (!status.ok()) diagnostics.fail(status.error());
  }
  if (diagnostics.failed()) return diagnostics.error();
  if (warnings != nullptr) {
    for (Error& warning : diagnostics.warnings()) warnings->push_back(std::move(warning));
  }
  return program;
}

}  // namespace sundog
