#include <google/protobuf/stubs/logging.h>

#include <algorithm>

#include "core/proto.h"
#include "core/sundog.pb.h"
#include "core/text.h"
#include "core/text_limits.h"
#include "core/text_mugraph_syntax.h"

// Every number of a message is looked at before it indexes or sizes anything.  The first breach is
// kept, and what is built from then on is thrown away.

namespace sundog {
namespace {

constexpr int64_t kMaxNumber = int64_t{1} << 62;  // extents, offsets
constexpr int64_t kMaxFactor = int64_t{1} << 53;  // numbers in index expressions
constexpr int kMaxTerms = 1'000'000;

class Reader {
 public:
  void fail(const std::string& what) {
    if (!error_) error_ = bad_input("the stored form is damaged: " + what);
  }
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

  std::string word(const std::string& name, const char* what) {
    if (!is_name(name)) fail(std::string(what) + " has no proper name");
    return name;
  }
  DType dtype(const std::string& name) {
    const auto result = parse_dtype(name);
    if (!result) fail("an unknown type");
    return result.value_or(DType::kF32);
  }
  Number number(const std::string& text) {
    const auto result = Number::parse(text);
    if (!result) fail("a constant that is no number");
    return result.value_or(Number());
  }
  uint32_t id(uint32_t value, size_t count, const char* what) {
    if (value >= count) fail(std::string("an unknown ") + what);
    return value < count ? value : 0;
  }
  int64_t size(int64_t value, const char* what) {
    if (value < 0 || value > kMaxNumber) fail(std::string(what) + " out of range");
    return std::clamp<int64_t>(value, 0, kMaxNumber);
  }

  // `axes` and `sizes` are how many axes index and size terms may name.
  IndexExpr index(const proto::IndexExpr& from, size_t axes, size_t sizes) {
    IndexExpr e{coefficient(from.constant()), {}, {}};
    e.axes = items(from.axes(), axes);
    e.sizes = items(from.sizes(), sizes);
    return e;
  }
  IndexCondition condition(const proto::IndexCondition& from, size_t axes, size_t sizes) {
    return {index(from.expr(), axes, sizes), relation(from.relation())};
  }
  Relation relation(proto::Relation from) {
    for (Relation r :
         {Relation::kLess, Relation::kLessEqual, Relation::kEqual, Relation::kNotEqual}) {
      if (static_cast<int>(r) == static_cast<int>(from)) return r;
    }
    fail("an unknown relation");
    return Relation::kLess;
  }
  template <class List>
  AxisSet axis_set(const List& from, size_t axes) {
    AxisSet result;
    for (uint32_t axis : from) result.insert(id(axis, std::min<size_t>(axes, kMaxAxes), "axis"));
    return result;
  }
  template <class List>
  std::vector<AxisId> axis_list(const List& from, size_t axes) {
    std::vector<AxisId> result;
    for (uint32_t axis : from) result.push_back(id(axis, std::min<size_t>(axes, kMaxAxes), "axis"));
    return result;
  }
  TensorDecl tensor(const proto::Tensor& from, size_t axes);

 private:
  int64_t coefficient(int64_t value) {
    if (value > kMaxFactor || value < -kMaxFactor) fail("a number in an index is out of range");
    return std::clamp(value, -kMaxFactor, kMaxFactor);
  }
  template <class List>
  std::vector<IndexExpr::Item> items(const List& from, size_t axes) {
    std::vector<IndexExpr::Item> result;
    for (const auto& item : from) {
      result.push_back({id(item.axis(), std::min<size_t>(axes, kMaxAxes), "axis"),
                        coefficient(item.coefficient())});
      const size_t last = result.size() - 1;
      if (item.coefficient() == 0 || (last > 0 && result[last - 1].axis >= result[last].axis)) {
        fail("an index expression that is not in order");
      }
    }
    return result;
  }

  std::optional<Error> error_;
};

TensorDecl Reader::tensor(const proto::Tensor& from, size_t axes) {
  TensorDecl result;
  result.name = word(from.name(), "a tensor");
  result.dtype = dtype(from.dtype());
  result.dim_names.assign(from.dim_names().begin(), from.dim_names().end());
  for (const std::string& dim : result.dim_names) word(dim, "a dimension");
  for (const auto& dim : from.dims()) result.dims.push_back(index(dim, axes, axes));
  for (int64_t extent : from.extents()) result.extents.push_back(size(extent, "an extent"));
  for (int64_t stride : from.strides()) result.strides.push_back(size(stride, "a stride"));
  if (!result.dim_names.empty() && result.dim_names.size() != result.dims.size()) {
    fail("a tensor with as many names of dimensions as it has not dimensions");
  }
  result.offset = size(from.offset(), "an offset");
  result.alignment = from.alignment();
  if (from.has_low()) result.low = number(from.low());
  if (from.has_high()) result.high = number(from.high());
  return result;
}

// Terms of one graph, in order.
class TermReader {
 public:
  // How many tensors, computations, axes (of indices) and sized axes there are to name.
  TermReader(Reader& reader, size_t tensors, size_t computations, size_t axes, size_t sizes)
      : reader_(reader),
        tensors_(tensors),
        computations_(computations),
        axes_(axes),
        sizes_(sizes) {}

