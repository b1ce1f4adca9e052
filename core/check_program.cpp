#include <algorithm>
#include <set>
#include <string>

#include "core/mugraph.h"
#include "core/overlap.h"

// The specification of a well-formed program.  Each rule is a function that returns the first
// breach as an Error naming the tensor, term or axis; check() runs them in the order in which later
// rules rely on earlier ones.

namespace sundog {
namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

bool known_axes(const IndexExpr& e, size_t axes) {
  const auto known = [axes](const IndexExpr::Item& item) { return item.axis < axes; };
  return std::all_of(e.axes.begin(), e.axes.end(), known) &&
         std::all_of(e.sizes.begin(), e.sizes.end(), known);
}

Status check_axes(const Program& program) {
  if (program.axes.size() > static_cast<size_t>(kMaxAxes)) {
    return unsupported("the program has " + std::to_string(program.axes.size()) +
                       " axes; at most 64 are supported");
  }
  std::set<std::string> names;
  for (const Axis& axis : program.axes) {
    if (axis.name.empty()) return bad_input("an axis has no name");
    if (axis.extent < 0) return bad_input("axis " + quoted(axis.name) + " has a negative extent");
    if (!names.insert(axis.name).second) {
      return bad_input("axis " + quoted(axis.name) + " is declared twice");
    }
  }
  for (const ProgramSplit& split : program.splits) {
    int64_t product = 1;
    for (AxisId factor : split.factors) {
      if (factor >= program.axes.size()) {
        return bad_input("the split of " + quoted(split.axis) + " names an unknown factor");
      }
      product *= program.axes[factor].extent;
    }
    if (product != split.extent) {
      return bad_input("the factors of " + quoted(split.axis) + " multiply to " +
                           std::to_string(product) + ", not to its extent " +
                           std::to_string(split.extent),
                       "in a program a split must be exact; a schedule may split raggedly");
    }
  }
  return {};
}

Status check_tensor(const Program& program, const TensorDecl& tensor) {
  const std::string what = "tensor " + quoted(tensor.name);
  if (tensor.name.empty()) return bad_input("a tensor has no name");
  if (tensor.dims.size() != tensor.extents.size()) {
    return bad_input(what + " has " + std::to_string(tensor.dims.size()) + " dimensions but " +
                     std::to_string(tensor.extents.size()) + " extents");
  }
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.extents.size()) {
    return bad_input(what + " has " + std::to_string(tensor.strides.size()) + " strides for " +
                     std::to_string(tensor.extents.size()) + " dimensions");
  }
  for (int64_t extent : tensor.extents) {
    if (extent < 0) return bad_input(what + " has a negative extent");
  }
  for (int64_t stride : tensor.strides) {
    if (stride < 0) return unsupported(what + " has a negative stride");
  }
  if (tensor.offset < 0) return bad_input(what + " has a negative offset");
  if (tensor.alignment < 1 || (tensor.alignment & (tensor.alignment - 1)) != 0) {
    return bad_input(what + ": the alignment must be a power of two");
  }
  if (tensor.low && tensor.high && tensor.low->to_double() > tensor.high->to_double()) {
    return bad_input(what + ": its declared range is empty");
  }
  for (const IndexExpr& dim : tensor.dims) {
    if (!known_axes(dim, program.axes.size())) {
      return bad_input(what + " uses an axis that the program does not have");
    }
  }
  return {};
}

// Each element must be named by exactly one index: per dimension a mixed radix number of axes that
// no other dimension uses.
Status check_output_dims(const Program& program, const TensorDecl& tensor) {
  const std::string what = "output " + quoted(tensor.name);
  AxisSet seen;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    const IndexExpr& dim = tensor.dims[d];
    if (!(dim.axis_set() & seen).empty()) {
      return bad_input(what + " uses an axis in two dimensions");
    }
    seen |= dim.axis_set();
    if (dim.constant != 0 || !dim.sizes.empty()) {
      return bad_input(what + ": dimension " + std::to_string(d) + " is shifted",
                       "declare outputs over plain axes");
    }
    std::vector<IndexExpr::Item> items = dim.axes;
    std::sort(items.begin(), items.end(),
              [](const auto& a, const auto& b) { return a.coefficient < b.coefficient; });
    int64_t reach = 1;
    bool exact = true;
    for (const auto& item : items) {
      const int64_t extent = program.axes[item.axis].extent;
      if (item.coefficient != reach && extent > 1) exact = false;
      reach *= extent;
    }
    if (!exact || reach != tensor.extents[d]) {
      return bad_input(what + ": the axes of dimension " + std::to_string(d) +
                       " do not run over its extent " + std::to_string(tensor.extents[d]) +
                       " exactly once");
    }
  }
  for (size_t d = 0; d < tensor.strides.size(); ++d) {
    if (tensor.strides[d] == 0 && tensor.extents[d] > 1) {
      return bad_input(what + ": dimension " + std::to_string(d) + " has stride 0",
                       "an output cannot be broadcast in memory");
    }
  }
  if (elements_share_memory(tensor)) {
    return bad_input(what + ": its strides make elements share memory");
  }
  return {};
}

