#include "cli/result.h"

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <utility>

#include "core/proto.h"
#include "core/sundog.pb.h"
#include "search/candidate.h"

namespace sundog::cli {
namespace {

using codegen::LaunchPlan;
using codegen::PlanArgument;
using codegen::PlanKernel;
using codegen::PlanTensor;
using codegen::PlanTensorMap;

proto::Verdict::Answer answer_of(const std::string& text) {
  if (text == "equivalent") return proto::Verdict::EQUIVALENT;
  if (text == "different") return proto::Verdict::DIFFERENT;
  return proto::Verdict::UNKNOWN;
}

}  // namespace

StoredCandidate stored_candidate(search::Candidate found) {
  StoredCandidate out;
  out.graph = std::move(found.graph);
  out.predicted_us = found.predicted_us;
  out.structure = std::move(found.structure);
  out.kind = std::move(found.kind);
  return out;
}

void to_message(const verify::Witness& witness, proto::Verdict::Witness* message) {
  message->set_output(witness.output);
  for (const int64_t index : witness.element) message->add_index(index);
  message->set_expected(witness.expected);
  message->set_got(witness.actual);
  message->set_seed(witness.seed);
  message->set_sizes(witness.sizes);
  message->set_inputs(witness.inputs);
  message->set_precision(witness.precision);
  message->set_fault(witness.fault);
}

verify::Witness witness_of(const proto::Verdict::Witness& message) {
  verify::Witness witness;
  witness.output = message.output();
  witness.element.assign(message.index().begin(), message.index().end());
  witness.expected = message.expected();
  witness.actual = message.got();
  witness.seed = message.seed();
  witness.sizes = message.sizes();
  witness.inputs = message.inputs();
  witness.precision = message.precision();
  witness.fault = message.fault();
  return witness;
}

void to_message(const Evidence& evidence, proto::Verdict* message) {
  message->set_answer(answer_of(evidence.answer));
  message->set_reason(evidence.reason);
  proto::Verdict::Field& field = *message->mutable_field();
  field.set_rounds(evidence.rounds);
  for (const uint64_t prime : evidence.primes) field.add_primes(prime);
  for (const uint64_t seed : evidence.seeds) field.add_seeds(seed);
  field.set_error_log2(evidence.error_log2);
  for (const std::string& sizes : evidence.sizes) field.add_sizes(sizes);
  field.set_image_only(evidence.image_only);
  field.set_nested(evidence.nested);
  field.set_seed(evidence.seed);
  field.set_asked_error_log2(evidence.asked_error_log2);
  for (const Evidence::Case& each : evidence.numerics) {
    proto::Verdict::NumericsCase& entry = *message->add_numerics();
    entry.set_name(each.name);
    entry.set_candidate_error(each.candidate_error);
    entry.set_program_error(each.program_error);
    entry.set_accepted(each.accepted);
    entry.set_error_bound(each.error_bound);
    entry.set_differing(each.differing);
    entry.set_compared(each.compared);
  }
  message->set_ranges(evidence.ranges);
  message->set_proof(evidence.proof);
  message->set_kernel_check(evidence.kernel_check);
  message->set_full_size(evidence.full_size);
  message->set_numerics_sizes(evidence.numerics_sizes);
  if (evidence.witness) to_message(*evidence.witness, message->mutable_witness());
}

namespace {

std::string answer_text(const proto::Verdict& verdict) {
  if (verdict.answer() == proto::Verdict::EQUIVALENT) return "equivalent";
  if (verdict.answer() == proto::Verdict::DIFFERENT) return "different";
  return verdict.reason().empty() ? "" : "unknown";
}

Evidence from_message(const proto::Verdict& message) {
  Evidence evidence;
  evidence.answer = answer_text(message);
  evidence.reason = message.reason();
  const proto::Verdict::Field& field = message.field();
  evidence.rounds = field.rounds();
  evidence.primes.assign(field.primes().begin(), field.primes().end());
  evidence.seeds.assign(field.seeds().begin(), field.seeds().end());
  evidence.error_log2 = field.error_log2();
  evidence.sizes.assign(field.sizes().begin(), field.sizes().end());
  evidence.image_only = field.image_only();
  evidence.nested = field.nested();
  evidence.seed = field.seed();
  evidence.asked_error_log2 = field.asked_error_log2();
  for (const proto::Verdict::NumericsCase& each : message.numerics()) {
    evidence.numerics.push_back({each.name(), each.candidate_error(), each.program_error(),
                                 each.accepted(), each.error_bound(), each.differing(),
                                 each.compared()});
  }
  evidence.ranges = message.ranges();
  evidence.proof = message.proof();
  evidence.kernel_check = message.kernel_check();
  evidence.full_size = message.full_size();
  evidence.numerics_sizes = message.numerics_sizes();
  if (message.has_witness()) evidence.witness = witness_of(message.witness());
  return evidence;
}

void to_message(const StoredCandidate& candidate, proto::SearchReport::Candidate* message) {
  sundog::to_message(candidate.graph, message->mutable_graph());
  message->set_predicted_us(candidate.predicted_us);
  message->set_measured_us(candidate.measured_us.value_or(0));
  message->set_structure(candidate.structure);
  message->set_kind(candidate.kind);
  to_message(candidate.evidence, message->mutable_verdict());
}

Result<StoredCandidate> from_message(const proto::SearchReport::Candidate& message,
                                     const Program& program) {
  StoredCandidate candidate;
  Result<MuGraph> graph = sundog::from_message(message.graph(), program);
  if (!graph.ok()) return graph.error();
  candidate.graph = std::move(*graph);
  candidate.predicted_us = message.predicted_us();
  if (message.measured_us() > 0) candidate.measured_us = message.measured_us();
  candidate.structure = message.structure();
  candidate.kind = message.kind();
  candidate.evidence = from_message(message.verdict());
  return candidate;
}

void to_message(const StoredReport& report, proto::SearchReport* message) {
  for (const StoredCandidate& candidate : report.candidates) {
    to_message(candidate, message->add_candidates());
  }
  if (report.unfused) to_message(*report.unfused, message->mutable_unfused());
  message->set_bound_us(report.bound_us);
  message->set_gap(report.gap);
  message->set_states(report.states);
  message->set_seconds(report.seconds);
  message->set_seconds_to_best(report.seconds_to_best);
  message->set_stop_reason(report.stop_reason);
  for (const auto& [rule, count] : report.pruned) {
    proto::SearchReport::PruneCount& entry = *message->add_pruned();
    entry.set_rule(rule);
    entry.set_count(count);
  }
  for (const auto& [what, count] : report.counts) {
    proto::SearchReport::Count& entry = *message->add_counts();
    entry.set_what(what);
    entry.set_count(count);
  }
  message->set_kept_undecided(report.kept_undecided);
  message->set_seed(report.seed);
}

Result<StoredReport> from_message(const proto::SearchReport& message, const Program& program) {
  StoredReport report;
  for (const proto::SearchReport::Candidate& entry : message.candidates()) {
    Result<StoredCandidate> candidate = from_message(entry, program);
    if (!candidate.ok()) return candidate.error();
    report.candidates.push_back(std::move(*candidate));
  }
  if (message.has_unfused()) {
    Result<StoredCandidate> unfused = from_message(message.unfused(), program);
    if (!unfused.ok()) return unfused.error();
    report.unfused = std::move(*unfused);
  }
  report.bound_us = message.bound_us();
  report.gap = message.gap();
  report.states = message.states();
  report.seconds = message.seconds();
  report.seconds_to_best = message.seconds_to_best();
  report.stop_reason = message.stop_reason();
  for (const proto::SearchReport::PruneCount& entry : message.pruned()) {
    report.pruned[entry.rule()] = entry.count();
  }
  for (const proto::SearchReport::Count& entry : message.counts()) {
    report.counts[entry.what()] = entry.count();
  }
  report.kept_undecided = message.kept_undecided();
  report.seed = message.seed();
  return report;
}

void to_message(const PlanTensor& tensor, proto::LaunchPlan::Tensor* message) {
  message->set_name(tensor.name);
  message->set_dtype(std::string(name(tensor.dtype)));
  message->set_elements(tensor.elements);
  message->set_bytes(tensor.bytes);
}

void to_message(const PlanTensorMap& map, proto::LaunchPlan::TensorMap* message) {
  message->set_type(map.type);
  message->set_dtype(std::string(name(map.dtype)));
  message->set_offset(map.offset);
  message->set_swizzle(map.swizzle);
  for (const int64_t extent : map.extents) message->add_extents(extent);
  for (const int64_t stride : map.strides) message->add_strides(stride);
  for (const int64_t box : map.boxes) message->add_boxes(box);
}

void to_message(const GemmMatrix& matrix, proto::LaunchPlan::Matrix* message) {
  message->set_argument(static_cast<int32_t>(matrix.tensor));
  message->set_offset(matrix.offset);
  message->set_leading(matrix.leading);
  message->set_batch_stride(matrix.batch_stride);
  message->set_transposed(matrix.transposed);
}

void to_message(const LibraryGemm& gemm, proto::LaunchPlan::Gemm* message) {
  message->set_batch(gemm.batch);
  message->set_m(gemm.m);
  message->set_n(gemm.n);
  message->set_k(gemm.k);
  to_message(gemm.a, message->mutable_a());
  to_message(gemm.b, message->mutable_b());
  to_message(gemm.c, message->mutable_c());
  message->set_operands(std::string(name(gemm.operands)));
  message->set_result(std::string(name(gemm.result)));
}

void to_message(const LaunchPlan& plan, proto::LaunchPlan* message) {
  message->set_name(plan.name);
  for (const PlanTensor& tensor : plan.inputs) to_message(tensor, message->add_inputs());
  for (const PlanTensor& tensor : plan.outputs) to_message(tensor, message->add_outputs());
  message->set_workspace_bytes(plan.workspace_bytes);
  message->set_zeroed_bytes(plan.zeroed_bytes);
  message->set_library_bytes(plan.library_bytes);
  for (const PlanKernel& kernel : plan.kernels) {
    proto::LaunchPlan::Kernel& entry = *message->add_kernels();
    entry.set_name(kernel.name);
    for (const int64_t blocks : kernel.grid) entry.add_grid(blocks);
    entry.set_block(kernel.block);
    entry.set_shared_bytes(kernel.shared_bytes);
    entry.set_dependent(kernel.dependent);
    entry.set_cluster(kernel.cluster);
    if (kernel.gemm) to_message(*kernel.gemm, entry.mutable_gemm());
    for (const PlanArgument& argument : kernel.arguments) {
      proto::LaunchPlan::KernelArgument& each = *entry.add_arguments();
      each.set_kind(static_cast<proto::LaunchPlan::Argument>(argument.kind));
      each.set_index(argument.index);
      each.set_offset(argument.offset);
      if (argument.map) to_message(*argument.map, each.mutable_map());
    }
  }
}

// The tensors of the plan must be the program's: their sizes decide how much memory is handed over.
bool matches(const std::vector<PlanTensor>& plan, size_t i, const TensorDecl& tensor) {
  return plan[i].dtype == tensor.dtype && plan[i].elements == span_elements(tensor) &&
         plan[i].bytes == span_elements(tensor) * bytes(tensor.dtype);
}

// Whether a call of the library stays inside of the tensors that are handed over.
bool fits_arguments(const LibraryGemm& gemm, const PlanKernel& kernel, const LaunchPlan& plan) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t extent : {gemm.batch, gemm.m, gemm.n, gemm.k}) {
    if (extent < 1 || extent > kMost) return false;
  }
  const auto inside = [&](const GemmMatrix& m, int64_t rows, int64_t columns, DType dtype) {
    if (m.tensor >= kernel.arguments.size() || m.offset < 0 || m.batch_stride < 0) return false;
    if (m.transposed) std::swap(rows, columns);
    if (m.leading < columns || m.leading > kMost) return false;
    const PlanArgument& a = kernel.arguments[m.tensor];
    const auto index = static_cast<size_t>(a.index);
    const auto elements = [&](const std::vector<PlanTensor>& tensors) {
      return index < tensors.size() && tensors[index].dtype == dtype ? tensors[index].elements : 0;
    };
    int64_t room = (plan.library_offset() - a.offset) / bytes(dtype);
    if (a.kind == PlanArgument::Kind::kInput) room = elements(plan.inputs);
    if (a.kind == PlanArgument::Kind::kOutput) room = elements(plan.outputs);
    const auto last = static_cast<double>(m.offset) +
                      static_cast<double>(rows - 1) * static_cast<double>(m.leading) +
                      static_cast<double>(columns - 1) +
                      static_cast<double>(gemm.batch - 1) * static_cast<double>(m.batch_stride);
    return last < static_cast<double>(room);
  };
  return inside(gemm.a, gemm.m, gemm.k, gemm.operands) &&
         inside(gemm.b, gemm.k, gemm.n, gemm.operands) &&
         inside(gemm.c, gemm.m, gemm.n, gemm.result) && plan.library_bytes > 0;
}

