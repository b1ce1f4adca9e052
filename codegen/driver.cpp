#include "codegen/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <type_traits>

#include "codegen/driver_api.h"
#include "core/process.h"
#include "core/process_wire.h"

namespace sundog::codegen {

namespace {

// CUdevice_attribute and CUfunction_attribute.
constexpr int kSmCount = 16, kL2Bytes = 38, kMajor = 75, kMinor = 76, kSharedOptIn = 97;
constexpr int kThreadsPerBlock = 1, kClockKhz = 13, kThreadsPerSm = 39, kSharedPerSm = 81,
              kRegistersPerSm = 82, kBlocksPerSm = 106, kSharedReserved = 111;
constexpr int kFunctionLocalBytes = 3, kFunctionRegisters = 4, kFunctionDynamicShared = 8;
constexpr int kProgrammaticStreamSerialization = 6;  // CUlaunchAttributeID
constexpr int kCaptureThreadLocal = 1;               // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr unsigned kStreamNonBlocking = 1;           // CU_STREAM_NON_BLOCKING

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The first name that the driver lacks, or nothing.
const char* load(void* library, DriverApi& api) {
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto& function) {
    if (!find(library, name, function) && missing == nullptr) missing = name;
  };
  need("cuInit", api.init);
  need("cuDriverGetVersion", api.driver_version);
  need("cuGetErrorName", api.error_name);
  need("cuGetErrorString", api.error_string);
  need("cuDeviceGetCount", api.device_count);
  need("cuDeviceGet", api.device_get);
  need("cuDeviceGetName", api.device_name);
  need("cuDeviceGetAttribute", api.device_attribute);
  need("cuDevicePrimaryCtxRetain", api.context_retain);
  need("cuDevicePrimaryCtxRelease_v2", api.context_release);
  need("cuCtxSetCurrent", api.context_set);
  need("cuCtxGetCurrent", api.context_get);
  need("cuCtxPushCurrent_v2", api.context_push);
  need("cuCtxPopCurrent_v2", api.context_pop);
  need("cuMemGetInfo_v2", api.memory_info);
  need("cuMemAlloc_v2", api.allocate);
  need("cuMemFree_v2", api.free);
  need("cuMemcpyHtoDAsync_v2", api.host_to_device);
  need("cuMemcpyDtoH_v2", api.device_to_host);
  need("cuMemcpyDtoDAsync_v2", api.device_to_device);
  need("cuMemsetD8Async", api.set_bytes);
  need("cuModuleLoadData", api.module_load);
  need("cuModuleUnload", api.module_unload);
  need("cuModuleGetFunction", api.module_function);
  need("cuFuncSetAttribute", api.function_set);
  need("cuFuncGetAttribute", api.function_get);
  need("cuLaunchKernel", api.launch);
  need("cuStreamCreate", api.stream_create);
  need("cuStreamDestroy_v2", api.stream_destroy);
  need("cuStreamSynchronize", api.stream_synchronize);
  need("cuStreamBeginCapture_v2", api.begin_capture);
  need("cuStreamEndCapture", api.end_capture);
  need("cuGraphInstantiateWithFlags", api.graph_instantiate);
  need("cuGraphLaunch", api.graph_launch);
  need("cuGraphDestroy", api.graph_destroy);
  need("cuGraphExecDestroy", api.graph_exec_destroy);
  need("cuEventCreate", api.event_create);
  need("cuEventDestroy_v2", api.event_destroy);
  need("cuEventRecord", api.event_record);
  need("cuEventElapsedTime", api.event_elapsed);
  find(library, "cuLaunchKernelEx", api.launch_ex);
  find(library, "cuTensorMapEncodeTiled", api.tensor_map_encode);
  return missing;
}

Error no_driver(std::string message) {
  return {ErrorCode::kToolMissing,
          std::move(message),
          "a GPU is needed only to time kernels; --on emulator runs them on the CPU",
          {}};
}

}  // namespace

