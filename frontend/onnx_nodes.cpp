// What each ONNX operator is in the few operators of a graph.  Versions of the format differ mostly
// in whether axes and shapes are attributes or operands: both are read, whatever version a model
// names.
#include <algorithm>
#include <set>

#include "frontend/onnx.pb.h"
#include "frontend/onnx_importer.h"

namespace sundog::frontend {

const onnx::Attribute* Importer::attribute(const onnx::Node& node, const char* name) const {
  for (const onnx::Attribute& each : node.attributes()) {
    if (each.name() == name) return &each;
  }
  return nullptr;
}

int64_t Importer::integer(const onnx::Node& node, const char* name, int64_t otherwise) const {
  const onnx::Attribute* found = attribute(node, name);
  return found == nullptr ? otherwise : found->integer();
}

double Importer::number(const onnx::Node& node, const char* name, double otherwise) const {
  const onnx::Attribute* found = attribute(node, name);
  return found == nullptr ? otherwise : double{found->number()};
}

// Integers that are an attribute in some versions and an operand in others.
std::optional<std::vector<int64_t>> Importer::integers(const onnx::Node& node, int index,
                                                       const char* name) const {
  if (const onnx::Attribute* found = attribute(node, name); found != nullptr) {
    return std::vector<int64_t>(found->integers().begin(), found->integers().end());
  }
  if (index >= node.inputs_size()) return std::nullopt;
  const auto found = constants_.find(node.inputs(index));
  if (found == constants_.end()) return std::nullopt;
  std::vector<int64_t> values;
  for (const double v : found->second) values.push_back(static_cast<int64_t>(v));
  return values;
}

// An operand as a value: computed, an input, a number, or a weight, which becomes an input now.
Result<Ref> Importer::operand(const onnx::Node& node, int index) {
  if (index >= node.inputs_size() || node.inputs(index).empty()) {
    return bad_input("it lacks an operand");
  }
  const std::string& name = node.inputs(index);
  if (const auto found = refs_.find(name); found != refs_.end()) return found->second;
  const auto constant = constants_.find(name);
  const auto weight = weights_.find(name);
  if (constant != constants_.end() && constant->second.size() == 1 &&
      (weight == weights_.end() || weight->second->dims_size() == 0 ||
       weight->second->dims(0) == 1)) {
    return builder_.constant(constant->second[0]);
  }
  if (weight == weights_.end()) return bad_input("there is no value " + name);
  const onnx::Tensor& tensor = *weight->second;
  SUNDOG_RETURN_IF_ERROR(
      add_input(name, tensor.element(), {tensor.dims().begin(), tensor.dims().end()}));
  return refs_[name];
}

namespace {

Made one(Result<Ref> ref) {
  if (!ref.ok()) return ref.error();
  return std::vector<Ref>{std::move(*ref)};
}

const std::map<std::string, std::string>& plain_operators() {
  static const std::map<std::string, std::string> kPlain = {
      {"Add", "add"},   {"Sub", "sub"},         {"Mul", "mul"},   {"Div", "div"},
      {"Neg", "neg"},   {"Exp", "exp"},         {"Log", "log"},   {"Sqrt", "sqrt"},
      {"Relu", "relu"}, {"Sigmoid", "sigmoid"}, {"Tanh", "tanh"}, {"Erf", "erf"},
      {"Abs", "abs"},   {"Sin", "sin"},         {"Cos", "cos"},   {"Softplus", "softplus"},
      {"Max", "max"},   {"Min", "min"}};
  return kPlain;
}

}  // namespace

Made Importer::made_elementwise(const onnx::Node& node) {
  const std::string& op = node.op();
  std::vector<Ref> operands;
  for (int i = 0; i < node.inputs_size(); ++i) {
    if (node.inputs(i).empty() || (op == "Clip" && i > 0) || (op == "Pow" && i > 0)) continue;
    Result<Ref> each = operand(node, i);
    if (!each.ok()) return each.error();
    operands.push_back(std::move(*each));
  }
  if (operands.empty()) return bad_input("it lacks its operands");
  const auto constant = [&](int i) -> std::optional<double> {
    if (i >= node.inputs_size()) return std::nullopt;
    const auto found = constants_.find(node.inputs(i));
    if (found == constants_.end() || found->second.size() != 1) return std::nullopt;
    return found->second[0];
  };
  if (const auto plain = plain_operators().find(op); plain != plain_operators().end()) {
    const size_t arity = op == "Add" || op == "Sub" || op == "Mul" || op == "Div" ? 2 : 1;
    if (operands.size() < arity) return bad_input("it lacks an operand");
    Ref result = operands[0];
    if (arity == 1 && plain->second != "max" && plain->second != "min") {
      return std::vector<Ref>{builder_.elementwise(plain->second, {result})};
    }
    for (size_t i = 1; i < operands.size(); ++i) {
      result = builder_.elementwise(plain->second, {result, operands[i]});
    }
    return std::vector<Ref>{result};
  }
  if (op == "Identity" || op == "Dropout") return std::vector<Ref>{operands[0]};
  if (op == "Reciprocal") {
    return std::vector<Ref>{builder_.elementwise("div", {builder_.constant(1), operands[0]})};
  }
  if (op == "Gelu") {
    const onnx::Attribute* kind = attribute(node, "approximate");
    const bool tanh = kind != nullptr && kind->text() == "tanh";
    return std::vector<Ref>{builder_.elementwise(tanh ? "gelu_tanh" : "gelu", {operands[0]})};
  }
  if (op == "Pow") {
    const std::optional<double> exponent = constant(1);
    if (!exponent) return unsupported("a power that is no constant");
    return std::vector<Ref>{builder_.elementwise("pow", {operands[0]}, {number_text(*exponent)})};
  }
  if (op == "Clip") {
    Ref result = operands[0];
    if (const auto low = constant(1))
      result = builder_.elementwise("max", {result, builder_.constant(*low)});
    if (const auto high = constant(2))
      result = builder_.elementwise("min", {result, builder_.constant(*high)});
    return std::vector<Ref>{result};
  }
  if (op == "Cast") {
    const std::optional<DType> dtype = dtype_of(static_cast<int>(integer(node, "to", 0)));
    if (!dtype || *dtype == DType::kI8) return unsupported("a cast to no floating type");
    return std::vector<Ref>{
        builder_.elementwise("cast", {operands[0]}, {}, std::string(name(*dtype)))};
  }
  if (op == "Where") {
    if (operands.size() != 3) return bad_input("it takes three operands");
    if (!operands[0].condition) {
      operands[0] = builder_.compare("not_equal", operands[0], builder_.constant(0));
    }
    return std::vector<Ref>{builder_.elementwise("where", operands)};
  }
  if (op == "Not" || op == "And" || op == "Or") {
    Ref result = builder_.elementwise(op == "Not" ? "not" : op == "And" ? "and" : "or", operands);
    result.condition = true;
    return std::vector<Ref>{result};
  }
  static const std::map<std::string, std::pair<const char*, bool>> kRelations = {
      {"Less", {"less", false}},
      {"LessOrEqual", {"less_equal", false}},
      {"Greater", {"less", true}},
      {"GreaterOrEqual", {"less_equal", true}},
      {"Equal", {"equal", false}}};
  const auto relation = kRelations.find(op);
  if (relation == kRelations.end()) return limit_error("the operator is not known");
  if (operands.size() != 2) return bad_input("it takes two operands");
  if (relation->second.second) std::swap(operands[0], operands[1]);
  return std::vector<Ref>{builder_.compare(relation->second.first, operands[0], operands[1])};
}

// A batch dimension of 1 beside a longer one is no dimension of that operand: it is broadcast.
Result<Ref> Importer::matmul(Ref a, Ref b) {
  const size_t ra = a.extents.size(), rb = b.extents.size();
  if (ra < 1 || rb < 1 || std::max(ra, rb) > 10) return unsupported("a product of these ranks");
  if (rb == 1)
    return builder_.contract(
        std::string("abcdefgh", ra - 1) + "k," + "k->" + std::string("abcdefgh", ra - 1), a, b);
  const size_t batch_a = ra > 2 ? ra - 2 : 0, batch_b = rb - 2;
  const std::string batch = std::string("abcdefgh", std::max(batch_a, batch_b));
  const auto letters = [&](Ref& x, size_t own, const Ref& other, size_t others) {
    std::string kept;
    Extents extents;
    for (size_t d = 0; d < own; ++d) {
      const size_t from_end = own - d;
      const bool beside = from_end <= others;
      const int64_t met = beside ? other.extents[others - from_end] : 1;
      if (x.extents[d] == 1 && met > 1) continue;
      kept += batch[batch.size() - from_end];
      extents.push_back(x.extents[d]);
    }
    if (kept.size() == own) return kept;
    extents.insert(extents.end(), x.extents.begin() + static_cast<std::ptrdiff_t>(own),
                   x.extents.end());
    x = builder_.reshape(x, extents);
    return kept;
  };
  const Ref whole = a;
  const std::string left = letters(a, batch_a, b, batch_b),
                    right = letters(b, batch_b, whole, batch_a);
  const std::string rows = ra == 1 ? "" : "i";
  return builder_.contract(left + rows + "k," + right + "kj->" + batch + rows + "j", a, b);
}

Made Importer::made_product(const onnx::Node& node) {
  Result<Ref> a = operand(node, 0), b = operand(node, 1);
  if (!a.ok()) return a.error();
  if (!b.ok()) return b.error();
  if (node.op() == "MatMul") return one(matmul(*a, *b));
  if (node.op() == "Einsum") {
    const onnx::Attribute* equation = attribute(node, "equation");
    std::string letters;
    if (equation != nullptr) {
      for (const char c : equation->text()) letters += c == ' ' ? "" : std::string(1, c);
    }
    const size_t comma = letters.find(','), arrow = letters.find("->");
    if (comma != a->extents.size() || arrow == std::string::npos ||
        arrow - comma - 1 != b->extents.size()) {
      return unsupported("an Einsum of this form");
    }
    return std::vector<Ref>{builder_.contract(letters, *a, *b)};
  }
  if (a->extents.size() != 2 || b->extents.size() != 2)
    return bad_input("a Gemm is of two matrices");
  const bool ta = integer(node, "transA", 0) != 0, tb = integer(node, "transB", 0) != 0;
  Ref result =
      builder_.contract(std::string(ta ? "ki" : "ik") + (tb ? ",jk->ij" : ",kj->ij"), *a, *b);
  const double alpha = number(node, "alpha", 1), beta = number(node, "beta", 1);
  if (alpha != 1) result = builder_.elementwise("mul", {result, builder_.constant(alpha)});
  if (node.inputs_size() > 2 && !node.inputs(2).empty()) {
    Result<Ref> bias = operand(node, 2);
    if (!bias.ok()) return bias.error();
    if (beta != 1) bias = builder_.elementwise("mul", {*bias, builder_.constant(beta)});
    result = builder_.elementwise("add", {result, *bias});
  }
  return std::vector<Ref>{result};
}

// With the statistics that training left.
Made Importer::made_batch_normalization(const onnx::Node& node, Ref x) {
  if (integer(node, "training_mode", 0) != 0 || node.outputs_size() != 1) {
    return unsupported("a normalization in training");
  }
  if (x.extents.size() < 2) return bad_input("it has no dimension of channels");
  Extents channels(x.extents.size() - 1, 1);
  channels[0] = x.extents[1];
  std::vector<Ref> of_channel;  // scale, bias, mean, variance
  for (int i = 1; i <= 4; ++i) {
    Result<Ref> value = operand(node, i);
    if (!value.ok()) return value.error();
    if (value->extents != Extents{x.extents[1]}) return bad_input("its channels are not one row");
    of_channel.push_back(builder_.reshape(*value, channels));
  }
  const Ref eps = builder_.constant(number(node, "epsilon", 1e-5));
  const Ref centred = builder_.elementwise("sub", {x, of_channel[2]});
  const Ref scale =
      builder_.elementwise("rsqrt", {builder_.elementwise("add", {of_channel[3], eps})});
  const Ref normal = builder_.elementwise("mul", {centred, scale});
  return std::vector<Ref>{builder_.elementwise(
      "add", {builder_.elementwise("mul", {normal, of_channel[0]}), of_channel[1]})};
}

Made Importer::made_reduction(const onnx::Node& node) {
  Result<Ref> x = operand(node, 0);
  if (!x.ok()) return x.error();
  const auto rank = static_cast<int64_t>(x->extents.size());
  const auto positive = [&](int64_t d) { return d < 0 ? d + rank : d; };
  const std::string& op = node.op();
  if (op == "Softmax")
    return std::vector<Ref>{builder_.softmax(*x, positive(integer(node, "axis", -1)))};
  if (op == "BatchNormalization") return made_batch_normalization(node, *x);
  std::vector<int64_t> dims;
  if (op == "LogSoftmax") {
    dims = {positive(integer(node, "axis", -1))};
    const Ref shifted =
        builder_.elementwise("sub", {*x, builder_.reduce("reduce_max", *x, dims, true)});
    const Ref sum = builder_.reduce("sum", builder_.elementwise("exp", {shifted}), dims, true);
    return std::vector<Ref>{
        builder_.elementwise("sub", {shifted, builder_.elementwise("log", {sum})})};
  }
  if (op == "GlobalAveragePool" || op == "GlobalMaxPool") {
    for (int64_t d = 2; d < rank; ++d) dims.push_back(d);
    return std::vector<Ref>{op == "GlobalMaxPool" ? builder_.reduce("reduce_max", *x, dims, true)
                                                  : builder_.mean(*x, dims, true)};
  }
  if (op == "LayerNormalization" || op == "RMSNormalization" ||
      op == "SimplifiedLayerNormalization") {
    for (int64_t d = positive(integer(node, "axis", -1)); d < rank; ++d) dims.push_back(d);
    Ref centred = *x;
    if (op == "LayerNormalization")
      centred = builder_.elementwise("sub", {*x, builder_.mean(*x, dims, true)});
    const Ref variance = builder_.mean(builder_.elementwise("mul", {centred, centred}), dims, true);
    const Ref eps = builder_.constant(number(node, "epsilon", 1e-5));
    Ref result = builder_.elementwise(
        "mul",
        {centred, builder_.elementwise("rsqrt", {builder_.elementwise("add", {variance, eps})})});
    for (int i = 1; i < node.inputs_size() && i < 3; ++i) {
      Result<Ref> weight = operand(node, i);
      if (!weight.ok()) return weight.error();
      result = builder_.elementwise(i == 1 ? "mul" : "add", {result, *weight});
    }
    return std::vector<Ref>{result};
  }
  if (const auto given = integers(node, 1, "axes")) {
    for (const int64_t d : *given) dims.push_back(positive(d));
  } else if (node.inputs_size() > 1 && !node.inputs(1).empty()) {
    return unsupported("axes that are no constant");
  }
  if (dims.empty()) {
    if (integer(node, "noop_with_empty_axes", 0) != 0) return std::vector<Ref>{*x};
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  }
  const bool keep = integer(node, "keepdims", 1) != 0;
  if (op == "ReduceMean") return std::vector<Ref>{builder_.mean(*x, dims, keep)};
  if (op == "ReduceMax") return std::vector<Ref>{builder_.reduce("reduce_max", *x, dims, keep)};
  if (op == "ReduceMin") {
    const Ref top = builder_.reduce("reduce_max", builder_.elementwise("neg", {*x}), dims, keep);
    return std::vector<Ref>{builder_.elementwise("neg", {top})};
  }
  return std::vector<Ref>{builder_.reduce("sum", *x, dims, keep)};
}

namespace {

// The parts of a Slice: dimension by dimension.
Result<Ref> sliced(Builder& builder, Ref x, const std::vector<int64_t>& starts,
                   const std::vector<int64_t>& ends, const std::vector<int64_t>& axes,
                   const std::vector<int64_t>& steps) {
  const auto rank = static_cast<int64_t>(x.extents.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t given = i < axes.size() ? axes[i] : static_cast<int64_t>(i);
    const int64_t dim = given < 0 ? given + rank : given, step = i < steps.size() ? steps[i] : 1;
    if (dim < 0 || dim >= rank || i >= ends.size()) return bad_input("a slice of no dimension");
    if (step < 1) return unsupported("a slice that runs backwards");
    const int64_t extent = x.extents[static_cast<size_t>(dim)];
    const auto clipped = [&](int64_t at) {
      return std::clamp(at < 0 ? at + extent : at, int64_t{0}, extent);
    };
    const int64_t first = clipped(starts[i]), last = clipped(ends[i]);
    const int64_t count = std::max<int64_t>(0, (last - first + step - 1) / step);
    Extents extents = x.extents;
    extents[static_cast<size_t>(dim)] = count;
    x = builder.emit("slice", {x}, extents, {dim, first, count, step});
  }
  return x;
}

}  // namespace

Made Importer::made_shape(const onnx::Node& node) {
  Result<Ref> x = operand(node, 0);
  if (!x.ok()) return x.error();
  const auto rank = static_cast<int64_t>(x->extents.size());
  const auto positive = [&](int64_t d) { return d < 0 ? d + rank : d; };
  const std::string& op = node.op();
  if (op == "Transpose") {
    std::vector<int64_t> order;
    if (const auto given = integers(node, kNoOperand, "perm")) order = *given;
    for (int64_t d = rank; order.empty() && d-- > 0;) order.push_back(d);
    if (static_cast<int64_t>(order.size()) != rank) {
      order.clear();
      for (int64_t d = rank; d-- > 0;) order.push_back(d);
    }
    return std::vector<Ref>{builder_.permute(*x, order)};
  }
  if (op == "Concat") {
    std::vector<Ref> parts;
    for (int i = 0; i < node.inputs_size(); ++i) {
      Result<Ref> part = operand(node, i);
      if (!part.ok()) return part.error();
      parts.push_back(std::move(*part));
    }
    const int64_t dim = positive(integer(node, "axis", 0));
    Extents extents = x->extents;
    if (dim < 0 || dim >= rank) return bad_input("there is no dimension " + std::to_string(dim));
    for (size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].extents.size() != extents.size()) return bad_input("operands of different rank");
      extents[static_cast<size_t>(dim)] += parts[i].extents[static_cast<size_t>(dim)];
    }
    return std::vector<Ref>{builder_.emit("concat", parts, extents, {dim})};
  }
  if (op == "Slice") {
    const auto starts = integers(node, 1, "starts"), ends = integers(node, 2, "ends");
    if (!starts || !ends) return unsupported("a slice whose ends are no constants");
    return one(sliced(builder_, *x, *starts, *ends, integers(node, 3, "axes").value_or(Extents{}),
                      integers(node, 4, "steps").value_or(Extents{})));
  }
  if (op == "Split") {
    const int64_t dim = positive(integer(node, "axis", 0));
    if (dim < 0 || dim >= rank) return bad_input("there is no dimension " + std::to_string(dim));
    Extents sizes = integers(node, 1, "split").value_or(Extents{});
    const int64_t extent = x->extents[static_cast<size_t>(dim)], parts = node.outputs_size();
    for (int64_t i = 0, size = (extent + parts - 1) / parts;
         sizes.size() < static_cast<size_t>(parts); ++i) {
      sizes.push_back(std::min(size, extent - i * size));
    }
    std::vector<Ref> made_parts;
    int64_t first = 0;
    for (const int64_t size : sizes) {
      Result<Ref> part = sliced(builder_, *x, {first}, {first + size}, {dim}, {1});
      if (!part.ok()) return part.error();
      made_parts.push_back(std::move(*part));
      first += size;
    }
    return made_parts;
  }
  Extents extents;
  if (op == "Flatten") {
    const int64_t axis = positive(integer(node, "axis", 1));
    extents = {1, 1};
    for (int64_t d = 0; d < rank; ++d)
      extents[d < axis ? 0 : 1] *= x->extents[static_cast<size_t>(d)];
    return std::vector<Ref>{builder_.reshape(*x, extents)};
  }
  const bool by_axes = op == "Squeeze" || op == "Unsqueeze";
  const auto given = integers(node, 1, by_axes ? "axes" : "shape");
  if (op == "Unsqueeze") {
    if (!given) return unsupported("axes that are no constant");
    extents = x->extents;
    const int64_t new_rank = rank + static_cast<int64_t>(given->size());
    std::set<int64_t> at;
    for (const int64_t d : *given) at.insert(d < 0 ? d + new_rank : d);
    for (const int64_t d : at) {
      if (d < 0 || d > static_cast<int64_t>(extents.size())) return bad_input("no such dimension");
      extents.insert(extents.begin() + d, 1);
    }
  } else if (op == "Squeeze") {
    std::set<int64_t> at;
    for (const int64_t d : given.value_or(Extents{})) at.insert(positive(d));
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t extent = x->extents[static_cast<size_t>(d)];
      if (extent != 1 || (given && at.count(d) == 0)) extents.push_back(extent);
    }
  } else {  // Reshape, Expand
    if (!given) return unsupported("a shape that is no constant");
    if (op == "Expand") {
      const Ref ones = builder_.emit("expand", {builder_.constant(1)}, *given, *given);
      return std::vector<Ref>{builder_.elementwise("mul", {*x, ones})};
    }
    int64_t total = 1, known = 1;
    for (const int64_t e : x->extents) total *= e;
    for (size_t d = 0; d < given->size(); ++d) {
      extents.push_back((*given)[d] == 0 && d < x->extents.size() ? x->extents[d] : (*given)[d]);
      if (extents.back() > 0) known *= extents.back();
    }
    for (int64_t& e : extents) e = e == -1 ? total / std::max<int64_t>(known, 1) : e;
  }
  return std::vector<Ref>{builder_.reshape(*x, extents)};
}