Status check_plan(const LaunchPlan& plan, const Program& program) {
  const Error wrong = bad_input("its launch plan does not fit its program");
  if (plan.inputs.size() != program.inputs.size()) return wrong;
  if (plan.outputs.size() != program.outputs.size()) return wrong;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (!matches(plan.inputs, i, program.inputs[i])) return wrong;
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    if (!matches(plan.outputs, i, program.outputs[i].tensor)) return wrong;
  }
  constexpr int64_t kMaxWorkspace = int64_t{1} << 40;
  if (plan.workspace_bytes < 0 || plan.workspace_bytes > kMaxWorkspace) return wrong;
  if (plan.zeroed_bytes < 0 || plan.zeroed_bytes > plan.workspace_bytes) return wrong;
  if (plan.library_bytes < 0 || plan.library_bytes > plan.workspace_bytes - plan.zeroed_bytes) {
    return wrong;
  }
  for (const PlanKernel& kernel : plan.kernels) {
    if (kernel.gemm && !fits_arguments(*kernel.gemm, kernel, plan)) return wrong;
    if (kernel.block < 1 || kernel.block > 1024 || kernel.shared_bytes < 0) return wrong;
    for (const int64_t blocks : kernel.grid) {
      if (blocks < 0 || blocks > (int64_t{1} << 31)) return wrong;
    }
    for (const PlanArgument& argument : kernel.arguments) {
      const bool workspace = argument.kind == PlanArgument::Kind::kWorkspace;
      const bool input = argument.kind == PlanArgument::Kind::kInput;
      const size_t count = workspace ? 1 : input ? plan.inputs.size() : plan.outputs.size();
      if (argument.index < 0 || static_cast<size_t>(argument.index) >= count) return wrong;
      if (argument.offset < 0 || argument.offset > plan.workspace_bytes) return wrong;
    }
  }
  return {};
}

