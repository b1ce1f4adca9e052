/* libsundog: the C ABI of Sundog, and what the Python package stands on.
 *
 *   sundog_error* error = NULL;
 *   sundog_program* program = NULL;
 *   sundog_result* result = NULL;
 *   if (sundog_program_parse(text, strlen(text), "a.sd", NULL, NULL, 0, &program, &error))
 * fail(error); if (sundog_optimize(program, NULL, 0, NULL, NULL, &result, &error)) fail(error);
 *   sundog_bytes* cuda = NULL;
 *   if (sundog_result_text(result, SUNDOG_CUDA, &cuda, &error)) fail(error);
 *   fwrite(sundog_bytes_data(cuda), 1, sundog_bytes_size(cuda), stdout);
 *
 * Versions.  Functions and enumerators are only ever added within one SUNDOG_ABI_VERSION; messages
 * (core/sundog.proto, core/options.proto) only ever gain fields.  A caller compiled against this
 * header checks once that sundog_abi_version() == SUNDOG_ABI_VERSION.
 *
 * Errors.  A function that can fail returns a sundog_code, SUNDOG_OK (0) if all went well.
 * Otherwise it leaves its result untouched and, where `error` is not NULL, sets *error to an object
 * that the caller frees.  No function prints, exits or raises.
 *
 * Ownership.  What a function hands out through a pointer to a pointer belongs to the caller, who
 * frees it with the function of that type; freeing NULL is allowed.  Handles do not refer to one
 * another: a program may be freed while results made from it live on.  Bytes and texts that are
 * handed in are copied.
 *
 * Threads.  There is no state outside of the handles.  Handles do not change once they are made, so
 * any number of threads may use one at once, as long as none frees it; a sundog_stop is made to be
 * set by another thread.  Compilers and untried kernels run in child processes; where a GPU is
 * timed a process that has used CUDA itself must call sundog_optimize with `no_gpu`, or from a
 * fresh process.
 */
#ifndef SUNDOG_H_
#define SUNDOG_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SUNDOG_API __attribute__((visibility("default")))
#else
#define SUNDOG_API
#endif

#define SUNDOG_ABI_VERSION 1

/* The SUNDOG_ABI_VERSION that the library was built with, and its own version ("0.1.0"). */
SUNDOG_API int sundog_abi_version(void);
SUNDOG_API const char* sundog_version(void);

/* ------------------------------------------------------------------------------ errors and bytes
 */

typedef enum sundog_code {
  SUNDOG_OK = 0,
  SUNDOG_BAD_INPUT = 1,    /* a program, a message or an argument is wrong */
  SUNDOG_UNSUPPORTED = 2,  /* understood, but outside of what Sundog does */
  SUNDOG_IO = 3,           /* a file or device could not be read, written or reached */
  SUNDOG_LIMIT = 4,        /* a time, memory or size limit was hit */
  SUNDOG_TOOL_MISSING = 5, /* a compiler or the CUDA driver was not found */
  SUNDOG_FAILED = 6,       /* a compiler, a kernel or a child process failed */
  SUNDOG_INTERNAL = 7      /* out of memory, or a fault of Sundog */
} sundog_code;

typedef struct sundog_error sundog_error;
SUNDOG_API sundog_code sundog_error_code(const sundog_error* error);
/* One sentence; what to do about it, or ""; both live as long as the error. */
SUNDOG_API const char* sundog_error_message(const sundog_error* error);
SUNDOG_API const char* sundog_error_hint(const sundog_error* error);
/* The place in a text: the file name or "", and line and column from 1, or 0 where there is none.
 */
SUNDOG_API const char* sundog_error_file(const sundog_error* error);
SUNDOG_API int sundog_error_line(const sundog_error* error);
SUNDOG_API int sundog_error_column(const sundog_error* error);
SUNDOG_API void sundog_error_free(sundog_error* error);

/* A message or a text that the library hands out.  A zero byte follows the last one. */
typedef struct sundog_bytes sundog_bytes;
SUNDOG_API const char* sundog_bytes_data(const sundog_bytes* bytes);
SUNDOG_API size_t sundog_bytes_size(const sundog_bytes* bytes);
SUNDOG_API void sundog_bytes_free(sundog_bytes* bytes);

