// What each figure means, and why it is measured so:
//
//   hbm          one block an SM keeps so many bytes of asynchronous copies under way while the
//   device reads
//                a gigabyte: what a pipeline of that depth gets, in a steady state
//   fill         a thread follows a chain of words that lie far apart: the latency of cold memory
//   graph node   the slope of chains of empty kernels in a graph, so that what a replay costs drops
//   out;
//                the same with leave to start early; and what is left for one kernel by itself
//   grid sync    the slope of a kernel that does nothing but wait for all blocks
//   tensor       all SMs at once for a millisecond, so that the power limit shows as it does in
//   products
//
// Tried and dropped: bandwidth by plain loads to registers, whose bytes in flight the compiler
// decides.
#include "codegen/calibrate.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <functional>

#include "codegen/embedded.h"
#include "codegen/launch.h"
#include "core/process_wire.h"

namespace sundog::codegen {
namespace {

constexpr int64_t kBlock = 1024;
constexpr int64_t kReadBytes = int64_t{1} << 30;
constexpr uint64_t kUnroll = 16;  // as the kernels have it
constexpr uint64_t kRounds = 512;

struct Flight {
  int block, depth;
  int64_t bytes() const { return int64_t{block} * depth * 16; }
};
constexpr Flight kFlights[] = {{256, 1}, {256, 2}, {512, 2}, {512, 4},
                               {512, 6}, {512, 8}, {1024, 6}};

// Three digits that mean something are more than a device repeats.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

class Bench {
 public:
  static Result<Bench> make(Gpu& gpu, const std::string& cubin) {
    Bench bench(gpu);
    Result<GpuModule> module = gpu.load(cubin);
    if (!module.ok()) return module.error();
    bench.module_ = std::move(*module);
    for (GpuEvent* event : {&bench.from_, &bench.to_}) {
      Result<GpuEvent> made = gpu.event();
      if (!made.ok()) return made.error();
      *event = std::move(*made);
    }
    const std::pair<DeviceBuffer*, int64_t> buffers[] = {{&bench.memory_, kReadBytes},
                                                         {&bench.words_, 4096}};
    for (const auto& [buffer, bytes] : buffers) {
      Result<DeviceBuffer> made = gpu.allocate(bytes);
      if (!made.ok()) return made.error();
      *buffer = std::move(*made);
      SUNDOG_RETURN_IF_ERROR(gpu.fill(buffer->pointer(), 0, bytes));
    }
    return bench;
  }

  Gpu& gpu() { return *gpu_; }
  int64_t sms() const { return std::max(gpu_->info().sms, 1); }
  DevicePointer memory() const { return memory_.pointer(); }
  DevicePointer words() const { return words_.pointer(); }

  Result<GpuKernel> kernel(const char* name, int64_t shared) {
    return gpu_->kernel(module_, name, shared);
  }

  // Microseconds of what `body` enqueues.
  Result<double> time_us(const std::function<Status()>& body, int replays = 9) {
    Result<GpuGraph> graph = gpu_->capture(body);
    if (!graph.ok()) return graph.error();
    std::vector<double> times;
    for (int i = -2; i < replays; ++i) {
      const Result<double> us = timed_replay(*gpu_, *graph, from_, to_);
      if (!us.ok()) return us.error();
      if (i >= 0) times.push_back(*us);
    }
    return median(times);
  }

  // Microseconds of one launch.
  Result<double> launch_us(const char* name, const LaunchShape& shape, int64_t shared,
                           const std::vector<DevicePointer>& parameters, int copies = 1) {
    const Result<GpuKernel> found = kernel(name, shared);
    if (!found.ok()) return found.error();
    return time_us([&]() -> Status {
      for (int i = 0; i < copies; ++i) {
        SUNDOG_RETURN_IF_ERROR(gpu_->launch(*found, shape, parameters));
      }
      return {};
    });
  }

  // Cycles that a block of so many threads on each SM took, as the kernel counts them.
  Result<double> cycles(const char* name, int threads, int64_t shared,
                        std::vector<DevicePointer> more = {}) {
    const Result<GpuKernel> found = kernel(name, shared);
    if (!found.ok()) return found.error();
    std::vector<DevicePointer> parameters = {words(), kRounds, words() + 64};
    parameters.insert(parameters.end(), more.begin(), more.end());
    std::vector<double> counted;
    for (int i = 0; i < 5; ++i) {
      SUNDOG_RETURN_IF_ERROR(gpu_->launch(*found, {{sms(), 1, 1}, threads}, parameters));
      SUNDOG_RETURN_IF_ERROR(gpu_->synchronize());
      uint64_t value = 0;
      SUNDOG_RETURN_IF_ERROR(
          gpu_->download(std::as_writable_bytes(std::span<uint64_t>(&value, 1)), words()));
      counted.push_back(static_cast<double>(value));
    }
    return std::max(median(counted), 1.0);
  }