Result<std::vector<PlanTensor>> from_message(
    const google::protobuf::RepeatedPtrField<proto::LaunchPlan::Tensor>& messages) {
  std::vector<PlanTensor> tensors;
  for (const proto::LaunchPlan::Tensor& entry : messages) {
    const std::optional<DType> dtype = parse_dtype(entry.dtype());
    if (!dtype) return bad_input("its launch plan names an unknown type");
    tensors.push_back({entry.name(), *dtype, entry.elements(), entry.bytes()});
  }
  return tensors;
}

Result<PlanTensorMap> from_message(const proto::LaunchPlan::TensorMap& message) {
  constexpr int kMostDims = 5;
  PlanTensorMap map;
  const std::optional<DType> dtype = parse_dtype(message.dtype());
  const int rank = message.extents_size();
  const bool even = message.strides_size() == rank && message.boxes_size() == rank;
  if (!dtype || rank < 1 || rank > kMostDims || !even) {
    return bad_input("its launch plan has a tensor map that is none");
  }
  map.type = message.type();
  map.dtype = *dtype;
  map.offset = message.offset();
  map.swizzle = message.swizzle();
  map.extents.assign(message.extents().begin(), message.extents().end());
  map.strides.assign(message.strides().begin(), message.strides().end());
  map.boxes.assign(message.boxes().begin(), message.boxes().end());
  return map;
}

