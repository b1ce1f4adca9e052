#include "cli/graph_view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/text.h"

namespace sundog::cli {
namespace {

class GraphView : public testing::Test {
 protected:
  GraphView() {
    Result<Program> program = parse_program(R"(program sums(n = 64, k = 96) {
      input x: f16[n, k]
      output y: f32[n] = sum[k](x * x)
    })",
                                            "sums.sd");
    SUNDOG_CHECK(program.ok());
    program_ = std::move(*program);
    Result<MuGraph> graph = parse_mugraph(R"(ugraph looped of sums {
      kernel rows grid(n.o) warps(2) {
        split n = n.o * n.i(16)
        split k = k.o * k.i(32)
        loop k.o stages(2) {
          xs[n.i, k.i] = x : shared f16
          s[n.i] = sum[k.o, k.i](xs * xs) : reg f32
        }
        store s -> y
      }
    })",
                                          "looped.mu", program_);
    SUNDOG_CHECK(graph.ok());
    graph_ = std::move(*graph);
  }
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  Program program_;
  MuGraph graph_;
};

TEST_F(GraphView, OneLineNamesKernelsGridsAndLoops) {
  EXPECT_EQ(one_line(graph_), "1 kernel: rows[4 blocks, 2 warps, loop k.o 3]");
}

TEST_F(GraphView, DotHasEveryTensorAndComputation) {
  const std::string text = dot(graph_, program_);
  for (const char* part :
       {"digraph", "label=\"x", "label=\"y", "xs = ", "cluster0", "rows: 4 blocks"}) {
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
  EXPECT_TRUE(contains(dot(program_), "sum[k]"));
}

TEST_F(GraphView, SvgIsClosedAndEscaped) {
  graph_.kernels[0].computations[0].name = "a<b>&\"c\"";
  const std::string text = svg(graph_, program_);
  EXPECT_TRUE(contains(text, "<svg") && contains(text, "</svg>"));
  EXPECT_TRUE(contains(text, "a&lt;b&gt;&amp;&quot;c&quot;"));
  EXPECT_FALSE(contains(text, "a<b>"));
}

}  // namespace
}  // namespace sundog::cli
