#include "frontend/onnx.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <set>

#include "core/proto.h"
#include "frontend/onnx.pb.h"
#include "frontend/onnx_external.h"
#include "frontend/onnx_importer.h"

namespace sundog::frontend {
namespace {

std::string shape_text(const Extents& extents) {
  std::string text = "[";
  for (size_t i = 0; i < extents.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(extents[i]);
  }
  return text + "]";
}

}  // namespace

std::optional<DType> dtype_of(int element) {
  switch (element) {
    case 1:
      return DType::kF32;
    case 3:
    case 9:  // bool
      return DType::kI8;
    case 10:
      return DType::kF16;
    case 11:
      return DType::kF64;
    case 16:
      return DType::kBF16;
    case 17:
      return DType::kF8E4M3;
    case 19:
      return DType::kF8E5M2;
    default:  // NOLINT(sundog-default): a number of a foreign format
      return std::nullopt;
  }
}

int64_t elements_of(const onnx::Tensor& tensor) {
  int64_t count = 1;
  for (const int64_t dim : tensor.dims()) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return -1;
  }
  return count;
}

int64_t element_bytes(int element) {
  if (element == 6) return 4;  // integers
  if (element == 7) return 8;
  const std::optional<DType> dtype = dtype_of(element);
  return dtype ? static_cast<int64_t>(bytes(*dtype)) : 0;
}

// The numbers of a small constant.
std::optional<std::vector<double>> numbers_of(const onnx::Tensor& tensor) {
  const int64_t count = elements_of(tensor);
  if (count < 0 || count > kSmallConstant || tensor.location() != 0) return std::nullopt;
  std::vector<double> values;
  for (const float v : tensor.floats()) values.push_back(v);
  for (const double v : tensor.doubles()) values.push_back(v);
  for (const int64_t v : tensor.longs()) values.push_back(static_cast<double>(v));
  const std::optional<DType> dtype = dtype_of(tensor.element());
  const bool integers = tensor.element() == 6 || tensor.element() == 7;
  for (const int32_t v : tensor.ints()) {
    values.push_back(
        integers || !dtype || *dtype == DType::kI8 ? v : decode(*dtype, static_cast<uint32_t>(v)));
  }
  const std::string& raw = tensor.raw();
  if (!raw.empty() && (integers || dtype)) {
    const auto size = static_cast<size_t>(element_bytes(tensor.element()));
    for (size_t at = 0; at + size <= raw.size(); at += size) {
      uint64_t bits = 0;
      std::memcpy(&bits, raw.data() + at, size);
      values.push_back(!integers   ? decode(*dtype, bits)
                       : size == 8 ? static_cast<double>(static_cast<int64_t>(bits))
                                   : static_cast<double>(static_cast<int32_t>(bits)));
    }
  }
  if (static_cast<int64_t>(values.size()) != count) return std::nullopt;
  return values;
}

Result<Extents> Importer::extents_of(const onnx::ValueInfo& value) const {
  if (!value.type().has_tensor() || !value.type().tensor().has_shape()) {
    return unsupported(value.name() + " is no tensor of known shape");
  }
  Extents extents;
  for (const auto& dim : value.type().tensor().shape().dims()) {
    if (dim.has_value()) {
      extents.push_back(dim.value());
      continue;
    }
    const auto found = defines_.find(dim.parameter());
    if (found == defines_.end()) {
      return bad_input("dimension " + (dim.parameter().empty() ? "?" : dim.parameter()) + " of " +
                           value.name() + " has no value",
                       "-D " + dim.parameter() + "=N gives it one");
    }
    extents.push_back(found->second);
  }
  return extents;
}

namespace {

// Of a type that no tensor of a program has (TensorProto.DataType of ONNX).
std::string type_name(int element) {
  static const std::map<int, const char*> kNames = {
      {2, "uint8"},      {4, "uint16"},      {5, "int16"},   {6, "int32"},
      {7, "int64"},      {8, "string"},      {12, "uint32"}, {13, "uint64"},
      {14, "complex64"}, {15, "complex128"}, {21, "uint4"},  {22, "int4"}};
  const auto known = kNames.find(element);
  return known == kNames.end() ? "number " + std::to_string(element) + " of ONNX" : known->second;
}

}  // namespace

