/* From program text to a kernel, in C: optimizes a row norm, says what was found, and runs the kernels
 * in the emulator on the CPU.
 *
 *   cc example.c -I ROOT -L build/release -lsundog -lm && ./a.out
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/abi/sundog.h"

static const char kProgram[] =
    "program row_norm(n = 4, h = 64) {\n"
    "  input x: f32[n, h]\n"
    "  output y: f32[n, h] = x / sqrt(sum[h](x * x))\n"
    "}\n";

/* An OptimizeOptions by hand: field 1 (target) = "h200", field 3 (states) = 2000, field 10 (no_gpu). */
static const unsigned char kOptions[] = {0x0a, 4, 'h', '2', '0', '0', 0x18, 0xd0, 0x0f, 0x50, 1};

enum { kRows = 4, kColumns = 64 };

static void stop_on(sundog_code code, sundog_error* error) {
  if (code == SUNDOG_OK) return;
  fprintf(stderr, "%s:%d:%d: error: %s\n", sundog_error_file(error), sundog_error_line(error),
          sundog_error_column(error), sundog_error_message(error));
  if (*sundog_error_hint(error)) fprintf(stderr, "  hint: %s\n", sundog_error_hint(error));
  sundog_error_free(error);
  exit(1);
}

int main(void) {
  sundog_error* error = NULL;
  sundog_program* program = NULL;
  sundog_result* result = NULL;
  sundog_bytes* text = NULL;
  sundog_kernel* kernel = NULL;
  if (sundog_abi_version() != SUNDOG_ABI_VERSION) return 1;

  stop_on(sundog_program_parse(kProgram, strlen(kProgram), "row_norm.sd", NULL, NULL, 0, &program,
                               &error),
          error);
  stop_on(sundog_optimize(program, kOptions, sizeof kOptions, NULL, NULL, NULL, &result, &error),
          error);
  stop_on(sundog_result_text(result, SUNDOG_EXPLAIN, &text, &error), error);
  printf("%s", sundog_bytes_data(text));

  float x[kRows * kColumns], y[kRows * kColumns];
  for (int i = 0; i < kRows * kColumns; ++i) x[i] = (float)(i % 7 - 3);
  void* inputs[] = {x};
  void* outputs[] = {y};
  stop_on(sundog_kernel_new(result, SUNDOG_EMULATOR, &kernel, &error), error);
  stop_on(sundog_kernel_launch(kernel, inputs, outputs, NULL, NULL, &error), error);

  double worst = 0;
  for (int row = 0; row < kRows; ++row) {
    double squares = 0;
    for (int i = 0; i < kColumns; ++i) {
      squares += (double)x[row * kColumns + i] * x[row * kColumns + i];
    }
    for (int i = 0; i < kColumns; ++i) {
      const double wanted = x[row * kColumns + i] / sqrt(squares);
      worst = fmax(worst, fabs(y[row * kColumns + i] - wanted));
    }
  }
  printf("largest error: %.1e\n", worst);

  sundog_kernel_free(kernel);
  sundog_bytes_free(text);
  sundog_result_free(result);
  sundog_program_free(program);
  return worst < 1e-5 ? 0 : 1;
}
