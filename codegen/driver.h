// The CUDA driver, opened at run time: device, memory, modules, launches, events and graphs, as
// much as running and timing a launch plan needs.  No CUDA header is used; every call's code is
// checked and becomes an Error that names the call and the driver's own words.
//
//   Result<Gpu> gpu = Gpu::open(0);
//   Result<DeviceBuffer> x = gpu->allocate(bytes);   gpu->upload(*x, data);
//   Result<GpuModule> m = gpu->load(cubin);
//   Result<GpuKernel> k = gpu->kernel(*m, "k0", dynamic_shared_bytes);
//
// A process that has opened a Gpu must not use CUDA in a forked child, so Sundog opens one only
// inside run_in_child (core/process.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/launch_plan.h"
#include "core/status.h"

namespace sundog::codegen {

struct GpuInfo {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int sms = 0;
  int64_t l2_bytes = 0;
  int64_t max_shared_per_block = 0;  // with opt-in
  int64_t shared_per_sm = 0, shared_reserved_per_block = 0, registers_per_sm = 0;
  int max_threads_per_block = 0, max_threads_per_sm = 0, max_blocks_per_sm = 0;
  double clock_mhz = 0;  // the highest
  int64_t free_bytes = 0, total_bytes = 0;
  int driver_version = 0;  // 13000 for CUDA 13.0
};

struct DriverApi;  // codegen/driver_api.h

// Owns one handle of the driver.
template <class Tag, class Handle>
class Owned {
 public:
  Owned() = default;
  Owned(const DriverApi* api, Handle handle) : api_(api), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : api_(std::exchange(other.api_, nullptr)), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (api_ != nullptr && handle_ != Handle{}) Tag::release(*api_, handle_);
  }
  Handle get() const { return handle_; }

 private:
  const DriverApi* api_ = nullptr;
  Handle handle_{};
};

using DevicePointer = unsigned long long;  // CUdeviceptr

struct ReleaseMemory {
  static void release(const DriverApi& api, DevicePointer pointer);
};
struct ReleaseModule {
  static void release(const DriverApi& api, void* module);
};
struct ReleaseStream {
  static void release(const DriverApi& api, void* stream);
};
struct ReleaseEvent {
  static void release(const DriverApi& api, void* event);
};
struct ReleaseGraphExec {
  static void release(const DriverApi& api, void* graph);
};

struct DeviceBuffer {
  Owned<ReleaseMemory, DevicePointer> memory;
  int64_t bytes = 0;
  DevicePointer pointer() const { return memory.get(); }
};
using GpuModule = Owned<ReleaseModule, void*>;
using GpuEvent = Owned<ReleaseEvent, void*>;
using GpuGraph = Owned<ReleaseGraphExec, void*>;

// A function of a module; valid as long as the module.
struct GpuKernel {
  void* function = nullptr;
  int64_t dynamic_shared_bytes = 0;
  int registers = 0;
  int64_t local_bytes = 0;
};

// A CUtensorMap.
struct alignas(64) TensorMapBits {
  uint64_t words[16] = {};
};

struct LaunchShape {
  std::array<int64_t, 3> grid{1, 1, 1};
  int block = 1;
  bool dependent = false;  // as in the launch plan
};

class Gpu {
 public:
  // The device of that ordinal (CUDA_VISIBLE_DEVICES applies).  kToolMissing without a driver or
  // device.
  static Result<Gpu> open(int ordinal);
  static Result<Gpu> open(const DriverApi& api, int ordinal);  // api must outlive it

  Gpu(Gpu&&) = default;
  Gpu& operator=(Gpu&&) = default;
  ~Gpu();

  const GpuInfo& info() const { return info_; }
  // Everything is enqueued into it.
  void* stream() const { return stream_.get(); }

  Result<DeviceBuffer> allocate(int64_t bytes);  // at least 1 byte, aligned to 256
  Status upload(DevicePointer target, std::span<const std::byte> data);
  Status download(std::span<std::byte> target, DevicePointer source);
  Status copy(DevicePointer target, DevicePointer source, int64_t bytes);
  Status fill(DevicePointer target, uint8_t byte, int64_t bytes);

  Result<GpuModule> load(const std::string& cubin);
  // Raises the kernel's limit of dynamic shared memory to dynamic_shared_bytes.
  Result<GpuKernel> kernel(const GpuModule& module, const std::string& name,
                           int64_t dynamic_shared_bytes);

  // A tensor map of what lies behind `pointer`.
  Result<TensorMapBits> encode(const PlanTensorMap& map, DevicePointer pointer);

  // Enqueues one launch; `pointers` are its parameters, in order, and `maps` those behind them.
  Status launch(const GpuKernel& kernel, const LaunchShape& shape,
                std::span<const DevicePointer> pointers, std::span<TensorMapBits> maps = {});
  // Waits for everything enqueued; an error of an earlier launch shows here.
  Status synchronize();

  // Records what `body` enqueues as a graph instead of running it.
  Result<GpuGraph> capture(const std::function<Status()>& body);
  Status replay(const GpuGraph& graph);

  Result<GpuEvent> event();
  Status record(const GpuEvent& event);
  // Microseconds between two recorded events, after synchronize().
  Result<double> microseconds(const GpuEvent& from, const GpuEvent& to);

 private:
  Gpu() = default;
  Status checked(int code, const char* call) const;

  const DriverApi* api_ = nullptr;
  int device_ = 0;
  bool retained_ = false;
  Owned<ReleaseStream, void*> stream_;
  GpuInfo info_;
};

// What codegen/loaded_plan.h and codegen/shared_object.h share: the driver of this process, the
// handle of a device, a code of the driver as a Status that names the call, tensor maps.
Result<const DriverApi*> open_driver();
Status find_gpu(const DriverApi& api, int ordinal, int* device);
Status driver_status(const DriverApi& api, int code, const char* call);

// CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion; and the map itself.
int tensor_map_dtype(const PlanTensorMap& map);
int tensor_map_swizzle(const PlanTensorMap& map);
inline constexpr int kTensorMapPromotion128 = 2;
Result<TensorMapBits> encode_tensor_map(const DriverApi& api, const PlanTensorMap& map,
                                        DevicePointer pointer);

// What device `ordinal` is, asked in a child process so that this process stays free of CUDA.
Result<GpuInfo> probe_gpu(int ordinal);

}  // namespace sundog::codegen
