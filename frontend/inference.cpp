// One pass over the nodes.  An operand is first read along its own axes; where that would make one
// of two axes that must stay apart, it is read along fresh ones, which then become one with what
// they meet.  Making axes one is a matter of names only: a program means the same whatever axes of
// separate tensors are called, so nothing has to be undone when an attempt fails half way.  Why it
// is worth doing at all: two computations can share a loop only over one axis.
#include "frontend/inference.h"

#include <algorithm>
#include <set>

#include "core/op.h"

namespace sundog::frontend {
namespace {

constexpr int64_t kMostParts = 8;                // more of them are no parts but elements
constexpr int64_t kFarthest = int64_t{1} << 30;  // of the numbers of a window, whose products fit

std::string shape_text(const std::vector<int64_t>& extents) {
  std::string text = "[";
  for (size_t i = 0; i < extents.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(extents[i]);
  }
  return text + "]";
}

Dim flattened(const Dims& dims) {
  Dim out;
  for (const Dim& dim : dims) out.insert(out.end(), dim.begin(), dim.end());
  return out;
}

bool is_catalog_op(const std::string& name) {
  bool found = false;
  for_each_op([&]<class O>() { found = found || O::name == name; });
  return found;
}

class Reader {
 public:
  Reader(const Graph& graph, Parts parts) : graph_(graph), parts_(parts) {}

  Result<Inference> read() {
    for (const GraphTensor& input : graph_.inputs) {
      SUNDOG_RETURN_IF_ERROR(add_input(input));
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Status status = add_node(i);
      if (!status.ok()) return named(status.error(), graph_.nodes[i]);
    }
    for (const GraphOutput& output : graph_.outputs) {
      const auto found = out_.by_name.find(output.value);
      if (found == out_.by_name.end())
        return bad_input("the graph lacks its output " + output.value);
      ++out_.values[found->second].uses;
      if (out_.values[found->second].extents != output.tensor.extents) {
        return bad_input("output " + output.tensor.name + " is declared " +
                         shape_text(output.tensor.extents) + " and is " +
                         shape_text(out_.values[found->second].extents));
      }
    }
    return std::move(out_);
  }

 private:
  static Error named(Error error, const GraphNode& node) {
    error.message = (node.label.empty() ? node.op : node.label) + ": " + error.message;
    return error;
  }

  Status add_value(const std::string& name, Value value) {
    for (const int64_t extent : value.extents) {
      if (extent < 1) return unsupported("a tensor of shape " + shape_text(value.extents));
    }
    if (!out_.by_name.emplace(name, out_.values.size()).second) {
      return bad_input("two values are called " + name);
    }
    out_.axes.keep_apart(flattened(value.dims));
    out_.values.push_back(std::move(value));
    return {};
  }

  Dims fresh_dims(const std::vector<int64_t>& extents) {
    Dims dims;
    for (const int64_t extent : extents) {
      dims.push_back(extent == 1 ? Dim{} : Dim{out_.axes.fresh(extent)});
    }
    return dims;
  }

  Status add_input(const GraphTensor& tensor) {
    if (!tensor.strides.empty() && tensor.strides.size() != tensor.extents.size()) {
      return bad_input("input " + tensor.name + " has strides of another rank");
    }
    Value value;
    value.extents = tensor.extents;
    value.dims = fresh_dims(tensor.extents);
    return add_value(tensor.name, std::move(value));
  }

  // Reads operand `value` so that dimension d lies along *targets[d] (null: whatever it likes, but
  // apart from `taken`).  Targets that are empty take over the operand's axes.
  Result<Access> bind(size_t value, const std::vector<Dim*>& targets,
                      const std::vector<Dim*>& all) {
    Access access;
    access.value = value;
    access.dims = out_.values[value].dims;
    if (attempt(access.dims, targets, all)) return access;
    if (out_.values[value].condition) {
      return unsupported("a condition cannot be read along other axes");
    }
    access.renamed = true;
    access.dims = copy_of(out_.values[value].dims);
    keep_from_capture(out_.values[value], access.dims);
    if (attempt(access.dims, targets, all)) return access;
    return unsupported("dimensions of " + shape_text(out_.values[value].extents) +
                       " cannot be matched with the others");
  }

