// A kernel of bulk copies and products of warp groups, as it is emitted, is safe, and with one slip
// in it a fault is shown.
// NOLINT(sundog-mirror): verify/kernel_walk_async.cpp, through verify/smt_safety.h
#include <gtest/gtest.h>

#include "tests/sanitized.h"
#include "tests/verify/slip.h"
#include "verify/smt_safety.h"

namespace sundog::verify {
namespace {

// O[128, 64] = (Q[128, 64] K[512, 64]^T) V[512, 64], 64 rows a block: Q stays, tiles of K and V
// come through three stages, and the first product's result goes to the second one in registers.
constexpr const char* kKernel = R"(
extern "C" __global__ void __launch_bounds__(128, 2)
g_k0(const sd::f16* __restrict__ Q, const sd::f16* __restrict__ K, const sd::f16* __restrict__ V, float* __restrict__ O, const __grid_constant__ sd::TensorMap<sd::f16, 0, 128, sd::Dim<64, 1, 64>, sd::Dim<512, 64, 64>> ks_map, const __grid_constant__ sd::TensorMap<sd::f16, 0, 128, sd::Dim<64, 1, 64>, sd::Dim<512, 64, 64>> vs_map) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int q_o = block;
  unsigned char* const arena = sd::shared_arena();
  sd::f16* const qs = reinterpret_cast<sd::f16*>(arena + 49152);
  sd::f16* const ks = reinterpret_cast<sd::f16*>(arena + 0);
  sd::f16* const vs = reinterpret_cast<sd::f16*>(arena + 24576);
  uint64_t* const k_o_full = reinterpret_cast<uint64_t*>(arena + 57344);
  uint64_t* const k_o_empty = k_o_full + 3;
  if (tid == 0) {
    for (int i = 0; i < 3; ++i) {
      sd::mbarrier_init(k_o_full + i, 1);
      sd::mbarrier_init(k_o_empty + i, 4);
    }
    sd::mbarrier_init_fence();
    {
      for (int ahead = 0; ahead < 1; ++ahead) {
        if (ahead < 8) {
          const int k_o = ahead;
          sd::mbarrier_expect(k_o_full + ahead, 16384);
          sd::bulk_copy(ks + ahead * 4096, ks_map, k_o_full + ahead, 0, k_o * 64);
          sd::bulk_copy(vs + ahead * 4096, vs_map, k_o_full + ahead, 0, k_o * 64);
        }
      }
    }
  }
  sd::sync_threads();
  for (int i = 0; i < 4; ++i) {
    const int row = tid / 8 + i * 16, c = tid % 8 * 8;
    sd::cp_async<16>(qs + row * 64 + (c ^ (row & 7) * 8), Q + q_o * 4096 + row * 64 + c);
  }
  sd::cp_async_commit();
  float o[8][4];
  for (int i = 0; i < 32; ++i) o[i / 4][i % 4] = 0.0f;
  sd::cp_async_wait<0>();
  sd::fence_async_proxy();
  sd::sync_threads();
  {
    int k_o_stage = 0, k_o_phase = 0;
    int k_o_next = 1, k_o_next_phase = 1;
    for (int k_o = 0; k_o < 8; ++k_o) {
      if (tid == 0 && k_o + 1 < 8) {
        sd::mbarrier_wait(k_o_empty + k_o_next, k_o_next_phase);
        const int k_o_0 = k_o + 1;
        {
          const int k_o = k_o_0;
          sd::mbarrier_expect(k_o_full + k_o_next, 16384);
          sd::bulk_copy(ks + k_o_next * 4096, ks_map, k_o_full + k_o_next, 0, k_o * 64);
          sd::bulk_copy(vs + k_o_next * 4096, vs_map, k_o_full + k_o_next, 0, k_o * 64);
        }
      }
      sd::sync_warp();
      if (++k_o_next == 3) {
        k_o_next = 0;
        k_o_next_phase ^= 1;
      }
      sd::mbarrier_wait(k_o_full + k_o_stage, k_o_phase);
      float s[8][4];
      {
        const uint64_t qs_tile_1 = sd::matrix_tile<128>(qs, 8192);
        const uint64_t ks_tile_2 = sd::matrix_tile<128>(ks + k_o_stage * 4096, 8192);
        sd::warpgroup_fence();
        for (int step = 0; step < 4; ++step) {
          sd::warpgroup_mma<sd::f16, 64, false, false>(s, sd::matrix_tile_at(qs_tile_1, step * 32), sd::matrix_tile_at(ks_tile_2, step * 32), step > 0);
        }
        sd::warpgroup_commit();
      }
      sd::warpgroup_wait(s);
      sd::Vec<sd::f16, 2> p_[16];
      {
        for (int r5 = 0; r5 < 8; ++r5) {
          for (int r6 = 0; r6 < 2; ++r6) {
            float pair[2];
            for (int v = 0; v < 2; ++v) {
              pair[v] = s[r5][v + r6 * 2];
            }
            p_[r6 + r5 * 2] = sd::pack_vec<sd::f16>(pair[0], pair[1]);
          }
        }
      }
      {
        const uint64_t vs_tile_7 = sd::matrix_tile<128>(vs + k_o_stage * 4096, 8192);
        sd::warpgroup_fence();
        for (int step = 0; step < 4; ++step) {
          const uint32_t a[4] = {sd::word(p_[step * 4]), sd::word(p_[step * 4 + 1]), sd::word(p_[step * 4 + 2]), sd::word(p_[step * 4 + 3])};
          sd::warpgroup_mma<sd::f16, 64, true>(o, a, sd::matrix_tile_at(vs_tile_7, step * 2048), true);
        }
        sd::warpgroup_commit();
      }
      sd::warpgroup_wait(o);
      sd::sync_warp();
      if (lane == 0) sd::mbarrier_arrive(k_o_empty + k_o_stage);
      if (++k_o_stage == 3) {
        k_o_stage = 0;
        k_o_phase ^= 1;
      }
    }
  }
  {
    const int q_i_8 = lane / 4 + warp * 16;
    const int f_9 = lane % 4 * 2;
    for (int r10 = 0; r10 < 8; ++r10) {
      for (int r11 = 0; r11 < 2; ++r11) {
        sd::Vec<float, 2> vec[1];
        for (int v = 0; v < 2; ++v) {
          vec[0][v] = o[r10][v + r11 * 2];
        }
        sd::store_global(O + q_o * 4096 + q_i_8 * 64 + r11 * 512 + f_9 + r10 * 8, vec[0]);
      }
    }
  }
}
)";

