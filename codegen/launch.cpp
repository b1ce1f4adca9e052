#include "codegen/launch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "core/process_wire.h"

namespace sundog::codegen {
namespace {

constexpr int64_t kFence = 1024;  // poisoned bytes behind each buffer that a kernel may write
constexpr int kMaxCopies = 64;
constexpr int kMinCalls = 16;
constexpr double kMaxReplayUs = 20000;
constexpr int64_t kFlushBlock = 256;

// A buffer with a fence behind it.
struct Fenced {
  DeviceBuffer buffer;
  int64_t bytes = 0;
  DevicePointer pointer() const { return buffer.pointer(); }
};

Result<Fenced> allocate_fenced(Gpu& gpu, int64_t bytes) {
  Result<DeviceBuffer> buffer = gpu.allocate(bytes + kFence);
  if (!buffer.ok()) return buffer.error();
  Fenced fenced;
  fenced.buffer = std::move(*buffer);
  fenced.bytes = bytes;
  return fenced;
}

Status poison(Gpu& gpu, const Fenced& fenced) {
  return gpu.fill(fenced.pointer(), std::to_integer<uint8_t>(kPoison), fenced.bytes + kFence);
}

Error failed(std::string message) { return {ErrorCode::kFailed, std::move(message), {}, {}}; }

// Whether the fence behind a buffer still stands.
Status check_fence(Gpu& gpu, const Fenced& fenced, const std::string& what) {
  std::vector<std::byte> fence(kFence);
  SUNDOG_RETURN_IF_ERROR(
      gpu.download(fence, fenced.pointer() + static_cast<DevicePointer>(fenced.bytes)));
  const auto broken =
      std::find_if(fence.begin(), fence.end(), [](std::byte b) { return b != kPoison; });
  if (broken == fence.end()) return {};
  return failed("the kernel wrote " + std::to_string(broken - fence.begin()) +
                " bytes behind the end of " + what);
}

// What all jobs read.
struct Inputs {
  std::vector<std::vector<DeviceBuffer>> copies;
  bool exceed_cache = false;  // all copies together, by far
};

// One job on the device: module, kernels and buffers.
struct Loaded {
  GpuModule module;
  std::vector<GpuKernel> kernels;  // nothing in place of a library's
  std::optional<LibraryHandle> library;
  const Inputs* inputs = nullptr;
  std::vector<Fenced> outputs;
  Fenced workspace;
  GpuGraph cold, warm;
  Timing timing;
  std::vector<double> cold_us[2], warm_us[2];  // a round
};

Result<Inputs> upload_inputs(Gpu& gpu, const CheckData& data) {
  Inputs inputs;
  std::vector<DeviceBuffer>& buffers = inputs.copies.emplace_back();
  for (const TensorMemory& memory : data.inputs) {
    Result<DeviceBuffer> buffer = gpu.allocate(static_cast<int64_t>(memory.size()));
    if (!buffer.ok()) return buffer.error();
    SUNDOG_RETURN_IF_ERROR(gpu.upload(buffer->pointer(), memory));
    buffers.push_back(std::move(*buffer));
  }
  return inputs;
}

Result<Loaded> load(Gpu& gpu, const GpuJob& job, const Inputs& inputs,
                    const MeasureOptions& options) {
  Loaded loaded;
  loaded.inputs = &inputs;
  if (job.plan.library_bytes > 0) {
    Result<LibraryHandle> library = LibraryHandle::open(options.library);
    if (!library.ok()) return library.error();
    loaded.library = std::move(*library);
  }
  Result<GpuModule> module = gpu.load(job.cubin);
  if (!module.ok()) return module.error();
  loaded.module = std::move(*module);
  for (const PlanKernel& kernel : job.plan.kernels) {
    if (kernel.gemm) {
      loaded.kernels.emplace_back();
      continue;
    }
    Result<GpuKernel> found = gpu.kernel(loaded.module, kernel.name, kernel.shared_bytes);
    if (!found.ok()) return found.error();
    loaded.kernels.push_back(*found);
  }
  for (const PlanTensor& output : job.plan.outputs) {
    Result<Fenced> buffer = allocate_fenced(gpu, output.bytes);
    if (!buffer.ok()) return buffer.error();
    loaded.outputs.push_back(std::move(*buffer));
  }
  Result<Fenced> workspace = allocate_fenced(gpu, job.plan.workspace_bytes);
  if (!workspace.ok()) return workspace.error();
  loaded.workspace = std::move(*workspace);
  return loaded;
}

DevicePointer pointer_of(const PlanArgument& argument, const Loaded& loaded, size_t copy) {
  const auto index = static_cast<size_t>(argument.index);
  switch (argument.kind) {
    case PlanArgument::Kind::kInput:
      return loaded.inputs->copies[copy][index].pointer();
    case PlanArgument::Kind::kOutput:
      return loaded.outputs[index].pointer();
    case PlanArgument::Kind::kWorkspace:
      return loaded.workspace.pointer() + static_cast<DevicePointer>(argument.offset);
  }
  return 0;
}

Status call_library(Gpu& gpu, const LaunchPlan& plan, const LibraryGemm& gemm, const Loaded& loaded,
                    std::span<const DevicePointer> pointers) {
  const auto at = [&](const GemmMatrix& matrix) {
    return reinterpret_cast<void*>(pointers[matrix.tensor]);
  };
  const DevicePointer workspace =
      loaded.workspace.pointer() + static_cast<DevicePointer>(plan.library_offset());
  return loaded.library->gemm(gemm, at(gemm.a), at(gemm.b), at(gemm.c),
                              reinterpret_cast<void*>(workspace),
                              static_cast<size_t>(plan.library_bytes), gpu.stream());
}

// Enqueues all kernels of the plan once, reading the inputs' copy number `copy`.
Status enqueue(Gpu& gpu, const LaunchPlan& plan, const Loaded& loaded, size_t copy) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const PlanKernel& kernel = plan.kernels[k];
    std::vector<DevicePointer> pointers;
    std::vector<TensorMapBits> maps;
    for (const PlanArgument& argument : kernel.arguments) {
      const DevicePointer pointer = pointer_of(argument, loaded, copy);
      if (!argument.map) {
        pointers.push_back(pointer);
        continue;
      }
      const Result<TensorMapBits> map = gpu.encode(*argument.map, pointer);
      if (!map.ok()) return map.error();
      maps.push_back(*map);
    }
    const Status status =
        kernel.gemm ? call_library(gpu, plan, *kernel.gemm, loaded, pointers)
                    : gpu.launch(loaded.kernels[k], {kernel.grid, kernel.block, kernel.dependent},
                                 pointers, maps);
    if (!status.ok()) return failed("kernel " + kernel.name + ": " + status.error().message);
  }
  return {};
}