/* -------------------------------------------------------------------------------------- programs
 */

typedef struct sundog_program sundog_program;

/* Reads program text (docs/language.md).  `names` and `values`, `count` of them, replace the values
 * of parameters; `file_name` stands in messages. */
SUNDOG_API sundog_code sundog_program_parse(const char* text, size_t size, const char* file_name,
                                            const char* const* names, const int64_t* values,
                                            size_t count, sundog_program** program,
                                            sundog_error** error);
/* Reads a message `Program`. */
SUNDOG_API sundog_code sundog_program_from_message(const void* data, size_t size,
                                                   sundog_program** program, sundog_error** error);
/* Reads a message `TensorGraph` (core/graph.proto): tensors with dimensions, for which axes are
 * found. */
SUNDOG_API sundog_code sundog_program_from_graph(const void* data, size_t size,
                                                 sundog_program** program, sundog_error** error);
/* Reads an ONNX model; `names` and `values` give its named dimensions their values.  Every node
 * that has no form in a program is listed in the error. */
SUNDOG_API sundog_code sundog_program_from_onnx(const void* data, size_t size,
                                                const char* const* names, const int64_t* values,
                                                size_t count, sundog_program** program,
                                                sundog_error** error);
/* The same from a file, and with the weights that lie in files beside it. */
SUNDOG_API sundog_code sundog_program_load_onnx(const char* path, const char* const* names,
                                                const int64_t* values, size_t count,
                                                sundog_program** program, sundog_error** error);
/* The program as a message `Program`, and as text. */
SUNDOG_API sundog_code sundog_program_message(const sundog_program* program, sundog_bytes** message,
                                              sundog_error** error);
SUNDOG_API sundog_code sundog_program_text(const sundog_program* program, sundog_bytes** text,
                                           sundog_error** error);
/* The multiplications, more or less, that the program needs: what running it by hand would cost. */
SUNDOG_API double sundog_program_work(const sundog_program* program);
/* Microseconds below which no kernel that computes the program is predicted on a target ("h200"):
 * one launch, and each input and output once through memory. */
SUNDOG_API sundog_code sundog_program_bound(const sundog_program* program, const char* target,
                                            double* us, sundog_error** error);
/* Runs the program itself in float64: inputs and outputs in the order of the program, each an array
 * of all its elements in row-major order, whatever strides are declared. */
SUNDOG_API sundog_code sundog_program_evaluate(const sundog_program* program,
                                               const double* const* inputs, double* const* outputs,
                                               int eager_rounding, sundog_error** error);
SUNDOG_API void sundog_program_free(sundog_program* program);

/* ------------------------------------------------------------------------------------ optimizing
 */

/* Asks a call of sundog_optimize, from another thread or a signal handler, to end with the best
 * found so far. */
typedef struct sundog_stop sundog_stop;
SUNDOG_API sundog_stop* sundog_stop_new(void);
SUNDOG_API void sundog_stop_set(sundog_stop* stop);
SUNDOG_API void sundog_stop_free(sundog_stop* stop);

/* Gets a line of text now and then, on the thread that optimizes. */
typedef void (*sundog_progress)(const char* line, void* user);

/* What was found for a program: the best kernels, the other candidates, the evidence. */
typedef struct sundog_result sundog_result;

/* Searches, verifies, emits and checks.  `options` is a message `OptimizeOptions`, or NULL and 0
 * for the defaults. `progress` and `stop` may be NULL.  The time it takes is that of the options.
 */
SUNDOG_API sundog_code sundog_optimize(const sundog_program* program, const void* options,
                                       size_t size, sundog_progress progress, void* user,
                                       const sundog_stop* stop, sundog_result** result,
                                       sundog_error** error);
/* Is a µGraph (text) the same program?  Gives a message `Verdict`.  `options` as above: seed,
 * error_log2, verify_s and eager_rounding count. */
SUNDOG_API sundog_code sundog_verify(const sundog_program* program, const char* mugraph,
                                     size_t size, const void* options, size_t options_size,
                                     sundog_bytes** verdict, sundog_error** error);
/* Reads a message `Result`: result.pb of a folder of results. */
SUNDOG_API sundog_code sundog_result_from_message(const void* data, size_t size,
                                                  sundog_result** result, sundog_error** error);
