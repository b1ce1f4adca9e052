#include "cli/bench_job.h"

#include <tuple>
#include <type_traits>

namespace sundog::cli {
namespace {

const char* name_of(Relation relation) {
  switch (relation) {
    case Relation::kLess:
      return "less";
    case Relation::kLessEqual:
      return "less_equal";
    case Relation::kEqual:
      return "equal";
    case Relation::kNotEqual:
      return "not_equal";
  }
  SUNDOG_CHECK(false);
}

// With the sizes folded into the constant.
void write_index(JsonWriter& json, const IndexExpr& index, const Program& program) {
  int64_t constant = index.constant;
  for (const IndexExpr::Item& item : index.sizes) {
    constant += item.coefficient * program.axes[item.axis].extent;
  }
  json.begin_object().key("constant").value(constant).key("axes").begin_array();
  for (const IndexExpr::Item& item : index.axes) {
    json.begin_array().value(static_cast<int64_t>(item.axis)).value(item.coefficient).end_array();
  }
  json.end_array().end_object();
}

void write_indices(JsonWriter& json, const std::vector<IndexExpr>& indices,
                   const Program& program) {
  json.key("index").begin_array();
  for (const IndexExpr& index : indices) write_index(json, index, program);
  json.end_array();
}

void write_integers(JsonWriter& json, const char* key, const std::vector<int64_t>& values) {
  json.key(key).begin_array();
  for (const int64_t value : values) json.value(value);
  json.end_array();
}

std::string text_of(const Number& number) { return number.to_text(); }
std::string text_of(DType dtype) { return std::string(name(dtype)); }
template <class T>
requires std::is_integral_v<T> std::string text_of(T value) { return std::to_string(value); }

void write_op(JsonWriter& json, const Op& op) {
  json.key("op").value(name(op)).key("attributes").begin_array();
  std::visit(
      [&](const auto& o) {
        std::apply([&](const auto&... a) { (json.value(text_of(a)), ...); }, o.attributes());
      },
      op);
  json.end_array();
}

// The fields of a term besides its operands.
class TermFields {
 public:
  TermFields(JsonWriter& json, const Program& program) : json_(json), program_(program) {}

  void operator()(const InputTerm& t) {
    json_.key("kind").value("input").key("tensor").value(static_cast<int64_t>(t.tensor));
    write_indices(json_, t.index, program_);
  }
  void operator()(const LocalTerm&) { SUNDOG_CHECK(false); }  // of kernels, not of programs
  void operator()(const ConstantTerm& t) { constant(t.value); }
  void operator()(const SizeTerm& t) { constant(Number(program_.axes[t.axis].extent)); }
  void operator()(const IndexTerm& t) {
    json_.key("kind").value("index");
    write_indices(json_, {t.index}, program_);
  }
  void operator()(const ApplyTerm& t) {
    json_.key("kind").value("apply");
    write_op(json_, t.op);
  }
  void operator()(const ReduceTerm& t) {
    json_.key("kind").value(t.kind == ReduceKind::kSum ? "sum" : "max");
    std::vector<int64_t> axes;
    for (const AxisId axis : t.axes) axes.push_back(axis);
    write_integers(json_, "axes", axes);
  }
  void operator()(const SelectTerm& t) {
    json_.key("kind").value("select").key("relation").value(name_of(t.condition.relation));
    write_indices(json_, {t.condition.expr}, program_);
  }
  void operator()(const CompareTerm& t) {
    json_.key("kind").value("compare").key("relation").value(name_of(t.relation));
  }

 private:
  void constant(const Number& value) {
    json_.key("kind").value("constant").key("value");
    // JSON has no infinity; a text is read as a number all the same.
    value.is_infinite() ? json_.value(value.is_negative() ? "-inf" : "inf")
                        : json_.value(value.to_double());
  }

  JsonWriter& json_;
  const Program& program_;
};

void write_term(JsonWriter& json, const Term& term, const Program& program) {
  json.begin_object();
  std::visit(TermFields(json, program), term);
  const std::vector<TermId> ids = operands(term);
  write_integers(json, "operands", {ids.begin(), ids.end()});
  json.end_object();
}

void write_tensor(JsonWriter& json, const TensorDecl& tensor, const Program& program) {
  json.key("name").value(tensor.name).key("dtype").value(name(tensor.dtype));
  json.key("dims").begin_array();
  for (const IndexExpr& dim : tensor.dims) write_index(json, dim, program);
  json.end_array();
  write_integers(json, "extents", tensor.extents);
  write_integers(json, "strides", strides_of(tensor));
  json.key("offset").value(tensor.offset).key("elements").value(span_elements(tensor));
  const auto bound = [&](const char* key, const std::optional<Number>& value) {
    const bool finite = value && !value->is_infinite();
    json.key(key).value(finite ? std::optional<double>(value->to_double()) : std::nullopt);
  };
  bound("low", tensor.low);
  bound("high", tensor.high);
}

}  // namespace

void write_program(JsonWriter& json, const Program& program) {
  json.begin_object().key("name").value(program.name).key("axes").begin_array();
  for (const Axis& axis : program.axes) {
    json.begin_object().key("name").value(axis.name).key("extent").value(axis.extent).end_object();
  }
  json.end_array().key("inputs").begin_array();
  for (const TensorDecl& input : program.inputs) {
    json.begin_object();
    write_tensor(json, input, program);
    json.end_object();
  }
  json.end_array().key("outputs").begin_array();
  for (const Output& output : program.outputs) {
    json.begin_object();
    write_tensor(json, output.tensor, program);
    json.key("value").value(static_cast<int64_t>(output.value)).end_object();
  }
  json.end_array().key("terms").begin_array();
  for (TermId t = 0; t < program.terms.size(); ++t) write_term(json, program.terms[t], program);
  json.end_array().end_object();
}

std::string job_text(const BaselineJob& job) {
  JsonWriter json;
  json.begin_object().key("device").value(job.gpu ? "cuda" : "cpu").key("methods").begin_array();
  for (const std::string& method : job.methods) json.value(method);
  json.end_array().key("replays").value(job.replays).key("flush_bytes").value(job.flush_bytes);
  json.key("seed").value(static_cast<int64_t>(job.seed)).key("seconds").value(job.row_seconds);
  json.key("rows").begin_array();
  const auto maybe = [&](const char* key, const std::string& value) {
    json.key(key);
    value.empty() ? json.null() : json.value(value);
  };
  for (const BaselineRow& row : job.rows) {
    json.begin_object().key("name").value(row.name).key("program");
    write_program(json, *row.program);
    maybe("kernel", row.kernel);
    maybe("kernel_note", row.kernel_note);
    maybe("triton", row.triton);
    json.end_object();
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

}  // namespace sundog::cli