 private:
  explicit Bench(Gpu& gpu) : gpu_(&gpu) {}
  Gpu* gpu_;
  GpuModule module_;
  GpuEvent from_, to_;
  DeviceBuffer memory_, words_;
};

// One figure after another; the first error ends it.
class Calibrator {
 public:
  Calibrator(Bench& bench, Calibration& result) : bench_(bench), result_(result) {}

  Status run() {
    limits();
    SUNDOG_RETURN_IF_ERROR(memory());
    SUNDOG_RETURN_IF_ERROR(launches());
    SUNDOG_RETURN_IF_ERROR(barriers());
    SUNDOG_RETURN_IF_ERROR(shared_memory());
    SUNDOG_RETURN_IF_ERROR(instructions());
    return products();
  }

 private:
  Device& device() { return result_.device; }
  void beside(std::string name, double value, std::string unit) {
    result_.beside.push_back({std::move(name), rounded(value), std::move(unit)});
  }
  // Puts a measured value into place.
  Status take(double& field, const Result<double>& value, double factor = 1) {
    if (!value.ok()) return value.error();
    field = rounded(*value * factor);
    return {};
  }

  void limits() {
    const GpuInfo& info = bench_.gpu().info();
    Device& d = device();
    d.full_name = info.name;
    for (const char c : info.name) {
      const auto byte = static_cast<unsigned char>(c);
      d.name += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '_';
    }
    d.arch = arch_of(info);
    d.sms = info.sms;
    d.clock_mhz = info.clock_mhz;
    d.shared_per_block = info.max_shared_per_block;
    d.shared_per_sm = info.shared_per_sm;
    d.shared_reserved_per_block = info.shared_reserved_per_block;
    d.registers_per_sm = info.registers_per_sm;
    d.max_registers_per_thread = 255;
    d.max_threads_per_block = info.max_threads_per_block;
    d.max_threads_per_sm = info.max_threads_per_sm;
    d.max_blocks_per_sm = info.max_blocks_per_sm;
    d.l2_bytes = info.l2_bytes;
    d.memory_bytes = info.total_bytes;
  }

  // GB/s of reading `count` words of 16 bytes of `size`, over and over.
  Result<double> read_rate(const Flight& flight, int64_t count, int64_t size) {
    const std::string name = "read_" + std::to_string(flight.depth);
    // More than half of the shared memory: one block an SM.
    const int64_t shared =
        std::max(flight.bytes(), std::min(bench_.gpu().info().max_shared_per_block,
                                          bench_.gpu().info().shared_per_sm / 2 + 1024));
    const Result<double> us = bench_.launch_us(
        name.c_str(), {{bench_.sms(), 1, 1}, flight.block}, shared,
        {bench_.memory(), static_cast<DevicePointer>(count), static_cast<DevicePointer>(size)});
    if (!us.ok()) return us.error();
    return static_cast<double>(count) * 16 / *us * 1e-3;
  }

  Status memory() {
    constexpr int64_t kWords = kReadBytes / 16;
    Device& d = device();
    for (const Flight& flight : kFlights) {
      const Result<double> rate = read_rate(flight, kWords, kWords);
      if (!rate.ok()) return rate.error();
      const double value = rounded(*rate);
      // Beyond saturation a deeper pipeline is no faster; the row has no use for it.
      if (d.hbm.empty() || value > d.hbm.back().second) {
        d.hbm.emplace_back(static_cast<double>(flight.bytes()), value);
      } else {
        beside("hbm with " + std::to_string(flight.bytes()) + " bytes in flight", value, "GB/s");
      }
    }
    const auto quarter = static_cast<int64_t>(
        std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(d.l2_bytes / 4, 1024))));
    SUNDOG_RETURN_IF_ERROR(
        take(d.l2_gb_per_s, read_rate(kFlights[std::size(kFlights) - 1], kWords, quarter / 16)));
    return fill();
  }