EmittedKernel kernel(int64_t shared_bytes = 57344 + 48) {
  const int64_t keys = 512 * 64;
  return {"g_k0", 2, 128, shared_bytes, {128 * 64, keys, keys, 128 * 64, keys, keys}};
}

Safety check(const std::string& text, const EmittedKernel& emitted = kernel()) {
  return check_safety(text, std::span(&emitted, 1));
}

TEST(KernelWalkAsync, ARightKernelIsSafe) {
  const Safety safety = check(kKernel);
  EXPECT_TRUE(safety.safe()) << to_string(safety);
  EXPECT_GE(safety.bounds, 16);
  EXPECT_GE(safety.races, 10);
}

TEST(KernelWalkAsync, MapsAndBarriersStayInside) {
  EmittedKernel less = kernel();
  less.elements[4] -= 1;
  EXPECT_FALSE(check(kKernel, less).faults.empty());
  EXPECT_FALSE(check(kKernel, kernel(57344 + 40)).faults.empty());
}

// A thread may read global memory into its registers before it waits for a stage, and no more.
TEST(KernelWalkAsync, RegistersMayBeFilledBeforeTheWait) {
  const std::string wait = "sd::mbarrier_wait(k_o_full + k_o_stage, k_o_phase);";
  const auto with = [&](const std::string& first) {
    return check(with_slip(kKernel, {"", wait.c_str(), (first + "\n" + wait).c_str()}));
  };
  const std::string registers = "sd::Vec<sd::f16, 8> early[1];\n";
  EXPECT_TRUE(with(registers + "sd::load_global(early[0], Q + lane * 8);").safe())
      << to_string(with(registers + "sd::load_global(early[0], Q + lane * 8);"));
  EXPECT_FALSE(with(registers + "sd::load_shared(early[0], vs + lane * 8);").safe());
  EXPECT_FALSE(with("sd::sync_threads();").safe());
  EXPECT_FALSE(with("k_o_phase ^= 1;").safe());
  EXPECT_FALSE(with("k_o_stage = 0;").safe());
  EXPECT_FALSE(with("++k_o_next;").safe());
}

class AsyncSlips : public testing::TestWithParam<Slip> {};

TEST_P(AsyncSlips, AreFaults) {
  const Safety safety = check(with_slip(kKernel, GetParam()));
  EXPECT_FALSE(safety.safe());
  EXPECT_FALSE(safety.faults.empty()) << to_string(safety);
}

