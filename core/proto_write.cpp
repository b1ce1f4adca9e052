#include "core/proto.h"
#include "core/sundog.pb.h"
#include "core/text_mugraph_syntax.h"

namespace sundog {
namespace {

void write(const IndexExpr& e, proto::IndexExpr* to) {
  to->set_constant(e.constant);
  const auto items = [](const std::vector<IndexExpr::Item>& from, auto* list) {
    for (const auto& item : from) {
      proto::IndexItem* added = list->Add();
      added->set_axis(item.axis);
      added->set_coefficient(item.coefficient);
    }
  };
  items(e.axes, to->mutable_axes());
  items(e.sizes, to->mutable_sizes());
}

proto::Relation message_of(Relation relation) {
  switch (relation) {
    case Relation::kLess:
      return proto::LESS;
    case Relation::kLessEqual:
      return proto::LESS_EQUAL;
    case Relation::kEqual:
      return proto::EQUAL;
    case Relation::kNotEqual:
      return proto::NOT_EQUAL;
  }
  return proto::LESS;
}

void write(const IndexCondition& c, proto::IndexCondition* to) {
  write(c.expr, to->mutable_expr());
  to->set_relation(message_of(c.relation));
}

void write_attribute(const Number& number, proto::Attribute* to) {
  to->set_number(number.to_text());
}
void write_attribute(DType dtype, proto::Attribute* to) { to->set_dtype(std::string(name(dtype))); }

// One overload a kind of term.
struct TermWriter {
  proto::Term* to;