Status Importer::add_input(const std::string& name, int element, const Extents& extents) {
  const std::optional<DType> dtype = dtype_of(element);
  if (!dtype) {
    return unsupported(name + " has the type " + type_name(element),
                       "tensors of a program are floating-point numbers, bytes or truth values");
  }
  GraphTensor tensor;
  tensor.name = name;
  tensor.dtype = *dtype;
  tensor.extents = extents;
  builder_.graph.inputs.push_back(tensor);
  Ref ref{name, extents, false};
  if (element == 9) ref = builder_.compare("not_equal", ref, builder_.constant(0));
  refs_[name] = ref;
  return {};
}

// A weight of the model, or of a node; small ones are read as numbers, those in other files too.
Status Importer::add_weight(const std::string& name, const onnx::Tensor& tensor) {
  weights_[name] = &tensor;
  if (auto numbers = numbers_of(tensor)) constants_[name] = std::move(*numbers);
  if (tensor.location() == 0) return {};
  const int64_t size = element_bytes(tensor.element()), count = elements_of(tensor);
  int64_t all = 0;
  if (size == 0 || count < 0 || __builtin_mul_overflow(size, count, &all)) {
    return unsupported("no program has its type or its shape");
  }
  const Result<ExternalData> data = find_external(tensor, all, folder_);
  if (!data.ok()) return data.error();
  if (count > kSmallConstant) return {};
  Result<std::string> bytes = read_external(*data);
  if (!bytes.ok()) return bytes.error();
  onnx::Tensor here = tensor;
  here.set_location(0);
  here.set_raw(std::move(*bytes));
  if (auto numbers = numbers_of(here)) constants_[name] = std::move(*numbers);
  return {};
}

// A name that no input has would be a slip of the pen, which changes nothing and tells nobody.
Status Importer::check_defines() const {
  std::set<std::string> known;
  for (const onnx::ValueInfo& input : source_.inputs()) {
    for (const auto& dim : input.type().tensor().shape().dims()) {
      if (!dim.has_value() && !dim.parameter().empty()) known.insert(dim.parameter());
    }
  }
  std::string names;
  for (const std::string& each : known) names += (names.empty() ? "" : ", ") + each;
  for (const auto& [name, value] : defines_) {
    if (known.count(name) != 0) continue;
    return bad_input("the model has no dimension '" + name + "', which -D sets",
                     names.empty() ? "none of its dimensions has a name" : "known here: " + names);
  }
  return {};
}

Status Importer::add_inputs() {
  std::optional<Error> lost;  // of weights, all of them in one
  int count = 0;
  for (const onnx::Tensor& tensor : source_.initializers()) {
    const Status status = add_weight(tensor.name(), tensor);
    if (status.ok()) continue;
    const std::string text = tensor.name() + ": " + status.error().message;
    lost = lost ? Error{lost->code, lost->message + "; " + text, lost->hint, {}}
                : Error{status.error().code, text, status.error().hint, {}};
    ++count;
  }
  if (lost) {
    lost->message = (count == 1 ? "a weight" : std::to_string(count) + " weights") +
                    std::string(" cannot be read: ") + lost->message;
    return *lost;
  }
  SUNDOG_RETURN_IF_ERROR(check_defines());
  for (const onnx::ValueInfo& input : source_.inputs()) {
    if (weights_.count(input.name()) != 0) continue;
    const Result<Extents> extents = extents_of(input);
    if (!extents.ok()) return extents.error();
    SUNDOG_RETURN_IF_ERROR(add_input(input.name(), input.type().tensor().element(), *extents));
  }
  return {};
}

