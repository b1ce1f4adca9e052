// A kernel in the style of emitted ones is safe, and no kernel with one slip in it is.
#include "verify/smt_safety.h"

#include <gtest/gtest.h>

#include "tests/sanitized.h"
#include "tests/verify/slip.h"
#include "verify/kernel_walk.h"

namespace sundog::verify {
namespace {

// Row sums of X[64, 512] by 4 blocks of 16 rows: a ring of three stages, four warps, and their
// parts joined through shared memory.
constexpr const char* kKernel = R"(
extern "C" __global__ void __launch_bounds__(128)
sum_k0(const float* __restrict__ X, float* __restrict__ Y) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int n_o = block;
  unsigned char* const arena = sd::shared_arena();
  float* const xs = reinterpret_cast<float*>(arena + 0);
  float* const scratch = reinterpret_cast<float*>(arena + 12288);
  float acc;
  acc = 0.0f;
  {
    const auto load_h_o = [&](int h_o, int h_o_stage) {
      for (int i = 0; i < 2; ++i) {
        const int row = tid / 16 + i * 8, c = tid % 16 * 4;
        sd::cp_async<16>(xs + row * 64 + (c ^ (row & 3) * 16) + h_o_stage * 1024, X + n_o * 8192 + row * 512 + h_o * 64 + c);
      }
    };
#pragma unroll
    for (int ahead = 0; ahead < 2; ++ahead) {
      if (ahead < 8) load_h_o(ahead, ahead);
      sd::cp_async_commit();
    }
    for (int h_o = 0; h_o < 8; ++h_o) {
      sd::cp_async_wait<1>();
      sd::sync_threads();
      if (h_o + 2 < 8) load_h_o(h_o + 2, (h_o + 2) % 3);
      sd::cp_async_commit();
      const int h_o_stage = h_o % 3;
      for (int j = 0; j < 8; ++j) {
        acc += xs[lane / 2 * 64 + lane % 2 * 8 + warp * 16 + j + h_o_stage * 1024];
      }
    }
  }
  if (lane % 2 == 0) {
    scratch[lane / 2 + warp * 16] = acc;
  }
  sd::sync_threads();
  if (tid < 16) {
    float total = 0.0f;
    for (int i = 0; i < 4; ++i) total += scratch[tid + i * 16];
    *(Y + n_o * 16 + tid) = total;
  }
}
)";

Safety check(const std::string& text) {
  const EmittedKernel kernel{"sum_k0", 4, 128, 12288 + 256, {64 * 512, 64}};
  return check_safety(text, std::span(&kernel, 1));
}

TEST(SmtSafety, ARightKernelIsSafe) {
  const Safety safety = check(kKernel);
  EXPECT_TRUE(safety.safe()) << to_string(safety);
  EXPECT_GE(safety.bounds, 6);
  EXPECT_GE(safety.races, 5);
}

// The kernel with something loaded before it stores its last partial sums.
Safety with_load(const std::string& load) {
  const std::string last = "scratch[lane / 2 + warp * 16] = acc;";
  return check(with_slip(kKernel, {"", last.c_str(), (load + last).c_str()}));
}

// A window reads no further than its tensor, if it is told where that ends.
TEST(SmtSafety, WindowsStayInTheirTensors) {
  const auto with = [](const std::string& arguments) {
    return with_load("sd::Window<float, 4> early[1];\nsd::load_window(early[0], " + arguments +
                     ");");
  };
  const Safety right = with("X, n_o * 8192 + tid * 64 + 127, 32768");
  EXPECT_TRUE(right.safe()) << to_string(right);
  EXPECT_FALSE(with("X, n_o * 8192 + tid * 64 + 128, 32768").safe());
  EXPECT_FALSE(with("X, n_o * 8192 + tid * 64, 32776").safe());
  EXPECT_FALSE(with("scratch, tid, 64").safe());
}

// A pair of bytes that becomes operands is read as one word, by lanes of even number here.  The
// scratch begins at 12,288.
TEST(SmtSafety, PairsOfBytesStayInTheArena) {
  const auto with = [](const std::string& index) {
    return with_load(
        "int8_t* const bytes = reinterpret_cast<int8_t*>(arena + 12032);\nuint32_t pair[1];\n"
        "pair[0] = sd::widened_pair<sd::f16>(bytes + " +
        index + ");");
  };
  const Safety right = with("tid * 2 + 2");
  EXPECT_TRUE(right.safe()) << to_string(right);
  EXPECT_FALSE(with("tid * 2 + 3").safe()) << "the last byte is written as scratch";
  EXPECT_FALSE(with("tid * 2 + 259").safe()) << "beyond the arena";
}

