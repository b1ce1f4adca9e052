#include "codegen/loaded_plan.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "codegen/driver.h"
#include "codegen/driver_api.h"
#include "codegen/library.h"

namespace sundog::codegen {
namespace {

constexpr int kFunctionDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int64_t kSharedWithoutLeave = 48 << 10;
constexpr size_t kMaxArguments = 256;  // far more than a kernel of ours has

// Makes a context current for a scope and puts back what was.
class CurrentContext {
 public:
  CurrentContext(const DriverApi& api, void* context) : api_(api) {
    void* before = nullptr;
    code_ = api.context_get(&before);
    if (code_ != 0 || before == context) return;
    code_ = api.context_push(context);
    pushed_ = code_ == 0;
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() {
    void* popped = nullptr;
    if (pushed_) api_.context_pop(&popped);
  }
  int code() const { return code_; }

 private:
  const DriverApi& api_;
  int code_ = 0;
  bool pushed_ = false;
};

DevicePointer pointer_of(const PlanArgument& argument, void* const* inputs, void* const* outputs,
                         const void* workspace) {
  const auto index = static_cast<size_t>(argument.index);
  const void* pointer = workspace;
  if (argument.kind == PlanArgument::Kind::kInput) pointer = inputs[index];
  if (argument.kind == PlanArgument::Kind::kOutput) pointer = outputs[index];
  return reinterpret_cast<DevicePointer>(pointer) + static_cast<DevicePointer>(argument.offset);
}

}  // namespace

struct LoadedPlan::State {
  struct Kernel {
    void* function = nullptr;
    std::array<unsigned, 3> grid{};
    unsigned block = 1, shared_bytes = 0;
    bool dependent = false;
    std::vector<PlanArgument> arguments;
    size_t maps = 0;  // of the arguments, those that are tensor maps
    std::optional<LibraryGemm> gemm;
  };

  State(const DriverApi& driver, int number) : api(&driver), ordinal(number) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (module != nullptr) {
      const CurrentContext current(*api, context);
      library.reset();
      if (current.code() == 0) api->module_unload(module);
    }
    if (context != nullptr) api->context_release(device);
  }