// Whether the counters are ready for the next launch.
Status check_counters(Gpu& gpu, const LaunchPlan& plan, const Loaded& loaded) {
  TensorMemory counters(static_cast<size_t>(plan.zeroed_bytes));
  if (counters.empty()) return {};
  SUNDOG_RETURN_IF_ERROR(gpu.download(counters, loaded.workspace.pointer()));
  const bool reset =
      std::all_of(counters.begin(), counters.end(), [](std::byte b) { return b == std::byte{0}; });
  return reset ? Status() : failed("the kernel leaves a counter of the workspace that is not 0");
}

// Runs the plan once on `data` with everything poisoned, and compares.
Result<OutputCheck> check_once(Gpu& gpu, const Program& program, const GpuJob& job, Loaded& loaded,
                               const CheckData& data) {
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    SUNDOG_RETURN_IF_ERROR(gpu.upload(loaded.inputs->copies[0][i].pointer(), data.inputs[i]));
  }
  for (const Fenced& output : loaded.outputs) SUNDOG_RETURN_IF_ERROR(poison(gpu, output));
  SUNDOG_RETURN_IF_ERROR(poison(gpu, loaded.workspace));
  SUNDOG_RETURN_IF_ERROR(gpu.fill(loaded.workspace.pointer(), 0, job.plan.zeroed_bytes));
  SUNDOG_RETURN_IF_ERROR(enqueue(gpu, job.plan, loaded, 0));
  SUNDOG_RETURN_IF_ERROR(gpu.synchronize());
  std::vector<TensorMemory> outputs;
  for (size_t i = 0; i < loaded.outputs.size(); ++i) {
    TensorMemory& memory = outputs.emplace_back(static_cast<size_t>(loaded.outputs[i].bytes));
    SUNDOG_RETURN_IF_ERROR(gpu.download(memory, loaded.outputs[i].pointer()));
    SUNDOG_RETURN_IF_ERROR(
        check_fence(gpu, loaded.outputs[i], "output " + job.plan.outputs[i].name));
  }
  SUNDOG_RETURN_IF_ERROR(check_fence(gpu, loaded.workspace, "the workspace"));
  SUNDOG_RETURN_IF_ERROR(check_counters(gpu, job.plan, loaded));
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    TensorMemory memory(data.inputs[i].size());
    SUNDOG_RETURN_IF_ERROR(gpu.download(memory, loaded.inputs->copies[0][i].pointer()));
    if (memory != data.inputs[i]) {
      return failed("the kernel changed its input " + program.inputs[i].name);
    }
  }
  return check_outputs(program, outputs, data.expected, job.tolerance);
}