  // A value is read along `fresh` axes in place of its own.  None of them may meet an axis that the
  // value sums over, which would capture it; an axis's own name is no danger, since inside of that
  // sum it means the summed axis already.
  void keep_from_capture(const Value& value, const Dims& fresh) {
    const Dim own = flattened(out_.axes.resolved(value.dims)), read = flattened(fresh);
    out_.axes.keep_apart(read);
    const Dim bound = out_.axes.resolved(value.bound);
    for (size_t i = 0; i < read.size(); ++i) {
      for (const AxisVar summed : bound) {
        if (summed != own[i]) out_.axes.keep_apart({read[i], summed});
      }
    }
  }

  Dims copy_of(const Dims& dims) {
    Dims copy;
    for (const Dim& dim : out_.axes.resolved(dims)) {
      Dim& each = copy.emplace_back();
      for (const AxisVar axis : dim) each.push_back(out_.axes.fresh(out_.axes.extent(axis)));
    }
    return copy;
  }

  bool attempt(const Dims& dims, const std::vector<Dim*>& targets, const std::vector<Dim*>& all) {
    std::vector<Dim*> filled;
    const auto undo = [&] {
      for (Dim* dim : filled) dim->clear();
      return false;
    };
    for (size_t d = 0; d < dims.size(); ++d) {
      if (targets[d] == nullptr || dims[d].empty()) continue;
      if (!targets[d]->empty()) {
        if (!out_.axes.unify(*targets[d], dims[d])) return undo();
        continue;
      }
      *targets[d] = dims[d];
      filled.push_back(targets[d]);
    }
    std::set<AxisVar> seen;
    for (const Dim* dim : all) {
      for (const AxisVar axis : out_.axes.resolved(*dim)) {
        if (!seen.insert(axis).second) return undo();
      }
    }
    return true;
  }

  Status find_operands(const GraphNode& node, std::vector<size_t>& operands) {
    for (const std::string& input : node.inputs) {
      const auto found = out_.by_name.find(input);
      if (found == out_.by_name.end())
        return bad_input("there is no value " + input + " before it");
      operands.push_back(found->second);
    }
    return {};
  }

  Status add_node(size_t index);
  Status elementwise(const std::vector<size_t>& operands, Value& value);
  Status along_axes_of(size_t first, const std::vector<size_t>& operands, Value& value);
  Status contract(const GraphNode& node, const std::vector<size_t>& operands, Value& value);
  Status reduce(const GraphNode& node, size_t operand, Value& value);
  Status reshape(const GraphNode& node, size_t operand, Value& value);
  Status expand(const GraphNode& node, size_t operand, Value& value);
  Status permute(const GraphNode& node, size_t operand, Value& value);
  Status slice(const GraphNode& node, size_t operand, Value& value);
  Status window(const GraphNode& node, size_t operand, Value& value);
  Status concat(const GraphNode& node, const std::vector<size_t>& operands, Value& value);
  bool is_of_equal_parts(const std::vector<size_t>& operands, size_t d) const;
  Status join(const std::vector<size_t>& operands, size_t d, Value& value);
  Status iota(const GraphNode& node, Value& value);

  Access own(size_t operand) const {
    Access access;
    access.value = operand;
    access.dims = out_.values[operand].dims;
    return access;
  }