class TermRules {
 public:
  explicit TermRules(const Program& program) : program_(program) {}

  Status operator()(const InputTerm& t) const {
    if (t.tensor >= program_.inputs.size()) return bad_input("a term reads an unknown input");
    const TensorDecl& tensor = program_.inputs[t.tensor];
    if (t.index.size() != tensor.dims.size()) {
      return bad_input("input " + quoted(tensor.name) + " has " +
                       std::to_string(tensor.dims.size()) + " dimensions and is read with " +
                       std::to_string(t.index.size()));
    }
    for (const IndexExpr& e : t.index) {
      if (!known(e)) return unknown_axis("the index of input " + quoted(tensor.name));
    }
    return {};
  }
  Status operator()(const LocalTerm&) const {
    return bad_input("a program reads a computation of a kernel");
  }
  Status operator()(const ConstantTerm&) const { return {}; }
  Status operator()(const SizeTerm& t) const {
    return t.axis < program_.axes.size() ? Status() : unknown_axis("size()");
  }
  Status operator()(const IndexTerm& t) const {
    return known(t.index) ? Status() : unknown_axis("an index");
  }
  Status operator()(const ApplyTerm& t) const {
    if (static_cast<int>(t.operands.size()) == arity(t.op)) return {};
    return bad_input("operator " + std::string(name(t.op)) + " has " +
                     std::to_string(t.operands.size()) + " operands instead of " +
                     std::to_string(arity(t.op)));
  }
  Status operator()(const ReduceTerm& t) const {
    for (AxisId a : t.axes) {
      if (a >= program_.axes.size()) return unknown_axis("a reduction");
    }
    return t.axes.empty() ? Status(bad_input("a reduction runs over no axis")) : Status();
  }
  Status operator()(const SelectTerm& t) const {
    return known(t.condition.expr) ? Status() : unknown_axis("the condition of a select");
  }
  Status operator()(const CompareTerm&) const { return {}; }

 private:
  bool known(const IndexExpr& e) const { return known_axes(e, program_.axes.size()); }
  static Status unknown_axis(const std::string& where) {
    return bad_input(where + " uses an axis that the program does not have");
  }
  const Program& program_;
};

Status check_output(const Program& program, const Output& output) {
  SUNDOG_RETURN_IF_ERROR(check_tensor(program, output.tensor));
  SUNDOG_RETURN_IF_ERROR(check_output_dims(program, output.tensor));
  if (output.value >= program.terms.size()) {
    return bad_input("output " + quoted(output.tensor.name) + " has no value");
  }
  AxisSet axes;
  for (const IndexExpr& dim : output.tensor.dims) axes |= dim.axis_set();
  for (AxisId free : program.terms.axes(output.value) - axes) {
    return bad_input("output " + quoted(output.tensor.name) + " depends on axis " +
                     quoted(program.axes[free].name) + ", which is none of its dimensions");
  }
  return {};
}

}  // namespace

Status check(const Program& program) {
  SUNDOG_RETURN_IF_ERROR(check_axes(program));
  std::set<std::string> names;
  for (const TensorDecl& input : program.inputs) {
    SUNDOG_RETURN_IF_ERROR(check_tensor(program, input));
    if (!names.insert(input.name).second) {
      return bad_input("two tensors are called " + quoted(input.name));
    }
  }
  const TermRules rules(program);
  for (TermId id = 0; id < program.terms.size(); ++id) {
    SUNDOG_RETURN_IF_ERROR(std::visit(rules, program.terms[id]));
  }
  if (program.outputs.empty()) return bad_input("the program has no output");
  for (const Output& output : program.outputs) {
    SUNDOG_RETURN_IF_ERROR(check_output(program, output));
    if (!names.insert(output.tensor.name).second) {
      return bad_input("two tensors are called " + quoted(output.tensor.name));
    }
  }
  for (const Definition& definition : program.definitions) {
    if (definition.value >= program.terms.size()) {
      return bad_input("definition " + quoted(definition.name) + " has no value");
    }
  }
  return {};
}

}  // namespace sundog