// Reads (or, lacking the kernel, writes) a large buffer, so that nothing useful is left in the L2.
class Flush {
 public:
  static Result<Flush> make(Gpu& gpu, const MeasureOptions& options) {
    Flush flush;
    Result<DeviceBuffer> buffer = gpu.allocate(options.flush_bytes);
    if (!buffer.ok()) return buffer.error();
    flush.buffer_ = std::move(*buffer);
    SUNDOG_RETURN_IF_ERROR(gpu.fill(flush.buffer_.pointer(), 1, options.flush_bytes));
    if (options.flush_cubin.empty()) return flush;
    Result<GpuModule> module = gpu.load(options.flush_cubin);
    if (!module.ok()) return module.error();
    flush.module_ = std::move(*module);
    Result<GpuKernel> kernel = gpu.kernel(flush.module_, "sundog_flush", 0);
    if (!kernel.ok()) return kernel.error();
    flush.kernel_ = *kernel;
    Result<DeviceBuffer> sink = gpu.allocate(16);
    if (!sink.ok()) return sink.error();
    flush.sink_ = std::move(*sink);
    return flush;
  }

  Status run(Gpu& gpu) const {
    if (!kernel_) return gpu.fill(buffer_.pointer(), 1, buffer_.bytes);
    const DevicePointer end =
        buffer_.pointer() + static_cast<DevicePointer>(buffer_.bytes / 16 * 16);
    const DevicePointer parameters[] = {buffer_.pointer(), end, sink_.pointer()};
    const LaunchShape shape{{std::max<int64_t>(gpu.info().sms, 1) * 8, 1, 1}, kFlushBlock};
    return gpu.launch(*kernel_, shape, parameters);
  }

 private:
  DeviceBuffer buffer_, sink_;
  GpuModule module_;
  std::optional<GpuKernel> kernel_;
};

int64_t input_bytes(const CheckData& data) {
  int64_t bytes = 0;
  for (const TensorMemory& memory : data.inputs) bytes += static_cast<int64_t>(memory.size());
  return bytes;
}

Result<GpuGraph> capture_calls(Gpu& gpu, const GpuJob& job, const Loaded& loaded, int calls,
                               size_t copies) {
  return gpu.capture([&]() -> Status {
    for (int call = 0; call < calls; ++call) {
      SUNDOG_RETURN_IF_ERROR(enqueue(gpu, job.plan, loaded, static_cast<size_t>(call) % copies));
    }
    return {};
  });
}

// As many copies of the inputs as exceed the cache, or as there is memory for.
Status copy_inputs(Gpu& gpu, Inputs& inputs, const CheckData& data) {
  const int64_t bytes = std::max<int64_t>(input_bytes(data), 1);
  const int64_t target = std::max(4 * gpu.info().l2_bytes, int64_t{256} << 20);
  const int64_t memory = std::min(int64_t{8} << 30, gpu.info().free_bytes / 4);
  const int64_t wanted = std::min((target + bytes - 1) / bytes, memory / bytes);
  const auto copies = static_cast<size_t>(std::clamp<int64_t>(wanted, 1, kMaxCopies));
  while (inputs.copies.size() < copies) {
    std::vector<DeviceBuffer> copy;
    for (const DeviceBuffer& original : inputs.copies[0]) {
      Result<DeviceBuffer> buffer = gpu.allocate(original.bytes);
      if (!buffer.ok()) return buffer.error();
      SUNDOG_RETURN_IF_ERROR(gpu.copy(buffer->pointer(), original.pointer(), original.bytes));
      copy.push_back(std::move(*buffer));
    }
    inputs.copies.push_back(std::move(copy));
  }
  inputs.exceed_cache = static_cast<int64_t>(copies) * bytes >= target;
  return {};
}

