#include <algorithm>

#include "cli/evidence.h"
#include "cli/fit_start.h"
#include "cli/graph_view.h"
#include "cli/pipeline.h"
#include "core/options.pb.h"
#include "core/proto.h"
#include "core/sundog.pb.h"
#include "core/text.h"
#include "python/abi/handles.h"
#include "verify/verdict.h"

namespace sundog::abi {
namespace {

Result<proto::OptimizeOptions> read_options(const void* data, size_t size) {
  proto::OptimizeOptions options;
  if (data == nullptr) return options;
  if (!parse_message({static_cast<const char*>(data), size}, &options)) {
    return bad_input("the options are no message OptimizeOptions");
  }
  const double times[] = {options.budget_s(), options.verify_s(), options.check_s(),
                          options.compile_s(), options.gpu_s()};
  for (const double time : times) {
    if (!(time >= 0 && time <= 30.0 * 86400)) return bad_input("a time is below 0 or too long");
  }
  if (!(options.error_log2() <= 0 && options.error_log2() >= -4096)) {
    return bad_input("error_log2 must be from -4096 to -1");
  }
  if (options.top() < 0 || options.top() > 256) return bad_input("top must be from 1 to 256");
  return options;
}

double or_default(double value, double otherwise) { return value > 0 ? value : otherwise; }

cli::PipelineOptions pipeline_options(const proto::OptimizeOptions& options) {
  cli::PipelineOptions result;
  result.states = options.states();
  result.clocked = options.states() == 0 || options.budget_s() > 0;
  result.budget_s = or_default(options.budget_s(), 60);
  result.top = options.top() > 0 ? options.top() : 8;
  result.threads = std::max(0, options.threads());
  result.seed = options.seed() > 0 ? options.seed() : 1;
  result.rounding = options.eager_rounding() ? Rounding::kEager : Rounding::kWide;
  result.error_log2 = options.error_log2() < 0 ? options.error_log2() : -60;
  result.check = !options.no_check();
  result.verify_s = or_default(options.verify_s(), 60);
  result.check_s = or_default(options.check_s(), 120);
  result.compile_s = or_default(options.compile_s(), 120);
  result.gpu_s = or_default(options.gpu_s(), 60);
  result.gpu_ordinal = options.gpu();
  result.skip_search = options.no_search();
  return result;
}

// The µGraphs to start from, if any.
Status add_start(const proto::OptimizeOptions& options, const Program& program,
                 const Device& device, cli::PipelineOptions& result) {
  if (!options.start().empty()) {
    Result<cli::StoredResult> start = cli::parse_result(options.start(), "the start");
    if (!start.ok()) return start.error();
    if (start->rounding == Rounding::kEager) result.rounding = Rounding::kEager;
    if (print(start->program) == print(program) && start->target == device.name) {
      result.start = std::move(start->report);
    } else {
      Result<cli::StoredReport> fitted = cli::fit_start(*start, program, device, result.space);
      if (!fitted.ok()) return fitted.error();
      result.start = std::move(*fitted);
    }
  }
  if (!options.mugraph().empty()) {
    Result<MuGraph> graph = parse_mugraph(options.mugraph(), "start.mu", program);
    if (!graph.ok()) return graph.error();
    result.start.candidates.emplace_back().graph = std::move(*graph);
    if (const auto named = rounding_reference(options.mugraph())) {
      if (*named == Rounding::kEager) result.rounding = Rounding::kEager;
    }
  }
  if (result.skip_search && result.start.candidates.empty()) {
    return bad_input("without a search there must be a start: a µGraph or a result");
  }
  return {};
}

Result<cli::StoredResult> optimize(const Program& program, const proto::OptimizeOptions& options,
                                   sundog_progress progress, void* user, const sundog_stop* stop) {
  cli::PipelineOptions pipeline = pipeline_options(options);
  if (stop != nullptr) pipeline.stop = &stop->set;
  if (progress != nullptr) {
    pipeline.progress = [&](const std::string& line) { progress(line.c_str(), user); };
  }
  if (!options.no_gpu()) {
    Result<codegen::GpuInfo> gpu = codegen::probe_gpu(pipeline.gpu_ordinal);
    if (gpu.ok()) pipeline.gpu = std::move(*gpu);
  }
  const Result<Device> device = cli::choose_device(options.target(), pipeline.gpu);
  if (!device.ok()) return device.error();
  SUNDOG_RETURN_IF_ERROR(add_start(options, program, *device, pipeline));
  const Result<cli::PipelineResult> found = cli::run_pipeline(program, *device, pipeline);
  if (!found.ok()) return found.error();
  return cli::stored_result(program, *device, *found);
}

proto::Verdict message_of(const verify::Verdict& verdict) {
  const cli::Evidence evidence = cli::evidence_of(verdict);
  proto::Verdict message;
  cli::to_message(evidence, &message);
  if (verdict.witness) {
    proto::Verdict::Witness& witness = *message.mutable_witness();
    witness.set_output(verdict.witness->output);
    for (const int64_t index : verdict.witness->element) witness.add_index(index);
    witness.set_expected(verdict.witness->expected);
    witness.set_got(verdict.witness->actual);
    witness.set_seed(verdict.witness->seed);
  }
  return message;
}

}  // namespace
}  // namespace sundog::abi

