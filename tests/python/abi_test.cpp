// The C ABI through its header alone, as any language sees it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "python/abi/sundog.h"

namespace {

constexpr char kProgram[] = R"(program scaled(n = 8, h = 32) {
  input x: f32[n, h]
  input g: f32[h]
  output y: f32[n, h] = x * g / (1 + sum[h](x * x))
})";
// An OptimizeOptions: target "h200", states 2000, no_check, no_gpu.
constexpr unsigned char kOptions[] = {0x0a, 4,    'h',  '2', '0',  '0', 0x18,
                                      0xd0, 0x0f, 0x48, 1,   0x50, 1};

struct Failure {
  sundog_error* error = nullptr;
  Failure() = default;
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;
  ~Failure() { sundog_error_free(error); }
  std::string message() const { return error == nullptr ? "" : sundog_error_message(error); }
};

sundog_program* parsed(const std::string& text = kProgram) {
  Failure failure;
  sundog_program* program = nullptr;
  EXPECT_EQ(sundog_program_parse(text.data(), text.size(), "scaled.sd", nullptr, nullptr, 0,
                                 &program, &failure.error),
            SUNDOG_OK)
      << failure.message();
  return program;
}

sundog_result* optimized(const sundog_program* program) {
  Failure failure;
  sundog_result* result = nullptr;
  EXPECT_EQ(sundog_optimize(program, kOptions, sizeof kOptions, nullptr, nullptr, nullptr, &result,
                            &failure.error),
            SUNDOG_OK)
      << failure.message();
  return result;
}

std::string taken(sundog_bytes* bytes) {
  std::string text(sundog_bytes_data(bytes), sundog_bytes_size(bytes));
  sundog_bytes_free(bytes);
  return text;
}

TEST(Abi, ErrorsCarryCodePlaceAndHint) {
  Failure failure;
  sundog_program* program = nullptr;
  const std::string text = "program p(n = 4) {\n  input x: f32[n]\n  output y: f32[n] = xx\n}";
  EXPECT_EQ(sundog_program_parse(text.data(), text.size(), "p.sd", nullptr, nullptr, 0, &program,
                                 &failure.error),
            SUNDOG_BAD_INPUT);
  EXPECT_EQ(program, nullptr);
  ASSERT_NE(failure.error, nullptr);
  EXPECT_EQ(sundog_error_code(failure.error), SUNDOG_BAD_INPUT);
  EXPECT_STREQ(sundog_error_file(failure.error), "p.sd");
  EXPECT_EQ(sundog_error_line(failure.error), 3);
  EXPECT_GT(sundog_error_column(failure.error), 10);
  EXPECT_NE(failure.message().find("xx"), std::string::npos);
}

TEST(Abi, WrongArgumentsAreErrorsNotCrashes) {
  sundog_program* program = nullptr;
  EXPECT_EQ(sundog_program_parse(nullptr, 0, nullptr, nullptr, nullptr, 0, &program, nullptr),
            SUNDOG_BAD_INPUT);
  EXPECT_EQ(sundog_program_from_message("junk", 4, &program, nullptr), SUNDOG_BAD_INPUT);
  program = parsed();
  sundog_result* result = nullptr;
  Failure failure;
  EXPECT_EQ(
      sundog_optimize(program, "\xff\xff", 2, nullptr, nullptr, nullptr, &result, &failure.error),
      SUNDOG_BAD_INPUT);
  EXPECT_NE(failure.message().find("OptimizeOptions"), std::string::npos);
  const char unknown_target[] = {0x0a, 4, 'h', '9', '9', '9'};
  EXPECT_EQ(sundog_optimize(program, unknown_target, sizeof unknown_target, nullptr, nullptr,
                            nullptr, &result, nullptr),
            SUNDOG_BAD_INPUT);
  EXPECT_EQ(sundog_result_from_message("x", 1, &result, nullptr), SUNDOG_BAD_INPUT);
  EXPECT_EQ(result, nullptr);
  sundog_program_free(program);
  sundog_program_free(nullptr);
  sundog_result_free(nullptr);
  sundog_kernel_free(nullptr);
  sundog_error_free(nullptr);
  sundog_bytes_free(nullptr);
}

TEST(Abi, ParametersAreReplacedAndProgramsGoThroughMessages) {
  const char* names[] = {"h"};
  const int64_t values[] = {48};
  sundog_program *program = nullptr, *copy = nullptr;
  ASSERT_EQ(sundog_program_parse(kProgram, std::strlen(kProgram), "scaled.sd", names, values, 1,
                                 &program, nullptr),
            SUNDOG_OK);
  sundog_bytes *message = nullptr, *text = nullptr, *again = nullptr;
  ASSERT_EQ(sundog_program_message(program, &message, nullptr), SUNDOG_OK);
  ASSERT_EQ(sundog_program_from_message(sundog_bytes_data(message), sundog_bytes_size(message),
                                        &copy, nullptr),
            SUNDOG_OK);
  ASSERT_EQ(sundog_program_text(program, &text, nullptr), SUNDOG_OK);
  ASSERT_EQ(sundog_program_text(copy, &again, nullptr), SUNDOG_OK);
  const std::string shown = taken(text);
  EXPECT_NE(shown.find("h = 48"), std::string::npos) << shown;
  EXPECT_EQ(shown, taken(again));
  sundog_bytes_free(message);
  sundog_program_free(program);
  sundog_program_free(copy);
}