void ReleaseMemory::release(const DriverApi& api, DevicePointer pointer) { api.free(pointer); }
void ReleaseModule::release(const DriverApi& api, void* module) { api.module_unload(module); }
void ReleaseStream::release(const DriverApi& api, void* stream) { api.stream_destroy(stream); }
void ReleaseEvent::release(const DriverApi& api, void* event) { api.event_destroy(event); }
void ReleaseGraphExec::release(const DriverApi& api, void* graph) { api.graph_exec_destroy(graph); }

// The driver of this process, opened once and kept: it cannot be unloaded safely.
Result<const DriverApi*> open_driver() {
  static const Result<DriverApi> opened = []() -> Result<DriverApi> {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      // Where containers with a mounted driver keep it.
      library = dlopen("/usr/local/nvidia/lib64/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) return no_driver("there is no CUDA driver (libcuda.so.1) here");
    DriverApi api{};
    if (const char* missing = load(library, api); missing != nullptr) {
      return no_driver(std::string("the CUDA driver is too old: it lacks ") + missing);
    }
    return api;
  }();
  if (!opened.ok()) return opened.error();
  return &*opened;
}

Status driver_status(const DriverApi& api, int code, const char* call) {
  if (code == 0) return {};
  const char *name = nullptr, *text = nullptr;
  api.error_name(code, &name);
  api.error_string(code, &text);
  return Error{ErrorCode::kFailed,
               std::string(call) + ": " + (name == nullptr ? "error" : name) + " (" +
                   std::to_string(code) + ")" + (text == nullptr ? "" : std::string(", ") + text),
               {},
               {}};
}

int tensor_map_dtype(const PlanTensorMap& map) {
  constexpr int kBytes = 0, kF16 = 6, kF32 = 7, kBf16 = 9;
  return map.dtype == DType::kF16    ? kF16
         : map.dtype == DType::kBF16 ? kBf16
         : map.dtype == DType::kF32  ? kF32
                                     : kBytes;
}

int tensor_map_swizzle(const PlanTensorMap& map) {
  return map.swizzle == 128 ? 3 : map.swizzle == 64 ? 2 : map.swizzle == 32 ? 1 : 0;
}

int launch_kernel(const DriverApi& api, void* function, const std::array<unsigned, 3>& grid,
                  unsigned block, unsigned shared_bytes, bool dependent, void* stream,
                  void** parameters) {
  // Without leave to start early it is right all the same: the wait is over at once.
  if (!dependent || api.launch_ex == nullptr) {
    return api.launch(function, grid[0], grid[1], grid[2], block, 1, 1, shared_bytes, stream,
                      parameters, nullptr);
  }
  LaunchAttribute early{};
  early.id = kProgrammaticStreamSerialization;
  early.value = 1;
  const LaunchConfig config{
      {grid[0], grid[1], grid[2]}, {block, 1, 1}, shared_bytes, stream, &early, 1};
  return api.launch_ex(&config, function, parameters, nullptr);
}

Status Gpu::checked(int code, const char* call) const { return driver_status(*api_, code, call); }

Status find_gpu(const DriverApi& api, int ordinal, int* device) {
  if (const Status status = driver_status(api, api.init(0), "cuInit"); !status.ok()) {
    return no_driver("the CUDA driver cannot be used: " + status.error().message);
  }
  int count = 0;
  SUNDOG_RETURN_IF_ERROR(driver_status(api, api.device_count(&count), "cuDeviceGetCount"));
  if (count == 0) return no_driver("there is no GPU here");
  if (ordinal < 0 || ordinal >= count) {
    return bad_input("there is no GPU " + std::to_string(ordinal),
                     std::to_string(count) + " can be seen, numbered from 0");
  }
  return driver_status(api, api.device_get(device, ordinal), "cuDeviceGet");
}

Result<Gpu> Gpu::open(int ordinal) {
  Result<const DriverApi*> api = open_driver();
  if (!api.ok()) return api.error();
  return open(**api, ordinal);
}

Result<Gpu> Gpu::open(const DriverApi& d, int ordinal) {
  Gpu gpu;
  gpu.api_ = &d;
  SUNDOG_RETURN_IF_ERROR(find_gpu(d, ordinal, &gpu.device_));
  void* context = nullptr;
  SUNDOG_RETURN_IF_ERROR(
      gpu.checked(d.context_retain(&context, gpu.device_), "cuDevicePrimaryCtxRetain"));
  gpu.retained_ = true;
  SUNDOG_RETURN_IF_ERROR(gpu.checked(d.context_set(context), "cuCtxSetCurrent"));
  void* stream = nullptr;
  SUNDOG_RETURN_IF_ERROR(
      gpu.checked(d.stream_create(&stream, kStreamNonBlocking), "cuStreamCreate"));
  gpu.stream_ = {&d, stream};

  char name[256] = "";
  SUNDOG_RETURN_IF_ERROR(
      gpu.checked(d.device_name(name, sizeof name - 1, gpu.device_), "cuDeviceGetName"));
  gpu.info_.name = name;
  const auto attribute = [&](int which) {
    int value = 0;
    return d.device_attribute(&value, which, gpu.device_) == 0 ? value : 0;
  };
  gpu.info_.major = attribute(kMajor);
  gpu.info_.minor = attribute(kMinor);
  gpu.info_.sms = attribute(kSmCount);
  gpu.info_.l2_bytes = attribute(kL2Bytes);
  gpu.info_.max_shared_per_block = attribute(kSharedOptIn);
  gpu.info_.shared_per_sm = attribute(kSharedPerSm);
  gpu.info_.shared_reserved_per_block = attribute(kSharedReserved);
  gpu.info_.registers_per_sm = attribute(kRegistersPerSm);
  gpu.info_.max_threads_per_block = attribute(kThreadsPerBlock);
  gpu.info_.max_threads_per_sm = attribute(kThreadsPerSm);
  gpu.info_.max_blocks_per_sm = attribute(kBlocksPerSm);
  gpu.info_.clock_mhz = attribute(kClockKhz) / 1000.0;
  size_t free_bytes = 0, total_bytes = 0;
  SUNDOG_RETURN_IF_ERROR(gpu.checked(d.memory_info(&free_bytes, &total_bytes), "cuMemGetInfo"));
  gpu.info_.free_bytes = static_cast<int64_t>(free_bytes);
  gpu.info_.total_bytes = static_cast<int64_t>(total_bytes);
  d.driver_version(&gpu.info_.driver_version);
  return gpu;
}

Gpu::~Gpu() {
  // A moved-from Gpu still points to the driver, but its stream has gone with the move.
  if (retained_ && stream_.get() != nullptr) {
    stream_ = {};
    api_->context_release(device_);
  }
}

Result<DeviceBuffer> Gpu::allocate(int64_t bytes) {
  DevicePointer pointer = 0;
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  if (const Status status = checked(api_->allocate(&pointer, size), "cuMemAlloc"); !status.ok()) {
    return Error{ErrorCode::kLimit,
                 status.error().message + " (for " + std::to_string(bytes) + " bytes)",
                 {},
                 {}};
  }
  return DeviceBuffer{{api_, pointer}, bytes};
}

Status Gpu::upload(DevicePointer target, std::span<const std::byte> data) {
  if (data.empty()) return {};
  // In the stream of the kernels: cuMemcpyHtoD may return while the last bytes of a small copy are
  // still on their way, and a stream that does not wait for the default one would overtake them.
  SUNDOG_RETURN_IF_ERROR(checked(
      api_->host_to_device(target, data.data(), data.size(), stream_.get()), "cuMemcpyHtoDAsync"));
  return synchronize();
}

Status Gpu::download(std::span<std::byte> target, DevicePointer source) {
  if (target.empty()) return {};
  SUNDOG_RETURN_IF_ERROR(synchronize());
  return checked(api_->device_to_host(target.data(), source, target.size()), "cuMemcpyDtoH");
}

Status Gpu::copy(DevicePointer target, DevicePointer source, int64_t bytes) {
  if (bytes == 0) return {};
  return checked(api_->device_to_device(target, source, static_cast<size_t>(bytes), stream_.get()),
                 "cuMemcpyDtoDAsync");
}

Status Gpu::fill(DevicePointer target, uint8_t byte, int64_t bytes) {
  if (bytes == 0) return {};
  return checked(api_->set_bytes(target, byte, static_cast<size_t>(bytes), stream_.get()),
                 "cuMemsetD8Async");
}

Result<GpuModule> Gpu::load(const std::string& cubin) {
  void* module = nullptr;
  SUNDOG_RETURN_IF_ERROR(checked(api_->module_load(&module, cubin.data()), "cuModuleLoadData"));
  return GpuModule(api_, module);
}

Result<GpuKernel> Gpu::kernel(const GpuModule& module, const std::string& name,
                              int64_t dynamic_shared_bytes) {
  GpuKernel kernel;
  kernel.dynamic_shared_bytes = dynamic_shared_bytes;
  Status status = checked(api_->module_function(&kernel.function, module.get(), name.c_str()),
                          "cuModuleGetFunction");
  if (!status.ok()) {
    Error error = status.error();
    error.message += " (kernel " + name + ")";
    return error;
  }
  // Up to 48 KiB need no leave.
  if (dynamic_shared_bytes > (48 << 10)) {
    if (dynamic_shared_bytes > info_.max_shared_per_block) {
      return Error{ErrorCode::kFailed,
                   "kernel " + name + " needs " + std::to_string(dynamic_shared_bytes) +
                       " bytes of shared memory; this GPU has " +
                       std::to_string(info_.max_shared_per_block),
                   {},
                   {}};
    }
    SUNDOG_RETURN_IF_ERROR(checked(api_->function_set(kernel.function, kFunctionDynamicShared,
                                                      static_cast<int>(dynamic_shared_bytes)),
                                   "cuFuncSetAttribute"));
  }
  int local = 0;
  SUNDOG_RETURN_IF_ERROR(
      checked(api_->function_get(&kernel.registers, kFunctionRegisters, kernel.function),
              "cuFuncGetAttribute"));
  SUNDOG_RETURN_IF_ERROR(checked(api_->function_get(&local, kFunctionLocalBytes, kernel.function),
                                 "cuFuncGetAttribute"));
  kernel.local_bytes = local;
  return kernel;
}

Result<TensorMapBits> encode_tensor_map(const DriverApi& api, const PlanTensorMap& map,
                                        DevicePointer pointer) {
  if (api.tensor_map_encode == nullptr) {
    return unsupported("the CUDA driver makes no tensor maps", "it is older than CUDA 12");
  }
  std::vector<uint64_t> extents(map.extents.begin(), map.extents.end());
  std::vector<uint64_t> strides(map.strides.begin() + 1, map.strides.end());
  std::vector<unsigned> boxes(map.boxes.begin(), map.boxes.end()), steps(map.boxes.size(), 1);
  TensorMapBits bits;
  SUNDOG_RETURN_IF_ERROR(driver_status(
      api,
      api.tensor_map_encode(&bits, tensor_map_dtype(map), static_cast<unsigned>(map.extents.size()),
                            reinterpret_cast<void*>(pointer + static_cast<uint64_t>(map.offset)),
                            extents.data(), strides.data(), boxes.data(), steps.data(), 0,
                            tensor_map_swizzle(map), kTensorMapPromotion128, 0),
      "cuTensorMapEncodeTiled"));
  return bits;
}

Result<TensorMapBits> Gpu::encode(const PlanTensorMap& map, DevicePointer pointer) {
  return encode_tensor_map(*api_, map, pointer);
}

Status Gpu::launch(const GpuKernel& kernel, const LaunchShape& shape,
                   std::span<const DevicePointer> pointers, std::span<TensorMapBits> maps) {
  for (const int64_t blocks : shape.grid) {
    if (blocks == 0) return {};  // nothing to do, and the driver refuses an empty grid
  }
  std::vector<DevicePointer> values(pointers.begin(), pointers.end());
  std::vector<void*> parameters;
  for (DevicePointer& value : values) parameters.push_back(&value);
  for (TensorMapBits& map : maps) parameters.push_back(&map);
  std::array<unsigned, 3> grid{};
  for (size_t d = 0; d < 3; ++d) grid[d] = static_cast<unsigned>(shape.grid[d]);
  return checked(launch_kernel(*api_, kernel.function, grid, static_cast<unsigned>(shape.block),
                               static_cast<unsigned>(kernel.dynamic_shared_bytes), shape.dependent,
                               stream_.get(), parameters.data()),
                 "cuLaunchKernel");
}

Status Gpu::synchronize() {
  return checked(api_->stream_synchronize(stream_.get()), "cuStreamSynchronize");
}

Result<GpuGraph> Gpu::capture(const std::function<Status()>& body) {
  SUNDOG_RETURN_IF_ERROR(
      checked(api_->begin_capture(stream_.get(), kCaptureThreadLocal), "cuStreamBeginCapture"));
  const Status enqueued = body();
  void* graph = nullptr;
  const Status ended = checked(api_->end_capture(stream_.get(), &graph), "cuStreamEndCapture");
  if (!enqueued.ok() || !ended.ok()) {
    if (graph != nullptr) api_->graph_destroy(graph);
    return enqueued.ok() ? ended.error() : enqueued.error();
  }
  void* executable = nullptr;
  const Status made = checked(api_->graph_instantiate(&executable, graph, 0), "cuGraphInstantiate");
  api_->graph_destroy(graph);
  if (!made.ok()) return made.error();
  return GpuGraph(api_, executable);
}

Status Gpu::replay(const GpuGraph& graph) {
  return checked(api_->graph_launch(graph.get(), stream_.get()), "cuGraphLaunch");
}

Result<GpuEvent> Gpu::event() {
  void* event = nullptr;
  SUNDOG_RETURN_IF_ERROR(checked(api_->event_create(&event, 0), "cuEventCreate"));
  return GpuEvent(api_, event);
}

Status Gpu::record(const GpuEvent& event) {
  return checked(api_->event_record(event.get(), stream_.get()), "cuEventRecord");
}

Result<double> Gpu::microseconds(const GpuEvent& from, const GpuEvent& to) {
  float milliseconds = 0;
  SUNDOG_RETURN_IF_ERROR(
      checked(api_->event_elapsed(&milliseconds, from.get(), to.get()), "cuEventElapsedTime"));
  return double{milliseconds} * 1000;
}

Result<GpuInfo> probe_gpu(int ordinal) {
  const auto body = [ordinal] {
    Packer answer;
    Result<Gpu> gpu = Gpu::open(ordinal);
    answer.put(gpu.ok());
    if (!gpu.ok()) {
      answer.put(gpu.error());
      return answer.bytes();
    }
    const GpuInfo& info = gpu->info();
    answer.put(info.name);
    for (const int64_t number : {int64_t{info.major}, int64_t{info.minor}, int64_t{info.sms},
                                 info.l2_bytes, info.max_shared_per_block, info.free_bytes,
                                 info.total_bytes, int64_t{info.driver_version}}) {
      answer.put(number);
    }
    return answer.bytes();
  };
  Result<std::string> bytes = run_in_child("the CUDA driver", body, {.seconds = 30});
  if (!bytes.ok()) return bytes.error();
  Unpacker answer(*bytes);
  if (!answer.number<bool>()) return answer.error();
  GpuInfo info;
  info.name = answer.text();
  const auto integer = [&] { return static_cast<int>(answer.number<int64_t>()); };
  info.major = integer();
  info.minor = integer();
  info.sms = integer();
  info.l2_bytes = answer.number<int64_t>();
  info.max_shared_per_block = answer.number<int64_t>();
  info.free_bytes = answer.number<int64_t>();
  info.total_bytes = answer.number<int64_t>();
  info.driver_version = integer();
  if (!answer.finished()) return io_error("the CUDA driver's answer was cut short");
  return info;
}

}  // namespace sundog::codegen