// Nodes after those that they read, in the order of the file where that leaves a choice.
std::vector<const onnx::Node*> Importer::sorted(std::vector<std::string>& problems) const {
  std::map<std::string, const onnx::Node*> maker;
  for (const onnx::Node& node : source_.nodes()) {
    for (const std::string& output : node.outputs()) maker[output] = &node;
  }
  std::vector<const onnx::Node*> order;
  std::map<const onnx::Node*, int> state;  // 1: on the way, 2: done
  for (const onnx::Node& root : source_.nodes()) {
    std::vector<const onnx::Node*> todo = {&root};
    while (!todo.empty()) {
      const onnx::Node* node = todo.back();
      bool ready = true;
      if (state[node] == 0) {
        state[node] = 1;
        for (const std::string& input : node->inputs()) {
          const auto found = maker.find(input);
          if (found == maker.end() || state[found->second] == 2) continue;
          if (state[found->second] == 1) {
            problems.push_back("node " + node->name() + " is part of a circle");
            continue;
          }
          todo.push_back(found->second);
          ready = false;
        }
      }
      if (!ready) continue;
      todo.pop_back();
      if (state[node] != 2) order.push_back(node);
      state[node] = 2;
    }
  }
  return order;
}

std::string Importer::described(const onnx::Node& node) const {
  std::string text = (node.name().empty() ? "node" : node.name()) + " (" + node.op();
  for (const std::string& input : node.inputs()) {
    const auto found = refs_.find(input);
    const auto weight = weights_.find(input);
    if (found != refs_.end()) {
      text += " " + shape_text(found->second.extents);
    } else if (weight != weights_.end()) {
      text += " " + shape_text({weight->second->dims().begin(), weight->second->dims().end()});
    } else if (!input.empty()) {
      text += " [?]";
    }
  }
  return text + ")";
}

Result<Graph> Importer::import() {
  builder_.graph.name = source_.name().empty() ? "model" : source_.name();
  SUNDOG_RETURN_IF_ERROR(add_inputs());
  std::vector<std::string> problems;
  std::set<std::string> lost;  // values of nodes that could not be read
  for (const onnx::Node* node : sorted(problems)) {
    builder_.label = node->name().empty() ? node->op() : node->name();
    bool reads_lost = false;
    for (const std::string& input : node->inputs())
      reads_lost = reads_lost || lost.count(input) != 0;
    const Made values = made(*node);
    // What reads something lost is listed only for a fault of its own.
    const bool own_fault =
        !values.ok() && (!reads_lost || values.error().code == ErrorCode::kLimit);
    if (own_fault) problems.push_back(described(*node) + ": " + values.error().message);
    for (int i = 0; i < node->outputs_size(); ++i) {
      if (values.ok() && values->empty()) continue;  // a constant
      if (values.ok() && static_cast<size_t>(i) < values->size()) {
        refs_[node->outputs(i)] = (*values)[static_cast<size_t>(i)];
      } else {
        lost.insert(node->outputs(i));
      }
    }
  }
  if (!problems.empty()) {
    std::string text = std::to_string(problems.size()) + " nodes have no form in a program: ";
    for (size_t i = 0; i < problems.size(); ++i) text += (i == 0 ? "" : "; ") + problems[i];
    return unsupported(text, "docs/usage.md lists the operators that are read");
  }
  for (const onnx::ValueInfo& output : source_.outputs()) {
    const auto found = refs_.find(output.name());
    if (found == refs_.end()) return bad_input("no node makes the output " + output.name());
    GraphTensor tensor;
    tensor.name = output.name();
    tensor.extents = found->second.extents;
    const std::optional<DType> dtype = dtype_of(output.type().tensor().element());
    if (!dtype) return unsupported("output " + output.name() + " has another type than numbers");
    tensor.dtype = *dtype;
    builder_.graph.outputs.push_back({found->second.name, tensor});
  }
  return std::move(builder_.graph);
}

Result<Graph> graph_of_onnx(std::string_view bytes, const std::map<std::string, int64_t>& defines,
                            const std::optional<std::string>& folder) {
  onnx::Model model;
  if (!parse_message(bytes, &model) || !model.has_graph()) {
    return bad_input("the bytes are no ONNX model");
  }
  return Importer(model.graph(), defines, folder).import();
}

}  // namespace sundog::frontend