Made Importer::made(const onnx::Node& node) {
  static const std::set<std::string> kShapes = {"Transpose", "Concat",  "Slice",
                                                "Split",     "Flatten", "Reshape",
                                                "Expand",    "Squeeze", "Unsqueeze"};
  static const std::set<std::string> kReductions = {
      "Softmax",    "ReduceSum",          "ReduceMean",        "ReduceMax",
      "ReduceMin",  "LayerNormalization", "RMSNormalization",  "SimplifiedLayerNormalization",
      "LogSoftmax", "BatchNormalization", "GlobalAveragePool", "GlobalMaxPool"};
  static const std::set<std::string> kOthers = {
      "Identity", "Reciprocal", "Gelu", "Pow",         "Clip",    "Cast",           "Where", "Not",
      "And",      "Or",         "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"};
  const std::string& op = node.op();
  if (op == "Constant") {
    const onnx::Attribute* value = attribute(node, "value");
    if (value != nullptr && node.outputs_size() == 1) {
      const Status status = add_weight(node.outputs(0), value->tensor());
      if (!status.ok()) return status.error();
      if (constants_.count(node.outputs(0)) != 0) return std::vector<Ref>{};
    }
    return limit_error("a constant of more than " + std::to_string(kSmallConstant) +
                       " elements, or of no tensor");
  }
  // "Not known" is told even of nodes that read something lost: the user wants the whole list.
  if (!node.domain().empty() && node.domain() != "ai.onnx" &&
      op != "SimplifiedLayerNormalization") {
    return limit_error("the operator is of the domain " + node.domain());
  }
  if (op == "MatMul" || op == "Gemm" || op == "Einsum") return made_product(node);
  if (op == "Conv") return made_convolution(node);
  if (op == "MaxPool" || op == "AveragePool") return made_pool(node);
  if (kShapes.count(op) != 0) return made_shape(node);
  if (kReductions.count(op) != 0) return made_reduction(node);
  if (plain_operators().count(op) != 0 || kOthers.count(op) != 0) return made_elementwise(node);
  return limit_error("the operator is not known");
}

}  // namespace sundog::frontend