  template <class List>
  TermGraph run(const List& from) {
    if (from.size() > kMaxTerms) reader_.fail("too many terms");
    for (const proto::Term& term : from) {
      if (reader_.failed()) break;
      const auto built = read(term);
      if (reader_.failed() || !built) break;
      ids_.push_back(graph_.push(*built));
    }
    return std::move(graph_);
  }

  // The id of the term that stands at `position` in the message.
  TermId id(uint32_t position) {
    const uint32_t known = reader_.id(position, ids_.size(), "term");
    return known < ids_.size() ? ids_[known] : 0;
  }

 private:
  std::optional<Term> read(const proto::Term& term) {
    switch (term.term_case()) {
      case proto::Term::kInput: {
        InputTerm input{reader_.id(term.input().tensor(), tensors_, "tensor"), {}};
        for (const auto& e : term.input().index()) input.index.push_back(index(e));
        return input;
      }
      case proto::Term::kLocal:
        return LocalTerm{reader_.id(term.local().computation(), computations_, "computation"),
                         reader_.axis_set(term.local().axes(), axes_)};
      case proto::Term::kConstant:
        return ConstantTerm{reader_.number(term.constant())};
      case proto::Term::kSize:
        return SizeTerm{reader_.id(term.size(), sizes_, "axis")};
      case proto::Term::kIndex:
        return IndexTerm{index(term.index())};
      case proto::Term::kApply:
        return apply(term.apply());
      case proto::Term::kReduce: {
        const auto kind = term.reduce().kind();
        if (kind != proto::Term::SUM && kind != proto::Term::MAX)
          reader_.fail("an unknown reduction");
        return ReduceTerm{kind == proto::Term::SUM ? ReduceKind::kSum : ReduceKind::kMax,
                          reader_.axis_set(term.reduce().axes(), axes_),
                          id(term.reduce().operand())};
      }
      case proto::Term::kSelect:
        return SelectTerm{reader_.condition(term.select().condition(), axes_, sizes_),
                          id(term.select().then()), id(term.select().otherwise())};
      case proto::Term::kCompare:
        return CompareTerm{reader_.relation(term.compare().relation()), id(term.compare().left()),
                           id(term.compare().right()), id(term.compare().then()),
                           id(term.compare().otherwise())};
      case proto::Term::TERM_NOT_SET:
        break;
    }
    reader_.fail("a term of an unknown kind");
    return std::nullopt;
  }

  IndexExpr index(const proto::IndexExpr& e) { return reader_.index(e, axes_, sizes_); }

  void attribute(const proto::Attribute& from, Number& to) {
    if (!from.has_number()) reader_.fail("an attribute of the wrong type");
    to = from.has_number() ? reader_.number(from.number()) : Number();
  }
  void attribute(const proto::Attribute& from, DType& to) {
    if (!from.has_dtype()) reader_.fail("an attribute of the wrong type");
    to = from.has_dtype() ? reader_.dtype(from.dtype()) : DType::kF32;
  }

  std::optional<Term> apply(const proto::Term::Apply& from) {
    std::optional<Term> result;
    for_each_op([&]<class O>() {
      if (result || from.op() != O::name) return;
      O op;
      constexpr auto kAttributes = static_cast<int>(std::tuple_size_v<decltype(op.attributes())>);
      if (from.attributes_size() != kAttributes || from.operands_size() != O::arity) {
        return reader_.fail("operator " + std::string(O::name) +
                            " with a wrong number of operands");
      }
      int next = 0;
      std::apply([&](auto&... a) { (attribute(from.attributes(next++), a), ...); },
                 op.attributes());
      std::vector<TermId> operands;
      for (uint32_t operand : from.operands()) operands.push_back(id(operand));
      result = ApplyTerm{std::move(op), std::move(operands)};
    });
    if (!result) reader_.fail("an unknown operator");
    return result;
  }