GemmMatrix from_message(const proto::LaunchPlan::Matrix& message) {
  return {static_cast<uint32_t>(message.argument()), message.offset(), message.leading(),
          message.batch_stride(), message.transposed()};
}

Result<LibraryGemm> from_message(const proto::LaunchPlan::Gemm& message) {
  const std::optional<DType> operands = parse_dtype(message.operands());
  const std::optional<DType> result = parse_dtype(message.result());
  const auto known = [](const std::optional<DType>& dtype) {
    return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32;
  };
  if (!known(operands) || !known(result)) {
    return bad_input("its launch plan has a product that is none of a library's");
  }
  return LibraryGemm{message.batch(),
                     message.m(),
                     message.n(),
                     message.k(),
                     from_message(message.a()),
                     from_message(message.b()),
                     from_message(message.c()),
                     *operands,
                     *result};
}

Result<LaunchPlan> from_message(const proto::LaunchPlan& message, const Program& program) {
  LaunchPlan plan;
  plan.name = message.name();
  auto inputs = from_message(message.inputs()), outputs = from_message(message.outputs());
  if (!inputs.ok()) return inputs.error();
  if (!outputs.ok()) return outputs.error();
  plan.inputs = std::move(*inputs);
  plan.outputs = std::move(*outputs);
  plan.workspace_bytes = message.workspace_bytes();
  plan.zeroed_bytes = message.zeroed_bytes();
  plan.library_bytes = message.library_bytes();
  for (const proto::LaunchPlan::Kernel& entry : message.kernels()) {
    PlanKernel& kernel = plan.kernels.emplace_back();
    kernel.name = entry.name();
    if (entry.grid_size() != 3) return bad_input("its launch plan has a grid that is none");
    for (int i = 0; i < 3; ++i) kernel.grid[static_cast<size_t>(i)] = entry.grid(i);
    kernel.block = entry.block();
    kernel.shared_bytes = entry.shared_bytes();
    kernel.dependent = entry.dependent();
    kernel.cluster = std::max(entry.cluster(), 1);
    if (entry.has_gemm()) {
      Result<LibraryGemm> gemm = from_message(entry.gemm());
      if (!gemm.ok()) return gemm.error();
      kernel.gemm = *gemm;
    }
    for (const proto::LaunchPlan::KernelArgument& each : entry.arguments()) {
      if (!proto::LaunchPlan::Argument_IsValid(each.kind())) {
        return bad_input("its launch plan has an unknown argument");
      }
      kernel.arguments.push_back(
          {static_cast<PlanArgument::Kind>(each.kind()), each.index(), each.offset(), {}});
      if (!each.has_map()) continue;
      Result<PlanTensorMap> map = from_message(each.map());
      if (!map.ok()) return map.error();
      kernel.arguments.back().map = std::move(*map);
    }
  }
  SUNDOG_RETURN_IF_ERROR(check_plan(plan, program));
  return plan;
}

