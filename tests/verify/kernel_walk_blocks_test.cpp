// A kernel whose last blocks join the parts of their groups is safe, and with one slip in it a
// fault is shown. NOLINT(sundog-mirror): verify/kernel_walk_blocks.cpp, through verify/smt_safety.h
#include <gtest/gtest.h>

#include "tests/verify/slip.h"
#include "verify/smt_safety.h"

namespace sundog::verify {
namespace {

// O[8, 48] = X[8, 64] W[64, 48] + B[8, 48] by 3 x 2 blocks, each of half a sum; the last of two
// adds.
constexpr const char* kKernel = R"(
extern "C" __global__ void __launch_bounds__(64)
g_part(const sd::f16* __restrict__ X, const sd::f16* __restrict__ W, const sd::f16* __restrict__ B, sd::f16* __restrict__ O, float* t, uint32_t* __restrict__ arrivals) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int d_o = block / 2;
  [[maybe_unused]] const int h_s = block % 2;
  unsigned char* const arena = sd::shared_arena();
  sd::f16* const xs = reinterpret_cast<sd::f16*>(arena + 1024);
  sd::f16* const ws = reinterpret_cast<sd::f16*>(arena + 0);
  for (int i = 0; i < 1; ++i) {
    const int row = tid / 4 + i * 16, c = tid % 4 * 8;
    if (row < 8) {
      sd::cp_async<16>(xs + row * 32 + c, X + row * 64 + h_s * 32 + c);
    }
  }
  sd::cp_async_commit();
  for (int i = 0; i < 1; ++i) {
    const int row = tid / 2 + i * 32, c = tid % 2 * 8;
    sd::cp_async<16>(ws + row * 16 + c, W + h_s * 1536 + row * 48 + d_o * 16 + c);
  }
  sd::cp_async_commit();
  sd::cp_async_wait<0>();
  sd::sync_threads();
  float acc[8];
  {
    for (int i = 0; i < 8; ++i) acc[i] = 0.0f;
    const int n_0 = lane / 8 + warp * 4;
    const int h_i_1 = lane / 2 % 4;
    const int d_i_2 = lane % 2 * 8;
    for (int r3 = 0; r3 < 8; ++r3) {
      sd::Vec<sd::f16, 8> in_4[1];
      sd::load_shared(in_4[0], ws + h_i_1 * 16 + r3 * 64 + d_i_2);
      for (int v = 0; v < 8; ++v) {
        acc[v] += sd::to_float(xs[n_0 * 32 + h_i_1 + r3 * 4]) * sd::to_float(in_4[0][v]);
      }
    }
    for (int i = 0; i < 8; ++i) acc[i] = sd::lane_sum<6>(acc[i]);
  }
  {
    const int n_5 = lane / 8 + warp * 4;
    const int d_i_6 = lane % 2 * 8;
    if (lane / 2 % 4 == 0) {
      sd::Vec<float, 4> vec[2];
      for (int v = 0; v < 8; ++v) {
        vec[v / 4][v % 4] = acc[v];
      }
      sd::store_global(t + n_5 * 48 + h_s * 384 + d_o * 16 + d_i_6, vec[0]);
      sd::store_global(t + n_5 * 48 + h_s * 384 + d_o * 16 + d_i_6 + 4, vec[1]);
    }
  }
  sd::sync_threads();
  bool last = false;
  if (tid == 0) {
    sd::fence_device();
    last = sd::atomic_increment(arrivals + d_o, 1) == 1;
    sd::fence_device();
  }
  if (sd::sync_threads_any(last)) {
    const int block = d_o;
    [[maybe_unused]] const int d_o = block;
    unsigned char* const arena = sd::shared_arena();
    sd::f16* const b_ = reinterpret_cast<sd::f16*>(arena + 0);
    for (int i = 0; i < 1; ++i) {
      const int row = tid / 2 + i * 32, c = tid % 2 * 8;
      if (row < 8) {
        sd::cp_async<16>(b_ + row * 16 + c, B + row * 48 + d_o * 16 + c);
      }
    }
    sd::cp_async_commit();
    float s[4];
    {
      for (int i = 0; i < 4; ++i) s[i] = 0.0f;
      const int n_0 = lane / 8 + warp * 4;
      const int d_i_1 = lane % 4 * 4;
      const int h_s_2 = lane / 4 % 2;
      sd::Vec<float, 4> in_3[1];
      sd::load_global(in_3[0], t + n_0 * 48 + d_o * 16 + d_i_1 + h_s_2 * 384);
      for (int v = 0; v < 4; ++v) {
        s[v] += sd::to_float(in_3[0][v]);
      }
      for (int i = 0; i < 4; ++i) s[i] = sd::lane_sum<4>(s[i]);
    }
    sd::cp_async_wait<0>();
    sd::sync_threads();
    float o[4];
    {
      const int n_4 = lane / 8 + warp * 4;
      const int d_i_5 = lane % 4 * 4;
      sd::Vec<sd::f16, 4> in_6[1];
      sd::load_shared(in_6[0], b_ + n_4 * 16 + d_i_5);
      for (int v = 0; v < 4; ++v) {
        o[v] = s[v] + sd::to_float(in_6[0][v]);
      }
    }
    {
      const int n_7 = lane / 8 + warp * 4;
      const int d_i_8 = lane % 4 * 4;
      if (lane / 4 % 2 == 0) {
        sd::Vec<sd::f16, 4> vec[1];
        for (int v = 0; v < 4; ++v) {
          vec[0][v] = sd::from_float<sd::f16>(o[v]);
        }
        sd::store_global(O + n_7 * 48 + d_o * 16 + d_i_8, vec[0]);
      }
    }
  }
})";

