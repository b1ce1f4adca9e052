/* What a launch costs from C: sundog_kernel_launch and a saved kernel, in microseconds a call on the CPU,
 * beside the driver's own launch of an empty kernel with three pointers, under which nothing can get, with its
 * parameters one by one and in a buffer; in the default stream and in one of its own.  Ways take turns.
 *
 *   launch_overhead RESULT.pb [SAVED.so]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "python/abi/sundog.h"

enum { kCalls = 500, kRounds = 9, kBytes = 1 << 24, kTensors = 16 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void* driver(const char* name) {
  static void* library = NULL;
  if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW);
  void* found = library == NULL ? NULL : dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "no %s in the CUDA driver\n", name);
    exit(1);
  }
  return found;
}

static void require(int code, const char* what) {
  if (code == 0) return;
  fprintf(stderr, "%s: %d\n", what, code);
  exit(1);
}

typedef int (*launcher)(void* const*, void* const*, void*, void*);

static const char* const kEmpty =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }\n";

static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     void*, void**, void**) = NULL;
static void* function = NULL;

static void load_empty(void) {
  if (launch == NULL) {
    void* module = NULL;
    require(((int (*)(void**, const void*))driver("cuModuleLoadData"))(&module, kEmpty), "load");
    require(((int (*)(void**, void*, const char*))driver("cuModuleGetFunction"))(&function, module,
                                                                                 "empty"),
            "cuModuleGetFunction");
    *(void**)&launch = driver("cuLaunchKernel");
  }
}

static int launch_empty(void* const* inputs, void* const* outputs, void* workspace, void* stream) {
  load_empty();
  void* values[3] = {inputs[0], outputs[0], workspace};
  void* parameters[3] = {&values[0], &values[1], &values[2]};
  return launch(function, 132, 1, 1, 128, 1, 1, 0, stream, parameters, NULL);
}

static int launch_buffer(void* const* inputs, void* const* outputs, void* workspace, void* stream) {
  load_empty();
  void* values[3] = {inputs[0], outputs[0], workspace};
  size_t size = sizeof values;
  /* CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END */
  void* extra[5] = {(void*)1, values, (void*)2, &size, NULL};
  return launch(function, 132, 1, 1, 128, 1, 1, 0, stream, NULL, extra);
}

static sundog_kernel* kernel = NULL;

static int launch_library(void* const* inputs, void* const* outputs, void* workspace,
                          void* stream) {
  return (int)sundog_kernel_launch(kernel, inputs, outputs, workspace, stream, NULL);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  FILE* file = fopen(argv[1], "rb");
  if (file == NULL) return 2;
  static char data[1 << 22];
  const size_t size = fread(data, 1, sizeof data, file);
  fclose(file);

  int device = 0;
  void* context = NULL;
  require(((int (*)(unsigned))driver("cuInit"))(0), "cuInit");
  require(((int (*)(int*, int))driver("cuDeviceGet"))(&device, 0), "cuDeviceGet");
  require(((int (*)(void**, int))driver("cuDevicePrimaryCtxRetain"))(&context, device), "retain");
  require(((int (*)(void*))driver("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
  int (*synchronize)(void) = (int (*)(void))driver("cuCtxSynchronize");
  void* tensors[kTensors];
  for (int i = 0; i < kTensors; ++i) {
    require(((int (*)(void**, size_t))driver("cuMemAlloc_v2"))(&tensors[i], kBytes), "cuMemAlloc");
  }
  sundog_error* error = NULL;
  sundog_result* result = NULL;
  if (sundog_result_from_message(data, size, &result, &error) ||
      sundog_kernel_new(result, 0, &kernel, &error)) {
    fprintf(stderr, "%s\n", sundog_error_message(error));
    return 1;
  }
  void* const* inputs = tensors;
  void* const* outputs = tensors + kTensors / 2;
  enum { kWays = 4, kStreams = 2 };
  launcher ways[kWays] = {launch_empty, launch_buffer, launch_library, NULL};
  const char* const names[kWays] = {"driver", "driver_buffer", "libsundog", "saved"};
  void* streams[kStreams] = {NULL, NULL};
  const char* const in[kStreams] = {"", "_own_stream"};
  /* CU_STREAM_NON_BLOCKING */
  require(((int (*)(void**, unsigned))driver("cuStreamCreate"))(&streams[1], 1), "cuStreamCreate");
  if (argc > 2) {
    void* library = dlopen(argv[2], RTLD_NOW);
    if (library != NULL) *(void**)&ways[3] = dlsym(library, "sundog_saved_launch");
  }
  static double times[kStreams][kWays][kRounds];
  for (int round = -1; round < kRounds; ++round) { /* the first warms up */
    for (int way = 0; way < kWays * kStreams; ++way) {
      const launcher run = ways[way % kWays];
      if (run == NULL) continue;
      require(synchronize(), "cuCtxSynchronize");
      const double start = now_us();
      /* Fewer than fill the queue, or the GPU would be what is measured. */
      for (int call = 0; call < kCalls; ++call) {
        require(run(inputs, outputs, tensors[7], streams[way / kWays]), "launch");
      }
      const double took = (now_us() - start) / kCalls;
      if (round >= 0) times[way / kWays][way % kWays][round] = took;
    }
  }
  for (int stream = 0; stream < kStreams; ++stream) {
    for (int way = 0; way < kWays; ++way) {
      if (ways[way] == NULL) continue;
      qsort(times[stream][way], kRounds, sizeof(double), compare);
      printf("launch_us %s%s %.3f\n", names[way], in[stream], times[stream][way][kRounds / 2]);
    }
  }
  require(synchronize(), "cuCtxSynchronize");
  return 0;
}