  Reader& reader_;
  size_t tensors_, computations_, axes_, sizes_;
  TermGraph graph_;
  std::vector<TermId> ids_;
};

class KernelReader {
 public:
  KernelReader(Reader& reader, const proto::Kernel& from, size_t tensors, size_t axes)
      : reader_(reader), from_(from), tensors_(tensors), axes_(axes) {}

  Kernel run() {
    Kernel kernel;
    kernel.name = reader_.word(from_.name(), "a kernel");
    kernel.warps = from_.warps();
    if (!proto::Kernel::Via_IsValid(from_.via())) reader_.fail("an unknown way to launch a kernel");
    kernel.via = static_cast<Via>(from_.via());
    if (!proto::Kernel::Kind_IsValid(from_.kind())) reader_.fail("an unknown kind of kernel");
    kernel.kind = static_cast<KernelKind>(from_.kind());
    if (from_.factors_size() > kMaxAxes) reader_.fail("too many factors");
    for (const auto& f : from_.factors()) {
      kernel.factors.push_back(
          {reader_.word(f.name(), "a factor"), reader_.id(f.axis(), axes_, "axis"),
           reader_.size(f.extent(), "an extent"), reader_.size(f.stride(), "a stride")});
    }
    kernel.grid = reader_.axis_list(from_.grid(), factors());
    TermReader terms(reader_, tensors_, computations(), factors(), axes_);
    kernel.terms = terms.run(from_.terms());
    for (const auto& c : from_.computations()) {
      if (!reader_.failed()) kernel.computations.push_back(computation(c, terms));
    }
    body(from_.body(), kernel.body);
    return kernel;
  }

 private:
  size_t factors() const { return static_cast<size_t>(from_.factors_size()); }
  size_t computations() const { return static_cast<size_t>(from_.computations_size()); }

  Computation computation(const proto::Kernel::Computation& from, TermReader& terms) {
    Computation c;
    c.name = reader_.word(from.name(), "a computation");
    c.axes = reader_.axis_list(from.axes(), factors());
    c.value = terms.id(from.value());
    if (from.storage() != proto::Kernel::REG && from.storage() != proto::Kernel::SHARED) {
      reader_.fail("an unknown storage");
    }
    c.storage = from.storage() == proto::Kernel::REG ? Storage::kReg : Storage::kShared;
    c.dtype = reader_.dtype(from.dtype());
    if (from.has_rescale()) c.rescale = reader_.id(from.rescale(), computations(), "computation");
    if (from.has_accumulate_into()) {
      c.accumulate_into = reader_.id(from.accumulate_into(), computations(), "computation");
    }
    c.mma = text::find_atom(from.mma());
    if (c.mma == MmaAtom::kNoAtom && !from.mma().empty()) reader_.fail("an unknown mma atom");
    c.mma_swap = from.mma_swap();
    for (const auto& split : from.warps()) {
      c.warps.push_back({reader_.id(split.factor(), factors(), "factor"), split.count()});
    }
    return c;
  }

  template <class List>
  void body(const List& from, std::vector<Statement>& to) {
    for (const proto::Kernel::Statement& statement : from) {
      if (reader_.failed()) return;
      switch (statement.statement_case()) {
        case proto::Kernel::Statement::kCompute:
          to.push_back({Compute{reader_.id(statement.compute(), computations(), "computation")}});
          break;
        case proto::Kernel::Statement::kStore: {
          const auto& s = statement.store();
          Store store{reader_.id(s.computation(), computations(), "computation"),
                      reader_.id(s.tensor(), tensors_, "tensor"),
                      {}};
          for (const auto& e : s.index()) store.index.push_back(reader_.index(e, factors(), axes_));
          to.push_back({std::move(store)});
          break;
        }
        case proto::Kernel::Statement::kLoop: {
          const auto& l = statement.loop();
          Loop loop;
          loop.factor = reader_.id(l.factor(), factors(), "factor");
          loop.stages = l.stages();
          loop.bulk = l.bulk();
          for (const auto& c : l.trim())
            loop.trim.push_back(reader_.condition(c, factors(), axes_));
          body(l.body(), loop.body);
          to.push_back({std::move(loop)});
          break;
        }
        case proto::Kernel::Statement::STATEMENT_NOT_SET:
          reader_.fail("a statement of an unknown kind");
          break;
      }
    }
  }

  Reader& reader_;
  const proto::Kernel& from_;
  size_t tensors_, axes_;
};

bool printable(const std::string& text) {
  return text.size() < 1000 && std::all_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7f;
         });
}

