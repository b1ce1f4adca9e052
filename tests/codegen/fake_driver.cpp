#include "tests/codegen/fake_driver.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace sundog::codegen {
namespace {

struct Function {
  std::string name;
  void* context;
};
using Commands = std::vector<std::function<void()>>;

FakeDevice* g_device = nullptr;
double g_now_us = 0;
Commands* g_capture = nullptr;  // where launches go while a graph is captured
std::map<std::pair<void*, std::string>, std::unique_ptr<Function>> g_functions;

int ordinal_of(const void* context) {
  for (int i = 0; i < g_device->count; ++i) {
    if (g_device->context(i) == context) return i;
  }
  return -1;
}

std::byte* host(DevicePointer pointer) { return reinterpret_cast<std::byte*>(pointer); }

void run_or_capture(std::function<void()> command) {
  if (g_capture != nullptr) {
    g_capture->push_back(std::move(command));
  } else {
    command();
  }
}

int launch(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
           void* stream, void** parameters, void**) {
  if (g_device->fail_launch != 0) return g_device->fail_launch;
  const auto& [name, context] = *static_cast<Function*>(function);
  const int ordinal = ordinal_of(context);
  if (ordinal < 0 || g_device->current != context) return 201;  // CUDA_ERROR_INVALID_CONTEXT
  g_device->stream = stream;
  const auto count = g_device->parameters.find(name);
  std::vector<std::byte*> pointers;
  for (int i = 0; i < (count == g_device->parameters.end() ? 3 : count->second); ++i)
    pointers.push_back(host(*static_cast<DevicePointer*>(parameters[i])));
  run_or_capture([name = name, pointers, ordinal] {
    g_device->ran_on.push_back(ordinal);
    ++g_device->launches[name];
    g_device->order.push_back(name);
    g_now_us += g_device->cost_us.count(name) != 0 ? g_device->cost_us[name] : 1;
    g_device->kernels[name](pointers);
  });
  return 0;
}

int launch_ex(const LaunchConfig* config, void* function, void** parameters, void** extra) {
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id != 6 || attribute.value != 1) return 1;  // CUDA_ERROR_INVALID_VALUE
    g_device->dependent.push_back(static_cast<Function*>(function)->name);
  }
  return launch(function, config->grid[0], config->grid[1], config->grid[2], config->block[0],
                config->block[1], config->block[2], config->shared_bytes, config->stream,
                parameters, extra);
}

void fill_device(DriverApi& api) {
  api.init = [](unsigned) { return 0; };
  api.driver_version = [](int* version) { return *version = 13000, 0; };
  api.error_name = [](int, const char** text) { return *text = "CUDA_ERROR_FAKE", 0; };
  api.error_string = [](int, const char** text) { return *text = "as the test wants it", 0; };
  api.device_count = [](int* count) { return *count = g_device->count, 0; };
  api.device_get = [](int* device, int ordinal) { return *device = ordinal, 0; };
  api.device_name = [](char* name, int, int) { return std::strcpy(name, "Fake"), 0; };
  api.device_attribute = [](int* value, int which, int) {
    *value = which == 97 ? 100000 : which == 38 ? 1 << 20 : 2;
    return 0;
  };
  api.context_retain = [](void** context, int device) {
    return *context = g_device->context(device), 0;
  };
  api.context_release = [](int) { return 0; };
  api.context_set = [](void* context) { return g_device->current = context, 0; };
  api.context_get = [](void** context) { return *context = g_device->current, 0; };
  api.context_push = [](void* context) {
    g_device->below.push_back(std::exchange(g_device->current, context));
    return 0;
  };
  api.context_pop = [](void** context) {
    *context = std::exchange(g_device->current, g_device->below.back());
    g_device->below.pop_back();
    return 0;
  };
  api.memory_info = [](size_t* free_bytes, size_t* all) {
    return *free_bytes = *all = size_t{1} << 30, 0;
  };
}

void fill_memory(DriverApi& api) {
  api.allocate = [](DevicePointer* pointer, size_t size) {
    *pointer = reinterpret_cast<DevicePointer>(std::malloc(size));
    return 0;
  };
  api.free = [](DevicePointer pointer) { return std::free(host(pointer)), 0; };
  api.host_to_device = [](DevicePointer to, const void* from, size_t size, void*) {
    return std::memcpy(host(to), from, size), 0;
  };
  api.device_to_host = [](void* to, DevicePointer from, size_t size) {
    return std::memcpy(to, host(from), size), 0;
  };
  api.device_to_device = [](DevicePointer to, DevicePointer from, size_t size, void*) {
    return std::memcpy(host(to), host(from), size), 0;
  };
  api.set_bytes = [](DevicePointer to, unsigned char byte, size_t size, void*) {
    return std::memset(host(to), byte, size), 0;
  };
}

void fill_modules(DriverApi& api) {
  api.module_load = [](void** module, const void*) {
    return ordinal_of(*module = g_device->current) < 0 ? 201 : 0;
  };
  api.module_unload = [](void* module) { return module == g_device->current ? 0 : 201; };
  api.module_function = [](void** function, void* module, const char* name) {
    if (g_device->kernels.count(name) == 0) return 500;
    auto& made = g_functions[{module, name}];
    if (!made) made = std::make_unique<Function>(Function{name, module});
    return *function = made.get(), 0;
  };
  api.function_set = [](void*, int, int) { return 0; };
  api.function_get = [](int* value, int which, void*) { return *value = which == 4 ? 40 : 0, 0; };
  api.launch = launch;
  api.launch_ex = launch_ex;
}

void fill_streams(DriverApi& api) {
  api.stream_create = [](void** stream, unsigned) { return *stream = &g_now_us, 0; };
  api.stream_destroy = [](void*) { return 0; };
  api.stream_synchronize = [](void*) { return 0; };
  api.begin_capture = [](void*, int) { return g_capture = new Commands, 0; };
  api.end_capture = [](void*, void** graph) {
    *graph = std::exchange(g_capture, nullptr);
    return 0;
  };
  api.graph_instantiate = [](void** executable, void* graph, unsigned long long) {
    *executable = new Commands(*static_cast<Commands*>(graph));
    return 0;
  };
  api.graph_launch = [](void* executable, void*) {
    for (const auto& command : *static_cast<Commands*>(executable)) command();
    return 0;
  };
  api.graph_destroy = [](void* graph) { return delete static_cast<Commands*>(graph), 0; };
  api.graph_exec_destroy = [](void* graph) { return delete static_cast<Commands*>(graph), 0; };
  api.event_create = [](void** event, unsigned) { return *event = new double(0), 0; };
  api.event_destroy = [](void* event) { return delete static_cast<double*>(event), 0; };
  api.event_record = [](void* event, void*) { return *static_cast<double*>(event) = g_now_us, 0; };
  api.event_elapsed = [](float* milliseconds, void* from, void* to) {
    *milliseconds =
        static_cast<float>((*static_cast<double*>(to) - *static_cast<double*>(from)) / 1000);
    return 0;
  };
}

}  // namespace

DriverApi fake_driver(FakeDevice& device) {
  g_device = &device;
  DriverApi api{};
  fill_device(api);
  fill_memory(api);
  fill_modules(api);
  fill_streams(api);
  return api;
}

}  // namespace sundog::codegen