// A load that may be skipped reads where its test holds.  X has 32,768 elements; threads from 32 on
// would read beyond them in the last block.
TEST(SmtSafety, PredicatedLoadsStayInTheirTensors) {
  const auto with = [](const std::string& test) {
    return with_load(
        "sd::Vec<float, 4> early[1];\nsd::load_stream(early[0], X + n_o * 8192 + tid * 256" + test +
        ");");
  };
  const Safety right = with(", tid < 32");
  EXPECT_TRUE(right.safe()) << to_string(right);
  EXPECT_TRUE(with(", n_o * 8192 + tid * 256 < 32768 && tid >= 0").safe());
  EXPECT_FALSE(with(", tid < 33").safe());
  EXPECT_FALSE(with("").safe());
}

// So does a copy, which fills with zeros all the same: rows from 8 on are beyond the tensor here.
TEST(SmtSafety, PredicatedCopiesStayInTheirTensors) {
  const auto with = [](const std::string& test) {
    return check(
        with_slip(kKernel, {"", "X + n_o * 8192 + row * 512 + h_o * 64 + c);",
                            ("X + n_o * 8192 + row * 1024 + h_o * 64 + c" + test + ");").c_str()}));
  };
  const Safety right = with(", row < 8");
  EXPECT_TRUE(right.safe()) << to_string(right);
  EXPECT_FALSE(with(", row < 9").safe());
  EXPECT_FALSE(with("").safe());
}

class Slips : public testing::TestWithParam<Slip> {};

TEST_P(Slips, AreNotSafe) {
  const Safety safety = check(with_slip(kKernel, GetParam()));
  EXPECT_FALSE(safety.safe());
  EXPECT_FALSE(safety.faults.empty() && safety.undecided.empty());
}

const Slip kSlips[] = {
    {"NoBarrierInTheRing", "sd::sync_threads();\n      if", "if"},
    {"NoBarrierBeforeTheJoin", "  sd::sync_threads();\n  if (tid < 16)", "  if (tid < 16)"},
    {"TooFewStages", "(h_o + 2) % 3", "(h_o + 2) % 2"},
    {"WrongStageRead", "const int h_o_stage = h_o % 3", "const int h_o_stage = (h_o + 1) % 3"},
    {"WaitsForTooLittle", "sd::cp_async_wait<1>", "sd::cp_async_wait<2>"},
    {"NoWait", "sd::cp_async_wait<1>();\n", ""},
    {"NoCommit", "sd::cp_async_commit();\n      const", "const"},
    {"ACopyTooFar", "if (h_o + 2 < 8)", "if (h_o + 2 < 9)"},
    {"ARowTooMany", "tid / 16 + i * 8", "tid / 16 + i * 9"},
    {"OverlappingRows", "row * 64 + (c ^", "row * 60 + (c ^"},
    {"OverlappingStages", "h_o_stage * 1024, X", "h_o_stage * 960, X"},
    {"OffByOne", "X + n_o * 8192", "X + 4 + n_o * 8192"},
    {"BlocksOverlap", "Y + n_o * 16 + tid", "Y + n_o * 15 + tid"},
    {"EveryThreadStores", "if (tid < 16)", "if (tid < 32)"},
    {"PartsOverlap", "scratch[lane / 2 + warp * 16] =", "scratch[lane / 2 + warp * 8] ="},
    {"EveryLaneWrites", "if (lane % 2 == 0)", "if (lane % 2 < 2)"},
    {"ScratchOverTheRing", "arena + 12288", "arena + 8192"},
    {"ScratchOutside", "arena + 12288", "arena + 12304"},
    {"AMissingArgument", "load_h_o(ahead, ahead)", "load_h_o(ahead)"},
    {"AnUnknownPointer", "acc = 0.0f;", "acc = sd::strange(xs);"},
    // what not all threads, or not all blocks, do
    {"SomeThreadsSync", "  sd::sync_threads();\n  if (tid < 16)",
     "  if (warp < 2) sd::sync_threads();\n  if (tid < 16)"},
    {"SomeThreadsStartLater", "h_o = 0; h_o < 8;", "h_o = lane % 2; h_o < 8;"},
    {"SomeThreadsRunTheLoop", "for (int h_o = 0;", "if (warp < 3) for (int h_o = 0;"},
    {"SomeBlocksHaveFirstCopies", "for (int ahead = 0; ahead < 2; ++ahead) {",
     "if (n_o > 0) for (int ahead = 0; ahead < 2; ++ahead) {"},
    {"OnlyTheFirstIsCopiedBefore", "for (int ahead = 0; ahead < 2; ++ahead) {",
     "for (int ahead = 0; ahead < 1; ++ahead) {"},
};

INSTANTIATE_TEST_SUITE_P(Kernel, Slips, testing::ValuesIn(third_if_sanitized(kSlips)), slip_name);

// The bounds of a band of tiles about the block's own, as loops that a mask trims have them.
constexpr const char* kBand = R"(
    const int bound_1 = n_o * 128 - 200;
    const int bound_2 = (bound_1 >= 0 ? bound_1 / 64 : -((63 - bound_1) / 64)) + 1;
    const int bound_3 = bound_2 > 0 ? bound_2 : 0;
    const int bound_4 = n_o * 128 + 190;
    const int bound_5 = (bound_4 >= 0 ? bound_4 / 64 : -((63 - bound_4) / 64)) + 1;
    const int bound_6 = bound_5 < 8 ? bound_5 : 8;
)";