void read_names(Reader& reader, const proto::Program& from, Program& program) {
  program.name = reader.word(from.name(), "the program");
  for (const auto& p : from.parameters()) {
    if (!printable(p.expression())) reader.fail("an expression of a parameter");
    program.parameters.push_back({reader.word(p.name(), "a parameter"), p.value(), p.expression()});
  }
  if (from.axes_size() > kMaxAxes) reader.fail("too many axes");
  for (const auto& axis : from.axes()) {
    program.axes.push_back(
        {reader.word(axis.name(), "an axis"), reader.size(axis.extent(), "an extent")});
  }
  for (const auto& split : from.splits()) {
    ProgramSplit result{reader.word(split.axis(), "a split"),
                        reader.size(split.extent(), "an extent"),
                        reader.axis_list(split.factors(), program.axes.size())};
    long double product = 1;
    for (AxisId axis : result.factors) {
      if (!reader.failed()) product *= static_cast<long double>(program.axes[axis].extent);
    }
    if (product > static_cast<long double>(kMaxNumber)) reader.fail("a split that is too large");
    program.splits.push_back(std::move(result));
  }
}

}  // namespace

Result<Program> from_message(const proto::Program& from) {
  Reader reader;
  Program program;
  read_names(reader, from, program);
  if (reader.failed()) return reader.error();
  const size_t axes = program.axes.size();
  for (const auto& input : from.inputs()) program.inputs.push_back(reader.tensor(input, axes));
  TermReader terms(reader, program.inputs.size(), 0, axes, axes);
  program.terms = terms.run(from.terms());
  for (const auto& output : from.outputs()) {
    if (reader.failed()) break;
    program.outputs.push_back({reader.tensor(output.tensor(), axes), terms.id(output.value())});
  }
  for (const auto& d : from.definitions()) {
    if (reader.failed()) break;
    if (!printable(d.file())) reader.fail("the name of a file");
    program.definitions.push_back({reader.word(d.name(), "a definition"), terms.id(d.value()),
                                   reader.axis_list(d.axes(), axes),
                                   Position{d.file(), d.line(), d.column()}});
  }
  if (reader.failed()) return reader.error();
  SUNDOG_RETURN_IF_ERROR(text::check_limits(program));
  SUNDOG_RETURN_IF_ERROR(check(program));
  return program;
}

Result<MuGraph> from_message(const proto::MuGraph& from, const Program& program) {
  Reader reader;
  MuGraph graph;
  graph.name = reader.word(from.name(), "the µGraph");
  graph.program = reader.word(from.program(), "the program");
  if (from.axes_size() > kMaxAxes) reader.fail("too many axes");
  const auto kernels = static_cast<size_t>(from.kernels_size());
  for (const auto& axis : from.axes()) {
    MuAxis result{reader.word(axis.name(), "an axis"), reader.size(axis.extent(), "an extent")};
    if (axis.has_kernel()) result.kernel = reader.id(axis.kernel(), kernels, "kernel");
    result.factor = reader.id(axis.factor(), kMaxAxes, "factor");
    graph.axes.push_back(std::move(result));
  }
  for (const auto& tensor : from.tensors()) {
    if (reader.failed()) break;
    const auto role = tensor.role();
    if (role < proto::MuGraph::INPUT || role > proto::MuGraph::INTERMEDIATE) {
      reader.fail("a tensor of unknown role");
    }
    graph.tensors.push_back({reader.tensor(tensor.tensor(), graph.axes.size()),
                             role == proto::MuGraph::INPUT    ? TensorRole::kInput
                             : role == proto::MuGraph::OUTPUT ? TensorRole::kOutput
                                                              : TensorRole::kIntermediate});
  }
  for (const auto& kernel : from.kernels()) {
    if (reader.failed()) break;
    graph.kernels.push_back(
        KernelReader(reader, kernel, graph.tensors.size(), graph.axes.size()).run());
  }
  if (reader.failed()) return reader.error();
  SUNDOG_RETURN_IF_ERROR(check(graph, program));
  SUNDOG_RETURN_IF_ERROR(text::check_limits(graph));
  return graph;
}

bool parse_message(std::string_view bytes, google::protobuf::MessageLite* message) {
  const google::protobuf::LogSilencer silence;
  return bytes.size() <= size_t{1} << 30 &&
         message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

Result<Program> parse_program_proto(std::string_view bytes) {
  proto::Program message;
  if (!parse_message(bytes, &message)) {
    return bad_input("these bytes are no stored program");
  }
  return from_message(message);
}

Result<MuGraph> parse_mugraph_proto(std::string_view bytes, const Program& program) {
  proto::MuGraph message;
  if (!parse_message(bytes, &message)) {
    return bad_input("these bytes are no stored µGraph");
  }
  return from_message(message, program);
}

}  // namespace sundog