const Slip kSlips[] = {
    // waits
    {"NoWaitForBytes", "sd::mbarrier_wait(k_o_full + k_o_stage, k_o_phase);", ""},
    {"NoWaitForReaders", "sd::mbarrier_wait(k_o_empty + k_o_next, k_o_next_phase);", ""},
    {"WaitsForAnotherStage", "wait(k_o_full + k_o_stage", "wait(k_o_full + k_o_next"},
    {"WaitsForTheOtherBarrier", "wait(k_o_full", "wait(k_o_empty"},
    {"NoWaitForTheFirstProduct", "sd::warpgroup_wait(s);", ""},
    {"NoWaitForTheSecondProduct", "sd::warpgroup_wait(o);", ""},
    {"NoWaitForQ", "sd::cp_async_wait<0>();", ""},
    {"NoSyncBeforeTheLoop", "sd::fence_async_proxy();\n  sd::sync_threads();",
     "sd::fence_async_proxy();"},
    {"NoArrival", "if (lane == 0) sd::mbarrier_arrive(k_o_empty + k_o_stage);", ""},
    {"ArrivesForAnotherStage", "arrive(k_o_empty + k_o_stage)", "arrive(k_o_empty + k_o_next)"},
    {"ArrivesTooEarly", "sd::sync_warp();\n      if (lane == 0)", "if (lane == 0)"},
    {"EveryLaneArrives", "if (lane == 0)", "if (lane < 32)"},
    // phases
    {"FirstPhase", "k_o_phase = 0", "k_o_phase = 1"},
    {"PhaseOfTheCopies", "k_o_next_phase = 1", "k_o_next_phase = 0"},
    {"StageOfTheCopies", "k_o_next = 1", "k_o_next = 2"},
    {"PhaseStays", "k_o_phase ^= 1", "k_o_phase ^= 0"},
    {"PhaseOfTheCopiesStays", "        k_o_next_phase ^= 1;\n", ""},
    // bytes and arrivals
    {"FewerBytesBefore", "k_o_full + ahead, 16384", "k_o_full + ahead, 8192"},
    {"FewerBytes", "k_o_full + k_o_next, 16384", "k_o_full + k_o_next, 16383"},
    {"MoreBytes", "k_o_full + k_o_next, 16384", "k_o_full + k_o_next, 32768"},
    {"ACopyLeftOut",
     "sd::bulk_copy(vs + k_o_next * 4096, vs_map, k_o_full + k_o_next, 0, k_o * 64);", ""},
    {"CountsInElsewhere", "vs_map, k_o_full + k_o_next", "vs_map, k_o_empty + k_o_next"},
    {"TwoArrivals", "init(k_o_full + i, 1)", "init(k_o_full + i, 2)"},
    {"OneWarpTooFew", "init(k_o_empty + i, 4)", "init(k_o_empty + i, 3)"},
    {"NoFenceOfBarriers", "sd::mbarrier_init_fence();", ""},
    // stages
    {"TooFewBarriers", "i < 3", "i < 2"},
    {"TooFewStages", "if (++k_o_stage == 3)", "if (++k_o_stage == 2)"},
    {"TooFewStagesOfCopies", "if (++k_o_next == 3)", "if (++k_o_next == 2)"},
    {"TooFarAhead", "k_o + 1 < 8", "k_o + 3 < 8"},
    {"NoneBefore", "ahead < 1;", "ahead < 0;"},
    {"StagesOverlap", "vs + k_o_next * 4096", "vs + k_o_next * 4032"},
    {"StagesOverAnotherTile", "arena + 24576", "arena + 16384"},
    {"BarriersOverATile", "arena + 57344", "arena + 57336"},
    {"BarriersOverlap", "k_o_full + 3", "k_o_full + 2"},
    // indices
    {"OneTileTooMany", "k_o + 1 < 8", "k_o + 1 < 9"},
    {"OneTileTooFew", "k_o + 1 < 8", "k_o + 1 < 7"},
    {"AnotherTile", "k_o_0 = k_o + 1", "k_o_0 = k_o + 2"},
    {"AnotherFirstTile", "const int k_o = ahead;", "const int k_o = ahead + 1;"},
    {"ProductOfAnotherStage", "ks + k_o_stage * 4096", "ks + k_o_next * 4096"},
    {"ProductBeyondItsStage", "vs_tile_7, step * 2048", "vs_tile_7, step * 4096"},
    {"ProductOutside", "vs_tile_7, step * 2048", "vs_tile_7, step * 16384"},
    {"QsOverlaps", "arena + 49152", "arena + 47104"},
    {"StoresOverlap", "q_i_8 * 64 + r11 * 512", "q_i_8 * 64 + r11 * 448"},
    {"StoresOutside", "O + q_o * 4096", "O + q_o * 4097"},
    // registers and proxies
    {"NoFenceOfWrites", "sd::fence_async_proxy();", ""},
    {"FenceBehindTheBarrier", "sd::fence_async_proxy();\n  sd::sync_threads();",
     "sd::sync_threads();\n  sd::fence_async_proxy();"},
    {"NoFenceOfRegisters", "sd::warpgroup_fence();", ""},
    {"NotClosed", "sd::warpgroup_commit();", ""},
    // what not all threads do
    {"SomeWarpsSync", "sd::fence_async_proxy();\n  sd::sync_threads();",
     "sd::fence_async_proxy();\n  if (warp < 2) sd::sync_threads();"},
    {"SomeWarpsStartLater", "k_o = 0; k_o < 8;", "k_o = warp % 2; k_o < 8;"},
    {"ReadWhileItRuns", "sd::warpgroup_wait(o);", "o[0][0] *= 2.0f;\n      sd::warpgroup_wait(o);"},
};