  const Graph& graph_;
  const Parts parts_;
  Inference out_;
};

Status Reader::elementwise(const std::vector<size_t>& operands, Value& value) {
  size_t rank = 0;
  for (const size_t operand : operands) {
    rank = std::max(rank, out_.values[operand].extents.size());
  }
  value.extents.assign(rank, 1);
  for (const size_t operand : operands) {
    const std::vector<int64_t>& extents = out_.values[operand].extents;
    const size_t skipped = rank - extents.size();
    for (size_t d = 0; d < extents.size(); ++d) {
      int64_t& extent = value.extents[skipped + d];
      if (extents[d] != 1 && extent != 1 && extents[d] != extent) {
        return bad_input("shapes do not fit: " + shape_text(extents) + " in " +
                         shape_text(value.extents));
      }
      extent = std::max(extent, extents[d]);
    }
  }
  // The first gives the axes.  A sum over one of them can take none over that it sums over, as the
  // product in x + x * w; it can give its own.
  Status status = along_axes_of(0, operands, value);
  for (size_t first = 1; first < operands.size() && !status.ok(); ++first) {
    if (along_axes_of(first, operands, value).ok()) return {};
  }
  return status;
}

Status Reader::along_axes_of(size_t first, const std::vector<size_t>& operands, Value& value) {
  const size_t rank = value.extents.size();
  value.dims.assign(rank, {});
  value.operands.assign(operands.size(), {});
  std::vector<Dim*> all;
  for (Dim& dim : value.dims) all.push_back(&dim);
  for (size_t i = 0; i < operands.size(); ++i) {
    const size_t next = i == 0 ? first : i <= first ? i - 1 : i;
    const size_t skipped = rank - out_.values[operands[next]].extents.size();
    const std::vector<Dim*> targets(all.begin() + static_cast<std::ptrdiff_t>(skipped), all.end());
    Result<Access> access = bind(operands[next], targets, all);
    if (!access.ok()) return access.error();
    value.operands[next] = std::move(*access);
  }
  return {};
}

Status Reader::contract(const GraphNode& node, const std::vector<size_t>& operands, Value& value) {
  const size_t arrow = node.text.find("->");
  if (arrow == std::string::npos) return bad_input("a contraction is written \"ij,jk->ik\"");
  std::vector<std::string> parts = {""};
  for (const char c : node.text.substr(0, arrow)) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  const std::string result = node.text.substr(arrow + 2);
  if (parts.size() != operands.size()) return bad_input("the letters are for other operands");
  std::map<char, Dim> dims;
  std::map<char, int64_t> extents;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::vector<int64_t>& shape = out_.values[operands[i]].extents;
    if (parts[i].size() != shape.size()) return bad_input("the letters are for another rank");
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto [at, fresh] = extents.emplace(parts[i][d], shape[d]);
      if (!fresh && at->second != shape[d]) {
        return bad_input("dimensions of " + std::to_string(at->second) + " and " +
                         std::to_string(shape[d]) + " are to be one");
      }
      dims[parts[i][d]];
    }
  }
  std::vector<Dim*> all;
  for (auto& [letter, dim] : dims) all.push_back(&dim);
  for (size_t i = 0; i < operands.size(); ++i) {
    std::vector<Dim*> targets;
    for (const char letter : parts[i]) targets.push_back(&dims[letter]);
    Result<Access> access = bind(operands[i], targets, all);
    if (!access.ok()) return access.error();
    value.operands.push_back(std::move(*access));
  }
  for (const char letter : result) {
    if (extents.count(letter) == 0) return bad_input("the result has a letter of no operand");
    value.extents.push_back(extents[letter]);
    value.dims.push_back(dims[letter]);
  }
  Dim everything;
  for (const auto& [letter, dim] : dims) {
    everything.insert(everything.end(), dim.begin(), dim.end());
    if (result.find(letter) != std::string::npos) continue;
    value.reduced.insert(value.reduced.end(), dim.begin(), dim.end());
  }
  out_.axes.keep_apart(everything);
  return {};
}

Status Reader::reduce(const GraphNode& node, size_t operand, Value& value) {
  value.operands.push_back(own(operand));
  value.extents = out_.values[operand].extents;
  value.dims = out_.values[operand].dims;
  for (const int64_t d : node.integers) {
    if (d < 0 || d >= static_cast<int64_t>(value.extents.size())) {
      return bad_input("there is no dimension " + std::to_string(d));
    }
    Dim& dim = value.dims[static_cast<size_t>(d)];
    value.reduced.insert(value.reduced.end(), dim.begin(), dim.end());
    dim.clear();
    value.extents[static_cast<size_t>(d)] = 1;
  }
  return {};
}