// The two graphs of a job.
Status prepare_timing(Gpu& gpu, const GpuJob& job, Loaded& loaded, const GpuEvent& from,
                      const GpuEvent& to) {
  Result<GpuGraph> single = capture_calls(gpu, job, loaded, 1, 1);
  if (!single.ok()) return single.error();
  Result<double> once = timed_replay(gpu, *single, from, to);
  if (once.ok()) once = timed_replay(gpu, *single, from, to);
  if (!once.ok()) return once.error();
  // Where the copies do not exceed the cache, none may be used twice in a replay.
  const size_t copies = loaded.inputs->copies.size();
  const auto n = static_cast<int>(copies);
  int calls = loaded.inputs->exceed_cache ? (std::max(kMinCalls, n) + n - 1) / n * n : n;
  calls = std::clamp(static_cast<int>(kMaxReplayUs / std::max(*once, 0.01)), 1, calls);
  loaded.timing.calls = calls;
  loaded.timing.copies = n;
  Result<GpuGraph> cold = capture_calls(gpu, job, loaded, calls, copies);
  if (!cold.ok()) return cold.error();
  loaded.cold = std::move(*cold);
  Result<GpuGraph> warm = capture_calls(gpu, job, loaded, calls, 1);
  if (!warm.ok()) return warm.error();
  loaded.warm = std::move(*warm);
  return {};
}

// Empties the cache, and keeps the GPU busy for so long that the replay behind it is enqueued
// before it is due: the time of the host to launch a graph must not count.
Status occupy(Gpu& gpu, const Flush& flush) {
  for (int i = 0; i < 3; ++i) SUNDOG_RETURN_IF_ERROR(flush.run(gpu));
  return {};
}

Status time_round(Gpu& gpu, Loaded& loaded, const Flush& flush, int round, int replays,
                  const GpuEvent& from, const GpuEvent& to) {
  const double calls = loaded.timing.calls;
  SUNDOG_RETURN_IF_ERROR(gpu.replay(loaded.cold));  // uploads the graph
  for (int i = 0; i < replays; ++i) {
    SUNDOG_RETURN_IF_ERROR(occupy(gpu, flush));
    const Result<double> us = timed_replay(gpu, loaded.cold, from, to);
    if (!us.ok()) return us.error();
    loaded.cold_us[round].push_back(*us / calls);
  }
  for (int i = 0; i < replays; ++i) {
    SUNDOG_RETURN_IF_ERROR(occupy(gpu, flush));
    SUNDOG_RETURN_IF_ERROR(gpu.replay(loaded.warm));
    const Result<double> us = timed_replay(gpu, loaded.warm, from, to);
    if (!us.ok()) return us.error();
    loaded.warm_us[round].push_back(*us / calls);
  }
  return {};
}

void summarise(const std::vector<double> (&rounds)[2], double& middle, double& spread) {
  std::vector<double> all = rounds[0];
  all.insert(all.end(), rounds[1].begin(), rounds[1].end());
  middle = median(all);
  spread = middle > 0 ? std::abs(median(rounds[0]) - median(rounds[1])) / middle : 0;
}

// Times all jobs that are still right; what goes wrong is noted in their reports.
Status time_all(Gpu& gpu, std::span<const GpuJob> jobs, std::span<std::optional<Loaded>> loaded,
                std::span<GpuReport> reports, const MeasureOptions& options) {
  Result<Flush> flush = Flush::make(gpu, options);
  if (!flush.ok()) return flush.error();
  Result<GpuEvent> from = gpu.event(), to = gpu.event();
  if (!from.ok()) return from.error();
  if (!to.ok()) return to.error();
  const auto runnable = [&](size_t i) {
    return loaded[i].has_value() && reports[i].failure.empty();
  };
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!runnable(i)) continue;
    const Status status = prepare_timing(gpu, jobs[i], *loaded[i], *from, *to);
    if (!status.ok()) reports[i].failure = status.error().message;
  }
  const int replays = std::max(1, options.replays / 2);
  for (int round = 0; round < 2; ++round) {
    for (size_t n = 0; n < jobs.size(); ++n) {
      const size_t i = round == 0 ? n : jobs.size() - 1 - n;
      if (!runnable(i)) continue;
      const Status status = time_round(gpu, *loaded[i], *flush, round, replays, *from, *to);
      if (!status.ok()) reports[i].failure = status.error().message;
    }
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!runnable(i)) continue;
    Timing& timing = loaded[i]->timing;
    summarise(loaded[i]->cold_us, timing.cold_us, timing.cold_spread);
    summarise(loaded[i]->warm_us, timing.warm_us, timing.warm_spread);
    reports[i].timing = timing;
    reports[i].timed = true;
  }
  return {};
}