TEST(Abi, APackedLaunchIsTheSameLaunch) {
  sundog_program* program = parsed("program p(n = 3) { input x: f32[n] output y: f32[n] = 2 * x }");
  sundog_result* result = optimized(program);
  sundog_kernel* kernel = nullptr;
  Failure failure;
  ASSERT_EQ(sundog_kernel_new(result, SUNDOG_EMULATOR, &kernel, &failure.error), SUNDOG_OK)
      << failure.message();
  alignas(16) float x[] = {1, -2, 3}, y[3] = {}, z[3] = {};
  void *inputs[] = {x}, *outputs[] = {y};
  ASSERT_EQ(sundog_kernel_launch(kernel, inputs, outputs, nullptr, nullptr, &failure.error),
            SUNDOG_OK)
      << failure.message();
  void* call[] = {kernel, nullptr, nullptr, &failure.error, x, z};
  ASSERT_EQ(sundog_kernel_launch_packed(call), SUNDOG_OK) << failure.message();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(y[i], 2 * x[i]);
    EXPECT_EQ(z[i], 2 * x[i]);
  }
  call[0] = nullptr;
  EXPECT_EQ(sundog_kernel_launch_packed(call), SUNDOG_BAD_INPUT);
  sundog_kernel_free(kernel);
  sundog_result_free(result);
  sundog_program_free(program);
}

TEST(Abi, ModelsAreReadByTheirPath) {
  sundog_program* program = nullptr;
  Failure failure;
  EXPECT_EQ(sundog_program_load_onnx("/no/such/model.onnx", nullptr, nullptr, 0, &program,
                                     &failure.error),
            SUNDOG_IO);
  EXPECT_NE(failure.message().find("/no/such/model.onnx"), std::string::npos);
  EXPECT_EQ(sundog_program_load_onnx(nullptr, nullptr, nullptr, 0, &program, nullptr),
            SUNDOG_BAD_INPUT);
}

TEST(Abi, EvaluatesInFloat64) {
  sundog_program* program = parsed("program p(n = 3) { input x: f16[n] output y: f16[n] = 2 * x }");
  const double x[] = {1, 2.0000001, 3};
  double y[3] = {};
  const double* inputs[] = {x};
  double* outputs[] = {y};
  ASSERT_EQ(sundog_program_evaluate(program, inputs, outputs, 0, nullptr), SUNDOG_OK);
  EXPECT_EQ(y[1], 4.0000002) << "nothing is rounded to the output's type";
  sundog_program_free(program);
}

TEST(Abi, ABoundIsOfTheTarget) {
  Failure failure;
  sundog_program* program = parsed();
  double fast = 0, slow = 0;
  ASSERT_EQ(sundog_program_bound(program, "h200", &fast, &failure.error), SUNDOG_OK)
      << failure.message();
  ASSERT_EQ(sundog_program_bound(program, "a100", &slow, &failure.error), SUNDOG_OK);
  EXPECT_GT(fast, 0);
  EXPECT_GT(slow, fast) << "its launches take longer";
  EXPECT_EQ(sundog_program_bound(program, "abacus", &fast, &failure.error), SUNDOG_BAD_INPUT);
  sundog_program_free(program);
}

TEST(Abi, ThreadsDoNotDisturbOneAnother) {
  sundog_program* program = parsed();
  std::vector<std::string> texts(3);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&text, program] {
      sundog_result* result = optimized(program);
      sundog_bytes* message = nullptr;
      ASSERT_EQ(sundog_result_text(result, SUNDOG_CUDA, &message, nullptr), SUNDOG_OK);
      text = taken(message);
      sundog_result_free(result);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(texts[0].empty());
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
  sundog_program_free(program);
}

TEST(Abi, AStopThatIsSetEndsTheSearch) {
  sundog_program* program = parsed();
  sundog_stop* stop = sundog_stop_new();
  sundog_stop_set(stop);
  sundog_result* result = nullptr;
  Failure failure;
  const char hour[] = {0x50, 1};  // no_gpu; the budget is the default minute
  ASSERT_EQ(
      sundog_optimize(program, hour, sizeof hour, nullptr, nullptr, stop, &result, &failure.error),
      SUNDOG_OK)
      << failure.message();
  sundog_bytes* text = nullptr;
  ASSERT_EQ(sundog_result_text(result, SUNDOG_EXPLAIN, &text, nullptr), SUNDOG_OK);
  EXPECT_NE(taken(text).find("interrupted"), std::string::npos);
  sundog_stop_free(stop);
  sundog_result_free(result);
  sundog_program_free(program);
}

TEST(Abi, VerifiesAResultOfItsOwn) {
  sundog_program* program = parsed();
  sundog_result* result = optimized(program);
  sundog_bytes *graph = nullptr, *verdict = nullptr;
  ASSERT_EQ(sundog_result_text(result, SUNDOG_MUGRAPH, &graph, nullptr), SUNDOG_OK);
  const std::string text = taken(graph);
  ASSERT_EQ(sundog_verify(program, text.data(), text.size(), nullptr, 0, &verdict, nullptr),
            SUNDOG_OK);
  EXPECT_EQ(taken(verdict).substr(0, 2), std::string("\x08\x01")) << "answer: EQUIVALENT";
  sundog_result_free(result);
  sundog_program_free(program);
}

}  // namespace