SUNDOG_API sundog_code sundog_result_message(const sundog_result* result, sundog_bytes** message,
                                             sundog_error** error);

typedef enum sundog_view {
  SUNDOG_CUDA = 0,    /* one self-contained CUDA file */
  SUNDOG_MUGRAPH = 1, /* the best µGraph, as text */
  SUNDOG_PROGRAM = 2, /* the program, as text */
  SUNDOG_SVG = 3,     /* a picture of the best µGraph */
  SUNDOG_DOT = 4,     /* the same for Graphviz */
  SUNDOG_EXPLAIN = 5  /* what was chosen, what it is worth and why it is right, in words */
} sundog_view;
SUNDOG_API sundog_code sundog_result_text(const sundog_result* result, sundog_view view,
                                          sundog_bytes** text, sundog_error** error);
SUNDOG_API void sundog_result_free(sundog_result* result);

/* --------------------------------------------------------------------------------------- running
 */

#define SUNDOG_EMULATOR (-1)

/* Kernels that are ready to run: on one GPU, or in the emulator on the CPU. */
typedef struct sundog_kernel sundog_kernel;

/* Compiles the best kernels of a result for `device`, the number of a GPU as the CUDA runtime
 * counts, or SUNDOG_EMULATOR.  A GPU needs NVRTC or nvcc, the emulator a C++ compiler. */
SUNDOG_API sundog_code sundog_kernel_new(const sundog_result* result, int device,
                                         sundog_kernel** kernel, sundog_error** error);
/* Bytes that sundog_kernel_launch wants as `workspace`; what they hold does not matter, but for the
 * first sundog_kernel_zeroed_bytes of them: those have to be 0 before the first launch with that
 * workspace, and every launch leaves them so. */
SUNDOG_API int64_t sundog_kernel_workspace_bytes(const sundog_kernel* kernel);
SUNDOG_API int64_t sundog_kernel_zeroed_bytes(const sundog_kernel* kernel);
/* Runs the kernels once.  `inputs` and `outputs` are pointers in the order of the program, each
 * with as many bytes behind it as the plan of the result says, aligned as the program declares.
 *
 * On a GPU they are device pointers, and the launches are enqueued into `stream`, a cudaStream_t of
 * that device: nothing is allocated and nothing waits, so that a CUDA graph may capture it. Threads
 * that launch at once need a workspace each.
 *
 * In the emulator they are host pointers, `stream` and `workspace` are NULL, and the call returns
 * when the outputs are there; an access out of bounds or a race is an error. */
SUNDOG_API sundog_code sundog_kernel_launch(const sundog_kernel* kernel, void* const* inputs,
                                            void* const* outputs, void* workspace, void* stream,
                                            sundog_error** error);
/* The same for callers to whom each argument costs (ctypes): one array of pointers, which are the
 * kernel, the workspace, the stream, where an error goes (a sundog_error**, or NULL), then the
 * inputs and the outputs. */
SUNDOG_API sundog_code sundog_kernel_launch_packed(void* const* call);
SUNDOG_API void sundog_kernel_free(sundog_kernel* kernel);

/* Writes the kernels as a shared library that needs nothing of Sundog, only the CUDA driver: the
 * machine code for each of `archs` ("sm_90a"; NULL and 0: that of the result's target), a C entry
 *
 *   int NAME(void* const* inputs, void* const* outputs, void* workspace, void* stream);
 *   int64_t NAME_workspace_bytes(void);
 *   int64_t NAME_zeroed_bytes(void);
 *
 * that gives 0 or the CUresult of what failed, and the result itself, so that sundog.load finds
 * shapes and types.  Needs NVRTC or nvcc, and a C compiler. */
SUNDOG_API sundog_code sundog_result_save(const sundog_result* result, const char* path,
                                          const char* const* archs, size_t count,
                                          sundog_error** error);

/* What the machine has, as text lines "key: value" (compilers, GPU), for reports of faults. */
SUNDOG_API sundog_code sundog_machine(sundog_bytes** text, sundog_error** error);

#ifdef __cplusplus
}
#endif

#endif /* SUNDOG_H_ */