void put(Packer& packer, const OutputCheck& check) {
  packer.put(check.passed);
  packer.put(check.max_rel_error);
  packer.put(check.compared);
  packer.put(check.failure);
}

OutputCheck take_check(Unpacker& reader) {
  OutputCheck check;
  check.passed = reader.number<bool>();
  check.max_rel_error = reader.number<double>();
  check.compared = reader.number<int64_t>();
  check.failure = reader.text();
  return check;
}

void put(Packer& packer, const GpuReport& report) {
  packer.put(report.failure);
  put(packer, report.before);
  put(packer, report.after);
  packer.put(report.timed);
  const Timing& t = report.timing;
  for (const double value : {t.cold_us, t.warm_us, t.cold_spread, t.warm_spread}) packer.put(value);
  packer.put(t.calls);
  packer.put(t.copies);
  packer.put(static_cast<uint64_t>(report.registers.size()));
  for (const int count : report.registers) packer.put(count);
}

GpuReport take_report(Unpacker& reader) {
  GpuReport report;
  report.failure = reader.text();
  report.before = take_check(reader);
  report.after = take_check(reader);
  report.timed = reader.number<bool>();
  Timing& t = report.timing;
  for (double* value : {&t.cold_us, &t.warm_us, &t.cold_spread, &t.warm_spread}) {
    *value = reader.number<double>();
  }
  t.calls = reader.number<int>();
  t.copies = reader.number<int>();
  for (auto n = reader.number<uint64_t>(); n > 0 && !reader.failed(); --n) {
    report.registers.push_back(reader.number<int>());
  }
  return report;
}

}  // namespace

Result<double> timed_replay(Gpu& gpu, const GpuGraph& graph, const GpuEvent& from,
                            const GpuEvent& to) {
  SUNDOG_RETURN_IF_ERROR(gpu.record(from));
  SUNDOG_RETURN_IF_ERROR(gpu.replay(graph));
  SUNDOG_RETURN_IF_ERROR(gpu.record(to));
  SUNDOG_RETURN_IF_ERROR(gpu.synchronize());
  return gpu.microseconds(from, to);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::string flush_source() {
  return R"(// Reads [begin, end) so that nothing else is left in the L2 cache.
extern "C" __global__ void sundog_flush(const uint4* begin, const uint4* end, unsigned* sink) {
  unsigned mixed = 0;
  for (const uint4* p = begin + blockIdx.x * blockDim.x + threadIdx.x; p < end;
       p += gridDim.x * blockDim.x) {
    const uint4 word = *p;
    mixed ^= word.x ^ word.y ^ word.z ^ word.w;
  }
  if (mixed == 0x13572468u) *sink = mixed;  // keeps the loads
}
)";
}

Result<CheckData> make_check_data(const Program& program, Rounding rounding, double max_work,
                                  uint64_t seed) {
  const std::vector<FloatTensor> inputs = draw_inputs(program, seed);
  auto expected = expected_outputs(program, inputs, rounding, max_work, seed);
  if (!expected.ok()) return expected.error();
  CheckData data;
  data.expected = std::move(*expected);
  for (size_t i = 0; i < inputs.size(); ++i) {
    data.inputs.push_back(to_memory(program.inputs[i], inputs[i]));
  }
  return data;
}