  Status fill() {
    constexpr DevicePointer kSpread = 16384, kSteps = 2000;
    const auto count = static_cast<DevicePointer>(kReadBytes) / kSpread;
    const Result<GpuKernel> make = bench_.kernel("make_chain", 0);
    if (!make.ok()) return make.error();
    const DevicePointer chain[] = {bench_.memory(), count, kSpread};
    SUNDOG_RETURN_IF_ERROR(bench_.gpu().launch(*make, {{bench_.sms(), 1, 1}, 256}, chain));
    const DevicePointer follow[] = {bench_.memory(), kSteps, bench_.words()};
    // What was followed once is in the cache: a read of other memory stands before each time.
    return take(device().fill_us, behind_a_read("follow_chain", {{1, 1, 1}, 1}, follow, kReadBytes),
                1.0 / kSteps);
  }

  // What a launch takes behind a kernel that reads so many bytes: neither is anything left in the
  // cache, nor does the time of the host to launch a graph count.
  Result<double> behind_a_read(const char* name, const LaunchShape& shape,
                               std::span<const DevicePointer> parameters, int64_t bytes) {
    constexpr int kReplays = 31;
    const Result<GpuKernel> read = bench_.kernel("read_6", 98304), found = bench_.kernel(name, 0);
    if (!read.ok()) return read.error();
    if (!found.ok()) return found.error();
    const auto count = static_cast<DevicePointer>(bytes / 16);
    const DevicePointer words[] = {bench_.memory(), count, count};
    const auto timed = [&](bool both) {
      const auto body = [&]() -> Status {
        SUNDOG_RETURN_IF_ERROR(bench_.gpu().launch(*read, {{bench_.sms(), 1, 1}, 1024}, words));
        return both ? bench_.gpu().launch(*found, shape, parameters) : Status();
      };
      return bench_.time_us(body, kReplays);
    };
    const Result<double> alone = timed(false), both = timed(true);
    if (!alone.ok()) return alone.error();
    if (!both.ok()) return both.error();
    return *both - *alone;
  }

  // What one more launch in a graph takes.
  Result<double> node_us(const char* name, bool dependent) {
    constexpr int kFew = 100, kMany = 500;
    const LaunchShape shape{{bench_.sms(), 1, 1}, 256, dependent};
    const Result<double> few = bench_.launch_us(name, shape, 0, {}, kFew);
    if (!few.ok()) return few.error();
    const Result<double> many = bench_.launch_us(name, shape, 0, {}, kMany);
    if (!many.ok()) return many.error();
    return (*many - *few) / (kMany - kFew);
  }

  Status launches() {
    Device& d = device();
    SUNDOG_RETURN_IF_ERROR(take(d.graph_node_us, node_us("empty", false)));
    d.dependent_node_us = d.graph_node_us;
    if (bench_.gpu().info().major >= 9) {
      SUNDOG_RETURN_IF_ERROR(take(d.dependent_node_us, node_us("empty_dependent", true)));
    }
    const Result<double> one =
        behind_a_read("empty", {{bench_.sms(), 1, 1}, 256}, {}, kReadBytes / 8);
    if (!one.ok()) return one.error();
    d.launch_us = std::max(d.graph_node_us, rounded(*one));
    return {};
  }

  Status barriers() {
    Device& d = device();
    const double clocks = kRounds * kUnroll * d.clock_mhz;
    SUNDOG_RETURN_IF_ERROR(
        take(d.block_sync_us, bench_.cycles("block_barriers", 256, 0), 1 / clocks));
    constexpr DevicePointer kFew = 100, kMany = 500;
    const Result<GpuKernel> barriers = bench_.kernel("grid_barriers", 0);
    if (!barriers.ok()) return barriers.error();
    const auto timed = [&](DevicePointer rounds) {
      const DevicePointer parameters[] = {bench_.words() + 1024, rounds};
      return bench_.time_us([&]() -> Status {
        SUNDOG_RETURN_IF_ERROR(bench_.gpu().fill(bench_.words() + 1024, 0, 4));
        return bench_.gpu().launch(*barriers, {{bench_.sms(), 1, 1}, 256}, parameters);
      });
    };
    const Result<double> few = timed(kFew), many = timed(kMany);
    if (!few.ok()) return few.error();
    if (!many.ok()) return many.error();
    d.grid_sync_us = rounded((*many - *few) / (kMany - kFew));
    return {};
  }

  Status shared_memory() {
    const double bytes = static_cast<double>(kBlock * 16 * kUnroll * kRounds);
    const Result<double> whole = bench_.cycles("shared_reads", kBlock, kBlock * 16);
    if (!whole.ok()) return whole.error();
    device().shared_bytes_per_clock_per_sm = rounded(bytes / *whole);
    double straight = 0;
    for (const DevicePointer stride : {1, 2, 4, 8, 16, 32}) {
      const Result<double> cycles = bench_.cycles("strided_reads", kBlock, 32768, {stride});
      if (!cycles.ok()) return cycles.error();
      if (stride == 1) straight = *cycles;
      if (stride > 1) {
        beside("shared reads " + std::to_string(stride) + " words apart", *cycles / straight,
               "times as long");
      }
    }
    return {};
  }