  void operator()(const InputTerm& t) const {
    to->mutable_input()->set_tensor(t.tensor);
    for (const IndexExpr& e : t.index) write(e, to->mutable_input()->add_index());
  }
  void operator()(const LocalTerm& t) const {
    to->mutable_local()->set_computation(t.computation);
    for (AxisId axis : t.axes) to->mutable_local()->add_axes(axis);
  }
  void operator()(const ConstantTerm& t) const { to->set_constant(t.value.to_text()); }
  void operator()(const SizeTerm& t) const { to->set_size(t.axis); }
  void operator()(const IndexTerm& t) const { write(t.index, to->mutable_index()); }
  void operator()(const ApplyTerm& t) const {
    proto::Term::Apply* apply = to->mutable_apply();
    apply->set_op(std::string(name(t.op)));
    std::visit(
        [&](const auto& o) {
          std::apply([&](const auto&... a) { (write_attribute(a, apply->add_attributes()), ...); },
                     o.attributes());
        },
        t.op);
    for (TermId operand : t.operands) apply->add_operands(operand);
  }
  void operator()(const ReduceTerm& t) const {
    proto::Term::Reduce* reduce = to->mutable_reduce();
    reduce->set_kind(t.kind == ReduceKind::kSum ? proto::Term::SUM : proto::Term::MAX);
    for (AxisId axis : t.axes) reduce->add_axes(axis);
    reduce->set_operand(t.operand);
  }
  void operator()(const SelectTerm& t) const {
    write(t.condition, to->mutable_select()->mutable_condition());
    to->mutable_select()->set_then(t.then);
    to->mutable_select()->set_otherwise(t.otherwise);
  }
  void operator()(const CompareTerm& t) const {
    proto::Term::Compare* compare = to->mutable_compare();
    compare->set_relation(message_of(t.relation));
    compare->set_left(t.left);
    compare->set_right(t.right);
    compare->set_then(t.then);
    compare->set_otherwise(t.otherwise);
  }
};

template <class Message>
void write(const TermGraph& terms, Message* to) {
  for (TermId id = 0; id < terms.size(); ++id) {
    std::visit(TermWriter{to->add_terms()}, terms[id]);
  }
}

void write(const TensorDecl& tensor, proto::Tensor* to) {
  to->set_name(tensor.name);
  to->set_dtype(std::string(name(tensor.dtype)));
  for (const std::string& dim : tensor.dim_names) to->add_dim_names(dim);
  for (const IndexExpr& dim : tensor.dims) write(dim, to->add_dims());
  for (int64_t extent : tensor.extents) to->add_extents(extent);
  for (int64_t stride : tensor.strides) to->add_strides(stride);
  to->set_offset(tensor.offset);
  to->set_alignment(tensor.alignment);
  if (tensor.low) to->set_low(tensor.low->to_text());
  if (tensor.high) to->set_high(tensor.high->to_text());
}

using Statements = google::protobuf::RepeatedPtrField<proto::Kernel::Statement>;

void write(const std::vector<Statement>& body, Statements* list) {
  for (const Statement& statement : body) {
    proto::Kernel::Statement* to = list->Add();
    if (const auto* compute = std::get_if<Compute>(&statement.node)) {
      to->set_compute(compute->computation);
    } else if (const auto* store = std::get_if<Store>(&statement.node)) {
      to->mutable_store()->set_computation(store->computation);
      to->mutable_store()->set_tensor(store->tensor);
      for (const IndexExpr& e : store->index) write(e, to->mutable_store()->add_index());
    } else {
      const Loop& loop = std::get<Loop>(statement.node);
      to->mutable_loop()->set_factor(loop.factor);
      to->mutable_loop()->set_stages(loop.stages);
      to->mutable_loop()->set_bulk(loop.bulk);
      for (const IndexCondition& c : loop.trim) write(c, to->mutable_loop()->add_trim());
      write(loop.body, to->mutable_loop()->mutable_body());
    }
  }
}

void write(const Computation& c, proto::Kernel::Computation* to) {
  to->set_name(c.name);
  for (AxisId axis : c.axes) to->add_axes(axis);
  to->set_value(c.value);
  to->set_storage(c.storage == Storage::kReg ? proto::Kernel::REG : proto::Kernel::SHARED);
  to->set_dtype(std::string(name(c.dtype)));
  if (c.rescale != kNone) to->set_rescale(c.rescale);
  if (c.accumulate_into != kNone) to->set_accumulate_into(c.accumulate_into);
  if (c.mma != MmaAtom::kNoAtom) to->set_mma(std::string(text::name(c.mma)));
  to->set_mma_swap(c.mma_swap);
  for (const WarpSplit& split : c.warps) {
    proto::Kernel::WarpSplit* added = to->add_warps();
    added->set_factor(split.factor);
    added->set_count(split.count);
  }
}

void write(const Kernel& kernel, proto::Kernel* to) {
  to->set_name(kernel.name);
  for (const Factor& factor : kernel.factors) {
    proto::Kernel::Factor* added = to->add_factors();
    added->set_name(factor.name);
    added->set_axis(factor.axis);
    added->set_extent(factor.extent);
    added->set_stride(factor.stride);
  }
  for (AxisId factor : kernel.grid) to->add_grid(factor);
  to->set_warps(kernel.warps);
  to->set_via(static_cast<proto::Kernel::Via>(kernel.via));
  to->set_kind(static_cast<proto::Kernel::Kind>(kernel.kind));
  write(kernel.terms, to);
  for (const Computation& c : kernel.computations) write(c, to->add_computations());
  write(kernel.body, to->mutable_body());
}

}  // namespace

void to_message(const Program& program, proto::Program* to) {
  to->Clear();
  to->set_name(program.name);
  for (const Parameter& p : program.parameters) {
    proto::Program::Parameter* added = to->add_parameters();
    added->set_name(p.name);
    added->set_value(p.value);
    added->set_expression(p.expression);
  }
  for (const Axis& axis : program.axes) {
    proto::Axis* added = to->add_axes();
    added->set_name(axis.name);
    added->set_extent(axis.extent);
  }
  for (const ProgramSplit& split : program.splits) {
    proto::Program::Split* added = to->add_splits();
    added->set_axis(split.axis);
    added->set_extent(split.extent);
    for (AxisId factor : split.factors) added->add_factors(factor);
  }
  for (const TensorDecl& input : program.inputs) write(input, to->add_inputs());
  for (const Output& output : program.outputs) {
    proto::Program::Output* added = to->add_outputs();
    write(output.tensor, added->mutable_tensor());
    added->set_value(output.value);
  }
  for (const Definition& definition : program.definitions) {
    proto::Program::Definition* added = to->add_definitions();
    added->set_name(definition.name);
    added->set_value(definition.value);
    for (AxisId axis : definition.axes) added->add_axes(axis);
    added->set_file(definition.position.file);
    added->set_line(definition.position.line);
    added->set_column(definition.position.column);
  }
  write(program.terms, to);
}

void to_message(const MuGraph& graph, proto::MuGraph* to) {
  to->Clear();
  to->set_name(graph.name);
  to->set_program(graph.program);
  for (const MuAxis& axis : graph.axes) {
    proto::MuGraph::MuAxis* added = to->add_axes();
    added->set_name(axis.name);
    added->set_extent(axis.extent);
    if (axis.kernel != kNone) added->set_kernel(axis.kernel);
    added->set_factor(axis.factor);
  }
  for (const DeviceTensor& tensor : graph.tensors) {
    proto::MuGraph::DeviceTensor* added = to->add_tensors();
    write(tensor.decl, added->mutable_tensor());
    added->set_role(tensor.role == TensorRole::kInput    ? proto::MuGraph::INPUT
                    : tensor.role == TensorRole::kOutput ? proto::MuGraph::OUTPUT
                                                         : proto::MuGraph::INTERMEDIATE);
  }
  for (const Kernel& kernel : graph.kernels) write(kernel, to->add_kernels());
}

std::string serialize(const Program& program) {
  proto::Program message;
  to_message(program, &message);
  return message.SerializeAsString();  // no maps, so the bytes are a function of the value
}

std::string serialize(const MuGraph& graph) {
  proto::MuGraph message;
  to_message(graph, &message);
  return message.SerializeAsString();
}

}  // namespace sundog