std::vector<GpuReport> measure(Gpu& gpu, const Program& program, std::span<const GpuJob> jobs,
                               const CheckData& first, const CheckData& fresh,
                               const MeasureOptions& options) {
  std::vector<GpuReport> reports(jobs.size());
  std::vector<std::optional<Loaded>> loaded(jobs.size());
  Result<Inputs> inputs = upload_inputs(gpu, first);
  if (!inputs.ok()) {
    for (GpuReport& report : reports) report.failure = inputs.error().message;
    return reports;
  }
  const auto check = [&](size_t i, const CheckData& data, OutputCheck& result) {
    Result<OutputCheck> outcome = check_once(gpu, program, jobs[i], *loaded[i], data);
    if (outcome.ok()) result = std::move(*outcome);
    std::string& failure = reports[i].failure;
    failure = outcome.ok() ? result.failure : outcome.error().message;
  };
  for (size_t i = 0; i < jobs.size(); ++i) {
    Result<Loaded> job = load(gpu, jobs[i], *inputs, options);
    if (!job.ok()) {
      reports[i].failure = job.error().message;
      continue;
    }
    loaded[i].emplace(std::move(*job));
    for (const GpuKernel& kernel : loaded[i]->kernels) {
      reports[i].registers.push_back(kernel.registers);
    }
    check(i, first, reports[i].before);
  }
  if (!options.time) return reports;
  Status status = copy_inputs(gpu, *inputs, first);
  if (status.ok()) status = time_all(gpu, jobs, loaded, reports, options);
  for (size_t i = 0; i < jobs.size(); ++i) {
    GpuReport& report = reports[i];
    if (!report.failure.empty()) continue;
    if (!status.ok()) {
      report.failure = status.error().message;
      continue;
    }
    check(i, fresh, report.after);
    if (!report.failure.empty()) report.failure = "after timing: " + report.failure;
  }
  return reports;
}

namespace {

Result<Gpu> open(const MeasureOptions& options) {
  return options.driver == nullptr ? Gpu::open(options.ordinal)
                                   : Gpu::open(*options.driver, options.ordinal);
}

using SendReport = std::function<void(const GpuReport&)>;

// Opens the GPU in a child, runs `body` there, and takes the reports that it sends.
Status reports_of_child(const std::function<void(Gpu&, const SendReport&)>& body,
                        const std::function<void(GpuReport)>& take, const MeasureOptions& options,
                        const ProcessLimits& limits) {
  Status refused;
  const auto in_child = [&](const SendAnswer& send) {
    Packer opened;
    Result<Gpu> gpu = open(options);
    opened.put(gpu.ok());
    if (!gpu.ok()) opened.put(gpu.error());
    send(opened.bytes());
    if (!gpu.ok()) return;
    body(*gpu, [&](const GpuReport& report) {
      Packer answer;
      put(answer, report);
      send(answer.bytes());
    });
  };
  bool is_first = true;
  const auto take_answer = [&](const std::string& bytes) {
    Unpacker answer(bytes);
    if (!std::exchange(is_first, false)) return take(take_report(answer));
    if (!answer.number<bool>()) refused = answer.error();
  };
  const Status status = answers_of_child("the run on the GPU", in_child, take_answer, limits);
  return status.ok() ? refused : status;
}

}  // namespace

Result<std::vector<GpuReport>> measure_here(const Program& program, std::span<const GpuJob> jobs,
                                            const CheckData& first, const CheckData& fresh,
                                            const MeasureOptions& options) {
  Result<Gpu> gpu = open(options);
  if (!gpu.ok()) return gpu.error();
  return measure(*gpu, program, jobs, first, fresh, options);
}

Result<std::vector<GpuReport>> measure_in_child(const Program& program,
                                                std::span<const GpuJob> jobs,
                                                const CheckData& first, const CheckData& fresh,
                                                const MeasureOptions& options,
                                                const ProcessLimits& limits) {
  std::vector<GpuReport> reports;
  const auto body = [&](Gpu& gpu, const SendReport& send) {
    for (const GpuReport& report : measure(gpu, program, jobs, first, fresh, options)) send(report);
  };
  const auto take = [&](GpuReport report) { reports.push_back(std::move(report)); };
  const Status status = reports_of_child(body, take, options, limits);
  if (!status.ok()) return status.error();
  return reports;
}

Status measure_each_in_child(const Program& program, std::span<const GpuJob> jobs,
                             const CheckData& first, const CheckData& fresh,
                             const MeasureOptions& options, const ProcessLimits& limits,
                             const std::function<void(GpuReport)>& take) {
  const auto body = [&](Gpu& gpu, const SendReport& send) {
    for (const GpuJob& job : jobs) {
      const GpuReport report = measure(gpu, program, {&job, 1}, first, fresh, options).front();
      send(report);
      if (!report.failure.empty()) return;  // it may have left the device in any state
    }
  };
  return reports_of_child(body, take, options, limits);
}

}  // namespace sundog::codegen