  Status instructions() {
    const double each = static_cast<double>(kBlock * 8 * kUnroll * kRounds);
    Device& d = device();
    const std::pair<const char*, double*> chains[] = {{"multiply_adds", &d.fma_per_clock_per_sm},
                                                      {"logic_operations", &d.alu_per_clock_per_sm},
                                                      {"exponentials", &d.sfu_per_clock_per_sm}};
    for (const auto& [name, field] : chains) {
      const Result<double> cycles = bench_.cycles(name, kBlock, 0);
      if (!cycles.ok()) return cycles.error();
      *field = rounded(each / *cycles);
    }
    return {};
  }

  // TFLOP/s of a kernel whose warps (or groups of four) each do `flops` a round.
  Result<double> product_rate(const char* name, int warps, double units, double flops,
                              int64_t shared) {
    constexpr DevicePointer kProductRounds = 20000;
    const int64_t blocks = 2 * bench_.sms();
    const Result<double> us = bench_.launch_us(name, {{blocks, 1, 1}, 32 * warps}, shared,
                                               {bench_.words(), kProductRounds}, 1);
    if (!us.ok()) return us.error();
    return static_cast<double>(blocks) * units * flops * kProductRounds / *us * 1e-6;
  }

  Status products() {
    constexpr double kWarpFlops = 8.0 * 2 * 16 * 8 * 16, kGroupFlops = 4.0 * 2 * 64 * 128 * 16;
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      const std::string type(name(dtype));
      const Result<double> warp =
          product_rate(("warp_products_" + type).c_str(), 8, 8, kWarpFlops, 0);
      if (!warp.ok()) return warp.error();
      double best = rounded(*warp);
      if (device().arch == "sm_90a") {
        beside("products of warps, " + type, *warp, "TFLOP/s");
        const Result<double> group =
            product_rate(("group_products_" + type).c_str(), 8, 2, kGroupFlops, 40960);
        if (!group.ok()) return group.error();
        best = rounded(*group);
      }
      device().tensor_tflop_per_s.emplace_back(dtype, best);
    }
    return {};
  }

  Bench& bench_;
  Calibration& result_;
};

}  // namespace

std::string arch_of(const GpuInfo& info) {
  return "sm_" + std::to_string(info.major) + std::to_string(info.minor) +
         (info.major >= 9 ? "a" : "");
}

std::string calibration_source(const std::string& arch) {
  std::string text(kPrimitivesText);
  if (arch == "sm_90a") text += kPrimitivesSm90Text;
  return text + std::string(kCalibrationKernelsText);
}

Result<Calibration> calibrate(Gpu& gpu, const std::string& cubin) {
  Result<Bench> bench = Bench::make(gpu, cubin);
  if (!bench.ok()) return bench.error();
  Calibration result;
  const Status status = Calibrator(*bench, result).run();
  if (!status.ok()) return status.error();
  return result;
}

Result<Calibration> calibrate_in_child(int ordinal, const std::string& cubin,
                                       const ProcessLimits& limits) {
  const auto body = [&] {
    Packer answer;
    Result<Gpu> gpu = Gpu::open(ordinal);
    const Result<Calibration> found =
        gpu.ok() ? calibrate(*gpu, cubin) : Result<Calibration>(gpu.error());
    answer.put(found.ok());
    if (!found.ok()) {
      answer.put(found.error());
      return answer.bytes();
    }
    answer.put(print_device(found->device));
    for (const Measurement& each : found->beside) {
      answer.put(true);
      answer.put(each.name);
      answer.put(each.value);
      answer.put(each.unit);
    }
    answer.put(false);
    return answer.bytes();
  };
  const Result<std::string> bytes = run_in_child("the calibration", body, limits);
  if (!bytes.ok()) return bytes.error();
  Unpacker answer(*bytes);
  if (!answer.number<bool>()) return answer.error();
  Result<Device> device = parse_device(answer.text());
  if (!device.ok()) return device.error();
  Calibration result;
  result.device = std::move(*device);
  while (answer.number<bool>()) {
    Measurement each;
    each.name = answer.text();
    each.value = answer.number<double>();
    each.unit = answer.text();
    result.beside.push_back(std::move(each));
  }
  return result;
}

}  // namespace sundog::codegen