Status Reader::reshape(const GraphNode& node, size_t operand, Value& value) {
  value.operands.push_back(own(operand));
  value.extents = node.integers;
  int64_t before = 1, after = 1;
  for (const int64_t e : out_.values[operand].extents) before *= e;
  for (const int64_t e : value.extents) after *= e;
  if (before != after) return bad_input("the new shape has another number of elements");
  Dim rest = flattened(out_.values[operand].dims);
  value.dims.assign(value.extents.size(), {});
  for (size_t d = value.extents.size(); d-- > 0;) {
    Dim outer, inner;
    if (!out_.axes.cut(rest, value.extents[d], &outer, &inner)) {
      return unsupported("a reshape of " + shape_text(out_.values[operand].extents) + " to " +
                         shape_text(value.extents) + ", which have no common refinement");
    }
    value.dims[d] = inner;
    rest = outer;
  }
  return {};
}

Status Reader::expand(const GraphNode& node, size_t operand, Value& value) {
  value.operands.push_back(own(operand));
  const Value& source = out_.values[operand];
  value.extents = node.integers;
  if (value.extents.size() < source.extents.size()) return bad_input("a shape of lower rank");
  const size_t skipped = value.extents.size() - source.extents.size();
  for (size_t d = 0; d < value.extents.size(); ++d) {
    const int64_t extent = d < skipped ? 1 : source.extents[d - skipped];
    if (extent == value.extents[d]) {
      value.dims.push_back(d < skipped ? Dim{} : source.dims[d - skipped]);
    } else if (extent == 1) {
      value.dims.push_back({out_.axes.fresh(value.extents[d])});
    } else {
      return bad_input("a dimension of " + std::to_string(extent) + " does not repeat");
    }
  }
  return {};
}

Status Reader::permute(const GraphNode& node, size_t operand, Value& value) {
  value.operands.push_back(own(operand));
  const Value& source = out_.values[operand];
  std::set<int64_t> seen;
  for (const int64_t d : node.integers) {
    if (d < 0 || d >= static_cast<int64_t>(source.extents.size()) || !seen.insert(d).second) {
      return bad_input("the dimensions are no permutation");
    }
    value.extents.push_back(source.extents[static_cast<size_t>(d)]);
    value.dims.push_back(source.dims[static_cast<size_t>(d)]);
  }
  if (seen.size() != source.extents.size()) return bad_input("the dimensions are no permutation");
  return {};
}

Status Reader::slice(const GraphNode& node, size_t operand, Value& value) {
  if (node.integers.size() != 4) return bad_input("a slice has dimension, first, count and step");
  const Value& source = out_.values[operand];
  const int64_t dim = node.integers[0], count = node.integers[2];
  int64_t first = node.integers[1];
  const int64_t step = node.integers[3];
  if (dim < 0 || dim >= static_cast<int64_t>(source.extents.size())) {
    return bad_input("there is no dimension " + std::to_string(dim));
  }
  const auto d = static_cast<size_t>(dim);
  if (first < 0 || count < 1 || step < 1 || first + (count - 1) * step >= source.extents[d]) {
    return bad_input("the slice leaves its dimension");
  }
  Access access = own(operand);
  value.extents = source.extents;
  value.dims = source.dims;
  if (count == source.extents[d]) {
    value.operands.push_back(std::move(access));
    return {};
  }
  if (parts_ == Parts::kAxes && step == 1 && first % count == 0 && source.extents[d] % count == 0 &&
      source.extents[d] / count <= kMostParts) {
    Dim over, within;
    out_.axes.cut(source.dims[d], count, &over, &within);
  }
  // Of several axes the outermost is the one that is moved, if the slice takes whole steps of it.
  const Dim axes = out_.axes.resolved(source.dims[d]);
  Dim outer = axes, inner;
  if (axes.size() > 1) {
    outer = {axes[0]};
    inner.assign(axes.begin() + 1, axes.end());
    const int64_t whole = out_.axes.extent(inner);
    if (step != 1 || first % whole != 0 || count % whole != 0) {
      return unsupported("a slice through a dimension that is also viewed as several");
    }
    first /= whole;
  }
  const int64_t taken = count / std::max<int64_t>(1, out_.axes.extent(inner));
  Dim along = taken == 1 ? Dim{} : Dim{out_.axes.fresh(taken)};
  access.dim = static_cast<int>(d);
  access.first = first;
  access.step = step;
  access.outer = outer;
  access.along = along;
  access.inner = inner;
  along.insert(along.end(), inner.begin(), inner.end());
  value.extents[d] = count;
  value.dims[d] = along;
  value.operands.push_back(std::move(access));
  return {};
}

