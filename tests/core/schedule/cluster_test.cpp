// The addresses in a cluster: tests/codegen/emit_cluster_test.cpp.
#include "core/schedule/cluster.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace sundog {
namespace {

Device of_architecture(const std::string& arch) {
  Device device = *find_device("h200");
  device.arch = arch;
  return device;
}

TEST(Clusters, CameWithTheNinetiethArchitecture) {
  for (const char* arch : {"sm_90", "sm_90a", "sm_100a", "sm_120"}) {
    EXPECT_TRUE(has_clusters(of_architecture(arch))) << arch;
  }
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "gfx942", "sm_", ""}) {
    EXPECT_FALSE(has_clusters(of_architecture(arch))) << arch;
  }
}

TEST(Clusters, AreRefusedByNameWhereThereAreNone) {
  const Result<Program> program = parse_program(
      "program p(n = 8, h = 64) {\n  input X: f32[n, h]\n  output O: f32[n] = sum[h](X)\n}\n",
      "p.sd");
  ASSERT_TRUE(program.ok());
  for (const char* via : {"", " via last_block", " via cluster"}) {
    const Result<MuGraph> graph = parse_mugraph(
        std::string("ugraph g of p {\n  kernel part grid(n.o, h.s) warps(1) {\n"
                    "    split n = n.o * n.i(4)\n    split h = h.s(4) * h.i(16)\n"
                    "    s[n.i] = sum[h.i](X) : reg f32\n    store s -> t : f32[h.s, n]\n  }\n"
                    "  kernel join grid(n.o) warps(1)") +
            via +
            " {\n    split n = n.o * n.i(4)\n    o[n.i] = sum[h.s](t) : reg f32\n"
            "    store o -> O\n  }\n}\n",
        "p.mu", *program);
    ASSERT_TRUE(graph.ok()) << to_string(graph.error());
    EXPECT_TRUE(clusters_run_on(*find_device("h200"), *graph).ok());
    const Status older = clusters_run_on(*find_device("a100"), *graph);
    EXPECT_EQ(older.ok(), std::string(via) != " via cluster");
    if (older.ok()) continue;
    EXPECT_EQ(older.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(older.error().message.find("'join'"), std::string::npos) << older.error().message;
    EXPECT_NE(older.error().message.find("a100 is sm_80"), std::string::npos);
  }
}

}  // namespace
}  // namespace sundog
