// The functions of the CUDA driver that codegen/driver.h uses: a table, so that tests can put a
// driver of their own in its place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sundog::codegen {

using DevicePointer = unsigned long long;  // CUdeviceptr

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    int value;
  };
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// One launch of `block` threads a block; `dependent` as in the launch plan, where the driver knows
// it.
struct DriverApi;
int launch_kernel(const DriverApi& api, void* function, const std::array<unsigned, 3>& grid,
                  unsigned block, unsigned shared_bytes, bool dependent, void* stream,
                  void** parameters);

// The functions that are used, by the names that the driver exports (CUDA 11.4 and later).  Handles
// are opaque pointers; CUresult, CUdevice and the enumerations are ints.
struct DriverApi {
  int (*init)(unsigned);
  int (*driver_version)(int*);
  int (*error_name)(int, const char**);
  int (*error_string)(int, const char**);
  int (*device_count)(int*);
  int (*device_get)(int*, int);
  int (*device_name)(char*, int, int);
  int (*device_attribute)(int*, int, int);
  int (*context_retain)(void**, int);
  int (*context_release)(int);
  int (*context_set)(void*);
  int (*context_get)(void**);
  int (*context_push)(void*);
  int (*context_pop)(void**);
  int (*memory_info)(size_t*, size_t*);
  int (*allocate)(DevicePointer*, size_t);
  int (*free)(DevicePointer);
  int (*host_to_device)(DevicePointer, const void*, size_t, void* stream);
  int (*device_to_host)(void*, DevicePointer, size_t);
  int (*device_to_device)(DevicePointer, DevicePointer, size_t, void*);
  int (*set_bytes)(DevicePointer, unsigned char, size_t, void*);
  int (*module_load)(void**, const void*);
  int (*module_unload)(void*);
  int (*module_function)(void**, void*, const char*);
  int (*function_set)(void*, int, int);
  int (*function_get)(int*, int, void*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
  int (*stream_create)(void**, unsigned);
  int (*stream_destroy)(void*);
  int (*stream_synchronize)(void*);
  int (*begin_capture)(void*, int);
  int (*end_capture)(void*, void**);
  int (*graph_instantiate)(void**, void*, unsigned long long);
  int (*graph_launch)(void*, void*);
  int (*graph_destroy)(void*);
  int (*graph_exec_destroy)(void*);
  int (*event_create)(void**, unsigned);
  int (*event_destroy)(void*);
  int (*event_record)(void*, void*);
  int (*event_elapsed)(float*, void*, void*);
  // Of CUDA 11.8 and later; null before.
  int (*launch_ex)(const LaunchConfig*, void*, void**, void**);
  // Of CUDA 12 and later; null before.
  int (*tensor_map_encode)(void*, int, unsigned, void*, const uint64_t*, const uint64_t*,
                           const unsigned*, const unsigned*, int, int, int, int);
};

}  // namespace sundog::codegen