Status Reader::window(const GraphNode& node, size_t operand, Value& value) {
  if (node.integers.size() != 6 || node.numbers.size() != 1) {
    return bad_input("a window has dimension, first, count, step, extent, spread and a number");
  }
  const Value& source = out_.values[operand];
  const int64_t dim = node.integers[0], count = node.integers[2], extent = node.integers[4];
  if (dim < 0 || dim >= static_cast<int64_t>(source.extents.size())) {
    return bad_input("there is no dimension " + std::to_string(dim));
  }
  const auto d = static_cast<size_t>(dim);
  Access access = own(operand);
  access.first = node.integers[1];
  access.step = node.integers[3];
  access.spread = node.integers[5];
  for (const int64_t each : {count, extent, access.step, access.spread}) {
    if (each < 1 || each > kFarthest) return bad_input("a window of no place, element or step");
  }
  if (std::abs(access.first) > kFarthest) return bad_input("a window far outside");
  value.extents = source.extents;
  value.extents[d] = count;
  value.extents.push_back(extent);
  value.dims = source.dims;
  value.dims.emplace_back();
  // Windows side by side are parts of the dimension, and no element of it is read twice.
  const bool side_by_side = access.first == 0 && access.step == extent && access.spread == 1 &&
                            count * extent == source.extents[d];
  if (!side_by_side || !out_.axes.cut(source.dims[d], extent, &value.dims[d], &value.dims.back())) {
    access.dim = static_cast<int>(d);
    access.outer = out_.axes.resolved(source.dims[d]);
    if (access.outer.size() > 1) {
      return unsupported("a window over a dimension that is also viewed as several");
    }
    access.along = value.dims[d] = count == 1 ? Dim{} : Dim{out_.axes.fresh(count)};
    access.window = value.dims.back() = extent == 1 ? Dim{} : Dim{out_.axes.fresh(extent)};
  }
  value.operands.push_back(std::move(access));
  return {};
}

Status Reader::concat(const GraphNode& node, const std::vector<size_t>& operands, Value& value) {
  if (node.integers.size() != 1 || operands.empty())
    return bad_input("a concatenation has a dimension");
  const auto d = static_cast<size_t>(node.integers[0]);
  value.extents = out_.values[operands[0]].extents;
  if (d >= value.extents.size()) return bad_input("there is no dimension " + std::to_string(d));
  int64_t total = 0;
  for (const size_t operand : operands) {
    std::vector<int64_t> shape = out_.values[operand].extents;
    if (shape.size() != value.extents.size()) return bad_input("operands of different rank");
    total += shape[d];
    shape[d] = value.extents[d];
    if (shape != value.extents) return bad_input("operands of different shape");
  }
  if (is_of_equal_parts(operands, d)) return join(operands, d, value);
  value.extents[d] = total;
  value.dims.assign(value.extents.size(), {});
  value.dims[d] = {out_.axes.fresh(total)};
  std::vector<Dim*> all;
  for (Dim& dim : value.dims) all.push_back(&dim);
  int64_t first = 0;
  for (const size_t operand : operands) {
    std::vector<Dim*> targets = all;
    targets[d] = nullptr;
    Result<Access> access = bind(operand, targets, all);
    if (!access.ok()) return access.error();
    access->dim = static_cast<int>(d);
    access->first = -first;
    access->outer = out_.axes.resolved(out_.values[operand].dims[d]);
    access->along = value.dims[d];
    if (access->outer.size() > 1) {
      return unsupported("a concatenation along a dimension that is also viewed as several");
    }
    first += out_.values[operand].extents[d];
    value.operands.push_back(std::move(*access));
  }
  return {};
}