  const DriverApi* api;
  int ordinal, device = 0;
  void *context = nullptr, *module = nullptr;
  bool needs_workspace = false;
  int64_t library_offset = 0, library_bytes = 0;
  std::optional<LibraryHandle> library;
  std::vector<Kernel> kernels;
};

Result<LoadedPlan> LoadedPlan::load(int ordinal, const std::string& cubin, const LaunchPlan& plan) {
  Result<const DriverApi*> api = open_driver();
  if (!api.ok()) return api.error();
  return load(**api, ordinal, cubin, plan);
}

Result<LoadedPlan> LoadedPlan::load(const DriverApi& api, int ordinal, const std::string& cubin,
                                    const LaunchPlan& plan, const LibraryApi* library) {
  auto state = std::make_shared<State>(api, ordinal);
  SUNDOG_RETURN_IF_ERROR(find_gpu(api, ordinal, &state->device));
  SUNDOG_RETURN_IF_ERROR(driver_status(api, api.context_retain(&state->context, state->device),
                                       "cuDevicePrimaryCtxRetain"));
  const CurrentContext current(api, state->context);
  SUNDOG_RETURN_IF_ERROR(driver_status(api, current.code(), "cuCtxPushCurrent"));
  SUNDOG_RETURN_IF_ERROR(
      driver_status(api, api.module_load(&state->module, cubin.data()), "cuModuleLoadData"));
  state->needs_workspace = plan.workspace_bytes > 0;
  state->library_bytes = plan.library_bytes;
  state->library_offset = plan.library_offset();
  if (plan.library_bytes > 0) {
    Result<LibraryHandle> handle = LibraryHandle::open(library);
    if (!handle.ok()) return handle.error();
    state->library = std::move(*handle);
  }
  for (const PlanKernel& each : plan.kernels) {
    State::Kernel kernel;
    if (each.gemm) {
      kernel.gemm = each.gemm;
      kernel.arguments = each.arguments;
      kernel.maps = static_cast<size_t>(
          std::count_if(each.arguments.begin(), each.arguments.end(),
                        [](const PlanArgument& argument) { return argument.map.has_value(); }));
      state->kernels.push_back(std::move(kernel));
      continue;
    }
    SUNDOG_RETURN_IF_ERROR(
        driver_status(api, api.module_function(&kernel.function, state->module, each.name.c_str()),
                      "cuModuleGetFunction"));
    if (each.shared_bytes > kSharedWithoutLeave) {
      SUNDOG_RETURN_IF_ERROR(driver_status(api,
                                           api.function_set(kernel.function, kFunctionDynamicShared,
                                                            static_cast<int>(each.shared_bytes)),
                                           "cuFuncSetAttribute"));
    }
    bool empty = false;
    for (size_t d = 0; d < 3; ++d) {
      kernel.grid[d] = static_cast<unsigned>(each.grid[d]);
      empty = empty || each.grid[d] == 0;
    }
    if (empty) continue;  // nothing to do, and the driver refuses an empty grid
    kernel.block = static_cast<unsigned>(each.block);
    kernel.shared_bytes = static_cast<unsigned>(each.shared_bytes);
    kernel.arguments = each.arguments;
    kernel.maps = static_cast<size_t>(
        std::count_if(each.arguments.begin(), each.arguments.end(),
                      [](const PlanArgument& argument) { return argument.map.has_value(); }));
    kernel.dependent = each.dependent;
    if (kernel.arguments.size() > kMaxArguments) {
      return unsupported("kernel " + each.name + " has more than 256 parameters");
    }
    state->kernels.push_back(std::move(kernel));
  }
  return LoadedPlan(std::move(state));
}

Status LoadedPlan::launch(void* const* inputs, void* const* outputs, void* workspace,
                          void* stream) const {
  const State& state = *state_;
  const DriverApi& api = *state.api;
  if (state.needs_workspace && workspace == nullptr) {
    return bad_input("this kernel needs a workspace and got none");
  }
  const CurrentContext current(api, state.context);
  SUNDOG_RETURN_IF_ERROR(driver_status(api, current.code(), "cuCtxPushCurrent"));
  for (const State::Kernel& kernel : state.kernels) {
    std::array<DevicePointer, kMaxArguments> values;
    std::array<void*, kMaxArguments> parameters;
    std::vector<TensorMapBits> maps;
    maps.reserve(kernel.maps);
    for (size_t i = 0; i < kernel.arguments.size(); ++i) {
      const PlanArgument& argument = kernel.arguments[i];
      values[i] = pointer_of(argument, inputs, outputs, workspace);
      parameters[i] = &values[i];
      if (!argument.map) continue;
      const Result<TensorMapBits> map = encode_tensor_map(api, *argument.map, values[i]);
      if (!map.ok()) return map.error();
      parameters[i] = &maps.emplace_back(*map);
    }
    if (kernel.gemm) {
      const LibraryGemm& gemm = *kernel.gemm;
      const auto at = [&](const GemmMatrix& matrix) {
        return reinterpret_cast<void*>(values[matrix.tensor]);
      };
      SUNDOG_RETURN_IF_ERROR(
          state.library->gemm(gemm, at(gemm.a), at(gemm.b), at(gemm.c),
                              static_cast<std::byte*>(workspace) + state.library_offset,
                              static_cast<size_t>(state.library_bytes), stream));
      continue;
    }
    const int code =
        launch_kernel(api, kernel.function, kernel.grid, kernel.block, kernel.shared_bytes,
                      kernel.dependent, stream, parameters.data());
    if (code != 0) return driver_status(api, code, "cuLaunchKernel");
  }
  return {};
}

int LoadedPlan::ordinal() const { return state_->ordinal; }

}  // namespace sundog::codegen