// The kernel with its loop over such a band: neither the first tile nor the last is the same in all
// blocks.
std::string banded() {
  const std::string head = std::string("{") + kBand + "    const auto load_h_o";
  std::string text = with_slip(kKernel, {"bounds", "{\n    const auto load_h_o", head.c_str()});
  text = with_slip(text, {"first", "if (ahead < 8) load_h_o(ahead, ahead)",
                          "if (bound_3 + ahead < bound_6) load_h_o(bound_3 + ahead, ahead)"});
  text = with_slip(text, {"loop", "h_o = 0; h_o < 8;", "h_o = bound_3; h_o < bound_6;"});
  text = with_slip(text, {"issue", "if (h_o + 2 < 8) load_h_o(h_o + 2, (h_o + 2) % 3)",
                          "if (h_o + 2 < bound_6) load_h_o(h_o + 2, (h_o - bound_3 + 2) % 3)"});
  return with_slip(text, {"stage", "= h_o % 3", "= (h_o - bound_3) % 3"});
}

TEST(SmtSafety, ALoopMayStartAndEndAnywhere) {
  const Safety safety = check(banded());
  EXPECT_TRUE(safety.safe()) << to_string(safety);
}

class BandSlips : public testing::TestWithParam<Slip> {};

TEST_P(BandSlips, AreFaults) {
  const Safety safety = check(with_slip(banded(), GetParam()));
  EXPECT_FALSE(safety.safe());
  EXPECT_FALSE(safety.faults.empty()) << to_string(safety);
}

const Slip kBandSlips[] = {
    {"FirstCopiesFromZero", "if (bound_3 + ahead < bound_6) load_h_o(bound_3 + ahead, ahead)",
     "if (ahead < bound_6) load_h_o(ahead, ahead)"},
    {"FirstCopiesOfOthers", "load_h_o(bound_3 + ahead, ahead)", "load_h_o(ahead, ahead)"},
    {"FirstCopiesFromTheBareBound",
     "if (bound_3 + ahead < bound_6) load_h_o(bound_3 + ahead, ahead)",
     "if (bound_2 + ahead < bound_6) load_h_o(bound_2 + ahead, ahead)"},
    {"EverySecondFirstCopy", "if (bound_3 + ahead < bound_6) load_h_o(bound_3 + ahead, ahead)",
     "if (bound_3 + ahead * 2 < bound_6) load_h_o(bound_3 + ahead * 2, ahead)"},
    {"FirstCopiesEndElsewhere", "if (bound_3 + ahead < bound_6)", "if (bound_3 + ahead < bound_5)"},
    {"LoopFromZero", "h_o = bound_3;", "h_o = 0;"},
    {"LoopFromTheNext", "h_o = bound_3;", "h_o = bound_3 + 1;"},
    {"LoopFromTheBareBound", "h_o = bound_3;", "h_o = bound_2;"},
    {"LoopToTheBareBound", "h_o < bound_6;", "h_o < bound_5;"},
    {"StageOfCopiesFromZero", "(h_o - bound_3 + 2) % 3", "(h_o + 2) % 3"},
    {"StageReadFromZero", "(h_o - bound_3) % 3;", "h_o % 3;"},
    {"CopiesOfAnotherTile", "load_h_o(h_o + 2,", "load_h_o(h_o + 1,"},
};

INSTANTIATE_TEST_SUITE_P(Kernel, BandSlips, testing::ValuesIn(third_if_sanitized(kBandSlips)),
                         slip_name);

// Of an empty tensor nothing may be read, and a read behind what never holds is none.
TEST(SmtSafety, WhatNeverHoldsIsUnderstood) {
  const auto safety = [](const std::string& condition) {
    const EmittedKernel kernel{"k", 1, 32, 0, {0, 1}};
    return check_safety(
        "extern \"C\" __global__ void __launch_bounds__(32)\n"
        "k(const float* __restrict__ X, float* __restrict__ Y) {\n"
        "  const int tid = static_cast<int>(threadIdx.x);\n"
        "  const float t0 = " +
            condition +
            " ? *(X) : 0.0f;\n"
            "  if (tid == 0) *(Y) = t0;\n}\n",
        std::span(&kernel, 1));
  };
  EXPECT_TRUE(safety("0 < 0 && false").safe()) << to_string(safety("0 < 0 && false"));
  EXPECT_TRUE(safety("false").safe());
  EXPECT_FALSE(safety("true").safe());
  EXPECT_FALSE(safety("0 < 1").safe());
}

TEST(SmtSafety, OtherKernelsAreUndecided) {
  EXPECT_FALSE(check("").safe());
  EXPECT_FALSE(check("extern \"C\" __global__ void k(float* x) { ").safe());
  EXPECT_FALSE(check("extern \"C\" __global__ void k(float* x) { }").safe());
}

}  // namespace
}  // namespace sundog::verify