proto::Result message_of(const StoredResult& result) {
  proto::Result message;
  message.set_version(result.version);
  message.set_target(result.target);
  sundog::to_message(result.program, message.mutable_program());
  to_message(result.report, message.mutable_report());
  to_message(result.plan, message.mutable_plan());
  message.set_cuda(result.cuda);
  message.set_timing(result.timing);
  for (const std::string& note : result.notes) message.add_notes(note);
  message.set_eager_rounding(result.rounding == Rounding::kEager);
  return message;
}

std::string text_of(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

Error in_file(Error error, const std::string& file) {
  error.message = file + " cannot be used: " + error.message;
  return error;
}

}  // namespace

std::string serialize(const StoredResult& result) { return message_of(result).SerializeAsString(); }

Result<StoredResult> parse_result(std::string_view bytes, const std::string& file) {
  const google::protobuf::LogSilencer silence;  // the error below says all that a user can use
  proto::Result message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !message.has_program() || message.version().empty()) {
    return bad_input(file + " is no result of sundog, or is cut short",
                     "run sundog optimize again to make a new one");
  }
  StoredResult result;
  result.version = message.version();
  result.target = message.target();
  Result<Program> program = sundog::from_message(message.program());
  if (!program.ok()) return in_file(program.error(), file);
  result.program = std::move(*program);
  Result<StoredReport> report = from_message(message.report(), result.program);
  if (!report.ok()) return in_file(report.error(), file);
  result.report = std::move(*report);
  if (result.report.candidates.empty()) return bad_input(file + " holds no candidate");
  Result<LaunchPlan> plan = from_message(message.plan(), result.program);
  if (!plan.ok()) return in_file(plan.error(), file);
  result.plan = std::move(*plan);
  result.cuda = message.cuda();
  result.timing = message.timing();
  result.notes.assign(message.notes().begin(), message.notes().end());
  result.rounding = message.eager_rounding() ? Rounding::kEager : Rounding::kWide;
  return result;
}

std::string proto_text(const Program& program) {
  proto::Program message;
  sundog::to_message(program, &message);
  return text_of(message);
}

std::string proto_text(const MuGraph& graph) {
  proto::MuGraph message;
  sundog::to_message(graph, &message);
  return text_of(message);
}

std::string proto_text(const StoredResult& result) { return text_of(message_of(result)); }

}  // namespace sundog::cli