INSTANTIATE_TEST_SUITE_P(Kernel, AsyncSlips, testing::ValuesIn(third_if_sanitized(kSlips)),
                         slip_name);

// The kernel with its loop over a band of tiles: neither the first nor the last is the same in all
// blocks.  As it is emitted, the bounds stand where the barriers are made and before the loop.
std::string bounds(int n) {
  const auto name = [&](int i) { return "bound_" + std::to_string(n + i); };
  const auto tile = [](const std::string& x) {
    return "(" + x + " >= 0 ? " + x + " / 64 : -((63 - " + x + ") / 64)) + 1;\n";
  };
  return "const int " + name(1) + " = q_o * 128 - 100;\nconst int " + name(2) + " = " +
         tile(name(1)) + "const int " + name(3) + " = " + name(2) + " > 0 ? " + name(2) +
         " : 0;\nconst int " + name(4) + " = q_o * 128 + 400;\nconst int " + name(5) + " = " +
         tile(name(4)) + "const int " + name(6) + " = " + name(5) + " < 8 ? " + name(5) + " : 8;\n";
}

std::string banded() {
  const std::string before = "{\n" + bounds(0) + "      for (int ahead";
  const std::string at_loop = "{\n" + bounds(6) + "    int k_o_stage";
  const Slip changes[] = {
      {"before", "{\n      for (int ahead", before.c_str()},
      {"guard", "if (ahead < 8)", "if (bound_3 + ahead < bound_6)"},
      {"first", "const int k_o = ahead;", "const int k_o = bound_3 + ahead;"},
      {"at_loop", "{\n    int k_o_stage", at_loop.c_str()},
      {"loop", "k_o = 0; k_o < 8;", "k_o = bound_9; k_o < bound_12;"},
      {"issue", "k_o + 1 < 8", "k_o + 1 < bound_12"},
  };
  std::string text = kKernel;
  for (const Slip& change : changes) text = with_slip(text, change);
  return text;
}

TEST(KernelWalkAsync, ALoopMayStartAndEndAnywhere) {
  const Safety safety = check(banded());
  EXPECT_TRUE(safety.safe()) << to_string(safety);
}

class AsyncBandSlips : public testing::TestWithParam<Slip> {};

TEST_P(AsyncBandSlips, AreFaults) {
  const Safety safety = check(with_slip(banded(), GetParam()));
  EXPECT_FALSE(safety.safe());
  EXPECT_FALSE(safety.faults.empty()) << to_string(safety);
}

const Slip kBandSlips[] = {
    {"FirstCopiesFromZero",
     "if (bound_3 + ahead < bound_6) {\n          const int k_o = bound_3 + ahead;",
     "if (ahead < bound_6) {\n          const int k_o = ahead;"},
    {"FirstCopiesOfOthers", "const int k_o = bound_3 + ahead;", "const int k_o = ahead;"},
    {"FirstCopiesFromTheBareBound",
     "if (bound_3 + ahead < bound_6) {\n          const int k_o = bound_3 + ahead;",
     "if (bound_2 + ahead < bound_6) {\n          const int k_o = bound_2 + ahead;"},
    {"FirstCopiesEndElsewhere", "bound_3 + ahead < bound_6", "bound_3 + ahead < 8"},
    {"FirstCopiesOfAnotherBand", "q_o * 128 - 100", "q_o * 128 - 36"},
    {"LoopFromZero", "k_o = bound_9;", "k_o = 0;"},
    {"LoopFromTheNext", "k_o = bound_9;", "k_o = bound_9 + 1;"},
    {"LoopToAnotherEnd", "k_o < bound_12;", "k_o < 8;"},
    {"CopiesToAnotherEnd", "k_o + 1 < bound_12", "k_o + 1 < 8"},
    {"AnotherStage", "k_o_stage = 0", "k_o_stage = 1"},
};

INSTANTIATE_TEST_SUITE_P(Kernel, AsyncBandSlips, testing::ValuesIn(third_if_sanitized(kBandSlips)),
                         slip_name);

}  // namespace
}  // namespace sundog::verify