bool Reader::is_of_equal_parts(const std::vector<size_t>& operands, size_t d) const {
  return parts_ == Parts::kAxes && operands.size() > 1 && operands.size() <= kMostParts &&
         std::all_of(operands.begin(), operands.end(), [&](size_t operand) {
           return out_.values[operand].extents[d] == out_.values[operands[0]].extents[d];
         });
}

// A concatenation of equal parts: an axis over the parts, and theirs below it, along which each is
// read as it is.
Status Reader::join(const std::vector<size_t>& operands, size_t d, Value& value) {
  value.dims.assign(value.extents.size(), {});
  std::vector<Dim*> all;
  for (Dim& dim : value.dims) all.push_back(&dim);
  for (const size_t operand : operands) {
    Result<Access> access = bind(operand, all, all);
    if (!access.ok()) return access.error();
    value.operands.push_back(std::move(*access));
  }
  const auto parts = static_cast<int64_t>(operands.size());
  value.part = out_.axes.fresh(parts);
  value.dims[d].insert(value.dims[d].begin(), value.part);
  value.extents[d] *= parts;
  return {};
}

Status Reader::iota(const GraphNode& node, Value& value) {
  if (node.integers.empty()) return bad_input("an index has a dimension");
  value.extents.assign(node.integers.begin() + 1, node.integers.end());
  const int64_t dim = node.integers[0];
  if (dim < 0 || dim >= static_cast<int64_t>(value.extents.size())) {
    return bad_input("there is no dimension " + std::to_string(dim));
  }
  value.dims = fresh_dims(value.extents);
  return {};
}

Status Reader::add_node(size_t index) {
  const GraphNode& node = graph_.nodes[index];
  std::vector<size_t> operands;
  SUNDOG_RETURN_IF_ERROR(find_operands(node, operands));
  Value value;
  value.node = static_cast<int>(index);
  const std::string& op = node.op;
  static const std::set<std::string> kConditions = {"less", "less_equal", "equal", "not_equal",
                                                    "and",  "or",         "not"};
  static const std::set<std::string> kUnary = {"sum",     "reduce_max", "reshape", "expand",
                                               "permute", "slice",      "window"};
  if (kUnary.count(op) != 0 && operands.size() != 1) return bad_input("it takes one operand");
  value.condition = kConditions.count(op) != 0;
  Status status;
  if (op == "constant") {
    if (node.numbers.size() != 1) return bad_input("a constant has one number");
  } else if (op == "contract") {
    status = contract(node, operands, value);
  } else if (op == "sum" || op == "reduce_max") {
    status = reduce(node, operands[0], value);
  } else if (op == "reshape") {
    status = reshape(node, operands[0], value);
  } else if (op == "expand") {
    status = expand(node, operands[0], value);
  } else if (op == "permute") {
    status = permute(node, operands[0], value);
  } else if (op == "slice") {
    status = slice(node, operands[0], value);
  } else if (op == "window") {
    status = window(node, operands[0], value);
  } else if (op == "concat") {
    status = concat(node, operands, value);
  } else if (op == "iota") {
    status = iota(node, value);
  } else if (value.condition || op == "where" || is_catalog_op(op)) {
    status = elementwise(operands, value);
  } else {
    return unsupported("there is no operator " + op);
  }
  SUNDOG_RETURN_IF_ERROR(status);
  value.bound = value.reduced;
  for (const size_t operand : operands) {
    ++out_.values[operand].uses;
    const Dim& inner = out_.values[operand].bound;
    value.bound.insert(value.bound.end(), inner.begin(), inner.end());
  }
  return add_value(node.name, std::move(value));
}

}  // namespace

Result<Inference> infer_axes(const Graph& graph, Parts parts) {
  return Reader(graph, parts).read();
}

}  // namespace sundog::frontend