Safety check(const std::string& text) {
  const EmittedKernel kernel{"g_part", 6, 64, 4096, {512, 64 * 48, 384, 384, 2 * 384, 3}};
  return check_safety(text, std::span(&kernel, 1));
}

TEST(KernelWalkBlocks, ARightKernelIsSafe) {
  const Safety safety = check(kKernel);
  EXPECT_TRUE(safety.safe()) << to_string(safety);
}

class BlockSlips : public testing::TestWithParam<Slip> {};

TEST_P(BlockSlips, AreFaults) {
  const Safety safety = check(with_slip(kKernel, GetParam()));
  EXPECT_FALSE(safety.safe());
  EXPECT_FALSE(safety.faults.empty()) << to_string(safety);
}

const Slip kSlips[] = {
    {"NoBarrierBehindTheStores", "sd::sync_threads();\n  bool last", "bool last"},
    {"NotPublished", "sd::fence_device();\n    last", "last"},
    {"TheFirstGoesOn", "d_o, 1) == 1", "d_o, 1) == 0"},
    {"GroupsOfThree", "arrivals + d_o, 1) == 1", "arrivals + d_o, 2) == 2"},
    {"AnotherCounter", "arrivals + d_o", "arrivals + d_o + 1"},
    {"GroupsByAnotherIndex", "arrivals + d_o", "arrivals + h_s"},
    {"ReadsAnotherGroup", "t + n_0 * 48 + d_o * 16 + d_i_1", "t + n_0 * 48 + d_o * 15 + d_i_1"},
};

INSTANTIATE_TEST_SUITE_P(Kernel, BlockSlips, testing::ValuesIn(kSlips), slip_name);

// --- clusters

