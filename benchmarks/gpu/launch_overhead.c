/* What a launch costs from C: sundog_kernel_launch and a saved kernel, in microseconds a call on the CPU.
 *
 *   launch_overhead RESULT.pb [SAVED.so]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "python/abi/sundog.h"

enum { kCalls = 2000, kRounds = 9, kBytes = 1 << 24, kTensors = 16 };

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
  sundog_kernel* kernel = NULL;
  if (sundog_result_from_message(data, size, &result, &error) ||
      sundog_kernel_new(result, 0, &kernel, &error)) {
    fprintf(stderr, "%s\n", sundog_error_message(error));
    return 1;
  }
  void* const* inputs = tensors;
  void* const* outputs = tensors + kTensors / 2;
  launcher saved = NULL;
  if (argc > 2) {
    void* library = dlopen(argv[2], RTLD_NOW);
    if (library != NULL) saved = (launcher)dlsym(library, "sundog_saved_launch");
  }
  for (int way = 0; way < (saved != NULL ? 2 : 1); ++way) {
    double times[kRounds];
    for (int round = 0; round < kRounds; ++round) {
      require(synchronize(), "cuCtxSynchronize");
      const double start = now_us();
      for (int call = 0; call < kCalls / 4; ++call) {
        /* Fewer than fill the queue, or the GPU would be what is measured. */
        const int code = way == 0 ? (int)sundog_kernel_launch(kernel, inputs, outputs, tensors[7], NULL, NULL)
                                  : saved(inputs, outputs, tensors[7], NULL);
        require(code, "launch");
      }
      times[round] = (now_us() - start) / (kCalls / 4);
    }
    qsort(times, kRounds, sizeof times[0], compare);
    printf("launch_us %s %.3f\n", way == 0 ? "libsundog" : "saved", times[kRounds / 2]);
  }
  require(synchronize(), "cuCtxSynchronize");
  return 0;
}