using namespace sundog;

extern "C" {

sundog_code sundog_optimize(const sundog_program* program, const void* options, size_t size,
                            sundog_progress progress, void* user, const sundog_stop* stop,
                            sundog_result** result, sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (program == nullptr || result == nullptr) return abi::null_argument("program or result");
    const Result<proto::OptimizeOptions> read = abi::read_options(options, size);
    if (!read.ok()) return read.error();
    return abi::give(abi::optimize(program->program, *read, progress, user, stop), result);
  });
}

sundog_code sundog_verify(const sundog_program* program, const char* mugraph, size_t size,
                          const void* options, size_t options_size, sundog_bytes** verdict,
                          sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (program == nullptr || mugraph == nullptr || verdict == nullptr) {
      return abi::null_argument("program, mugraph or verdict");
    }
    const Result<proto::OptimizeOptions> read = abi::read_options(options, options_size);
    if (!read.ok()) return read.error();
    const Result<MuGraph> graph = parse_mugraph({mugraph, size}, "candidate.mu", program->program);
    if (!graph.ok()) return graph.error();
    const cli::PipelineOptions pipeline = abi::pipeline_options(*read);
    verify::VerifyOptions verifying;
    verifying.error_log2 = pipeline.error_log2;
    verifying.seed = pipeline.seed;
    verifying.time_limit_s = pipeline.verify_s;
    verifying.rounding = rounding_reference({mugraph, size}) == Rounding::kEager
                             ? Rounding::kEager
                             : pipeline.rounding;
    const proto::Verdict message =
        abi::message_of(verify::verify(program->program, *graph, verifying));
    *verdict = new sundog_bytes{message.SerializeAsString()};
    return {};
  });
}

sundog_code sundog_result_from_message(const void* data, size_t size, sundog_result** result,
                                       sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (data == nullptr || result == nullptr) return abi::null_argument("data or result");
    return abi::give(cli::parse_result({static_cast<const char*>(data), size}, "the message"),
                     result);
  });
}

sundog_code sundog_result_message(const sundog_result* result, sundog_bytes** message,
                                  sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (result == nullptr || message == nullptr) return abi::null_argument("result or message");
    *message = new sundog_bytes{cli::serialize(result->stored)};
    return {};
  });
}

sundog_code sundog_result_text(const sundog_result* result, sundog_view view, sundog_bytes** text,
                               sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (result == nullptr || text == nullptr) return abi::null_argument("result or text");
    const cli::StoredResult& stored = result->stored;
    const MuGraph& best = stored.report.candidates.front().graph;
    std::string shown;
    switch (view) {
      case SUNDOG_CUDA:
        shown = stored.cuda;
        break;
      case SUNDOG_MUGRAPH:
        shown = print(best, stored.program);
        break;
      case SUNDOG_PROGRAM:
        shown = print(stored.program);
        break;
      case SUNDOG_SVG:
        shown = cli::svg(best, stored.program);
        break;
      case SUNDOG_DOT:
        shown = cli::dot(best, stored.program);
        break;
      case SUNDOG_EXPLAIN:
        shown = abi::explanation(stored);
        break;
      default:  // NOLINT(sundog-default): a number from a C caller
        return bad_input("there is no view " + std::to_string(static_cast<int>(view)));
    }
    *text = new sundog_bytes{std::move(shown)};
    return {};
  });
}

void sundog_result_free(sundog_result* result) { delete result; }

}  // extern "C"