// The sum over h of X[8, 128] W[128, 40] by 3 clusters of 4 blocks, each of a quarter of it: the
// blocks keep their parts, and each adds four of the 16 columns.
constexpr const char* kCluster = R"(
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(64)
g_part(const float* __restrict__ X, float* __restrict__ O) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int d_o = block / 4;
  [[maybe_unused]] const int h_s = block % 4;
  unsigned char* const arena = sd::shared_arena();
  float* const xs = reinterpret_cast<float*>(arena + 0);
  float* const t = reinterpret_cast<float*>(arena + 1024);
  {
    sd::Vec<float, 2> vec[1];
    for (int v = 0; v < 2; ++v) {
      vec[0][v] = X[h_s * 128 + tid * 2 + v];
    }
    sd::store_shared(t + tid * 2, vec[0]);
  }
  sd::cluster_sync();
  if (h_s < 4) {
    const int block = (d_o) * 4 + h_s;
    [[maybe_unused]] const int d_o = block / 4;
    [[maybe_unused]] const int d_c = block % 4;
    float s[2];
    {
      for (int i = 0; i < 2; ++i) s[i] = 0.0f;
      const int n_0 = lane / 8 + warp * 4;
      const int d_i_1 = lane % 2 * 2;
      const int h_s_2 = lane / 2 % 4;
      sd::Vec<float, 2> in_3[1];
      in_3[0] = {};
      if (d_o * 16 + d_c * 4 + d_i_1 < 40)
          sd::load_cluster(in_3[0], t + n_0 * 16 + d_c * 4 + d_i_1, h_s_2);
      for (int v = 0; v < 2; ++v) {
        s[v] += sd::to_float(in_3[0][v]) + sd::read_cluster(t + n_0 * 16 + d_i_1 + v, h_s_2);
      }
      xs[tid] = s[0];
    }
    {
      const int n_4 = lane / 8 + warp * 4;
      const int d_i_5 = lane % 2 * 2;
      if (lane / 2 % 4 == 0 && d_o * 16 + d_c * 4 + d_i_5 < 40) {
        O[n_4 * 40 + d_o * 16 + d_c * 4 + d_i_5] = s[0];
      }
    }
  }
  sd::cluster_sync();
})";

Safety check_cluster(const std::string& text, int64_t cluster = 4) {
  const EmittedKernel kernel{"g_part", 12, 64, 1024 + 512, {512, 320}, cluster};
  return check_safety(text, std::span(&kernel, 1));
}

TEST(KernelWalkClusters, ARightKernelIsSafe) {
  const Safety safety = check_cluster(kCluster);
  EXPECT_TRUE(safety.safe()) << to_string(safety);
  EXPECT_FALSE(check_cluster(kCluster, 2).safe());
  EXPECT_FALSE(check_cluster(kCluster, 5).safe());
}

class ClusterSlips : public testing::TestWithParam<Slip> {};

TEST_P(ClusterSlips, AreFaults) {
  const Safety safety = check_cluster(with_slip(kCluster, GetParam()));
  EXPECT_FALSE(safety.safe());
  EXPECT_FALSE(safety.faults.empty()) << to_string(safety);
}

const Slip kClusterSlips[] = {
    {"NoBarrierInFront", "sd::cluster_sync();\n  if", "sd::sync_threads();\n  if"},
    {"NoBarrierBehind", "  sd::cluster_sync();\n}", "  sd::sync_threads();\n}"},
    {"OnlySomeBlocksCome", "  }\n  sd::cluster_sync();\n}", "  sd::cluster_sync();\n  }\n}"},
    {"ABlockThatIsNone", "d_c * 4 + d_i_1, h_s_2);", "d_c * 4 + d_i_1, h_s_2 + 1);"},
    {"BeyondTheArena", "t + n_0 * 16 + d_c", "t + n_0 * 24 + d_c"},
    {"WrittenWhileOthersRead", "xs[tid] = s[0];", "xs[tid + 200] = s[0];"},
    {"NoTwoBlocksStoreThere", "const int d_c = block % 4", "const int d_c = block % 2"},
};

INSTANTIATE_TEST_SUITE_P(Kernel, ClusterSlips, testing::ValuesIn(kClusterSlips), slip_name);

}  // namespace
}  // namespace sundog::verify
