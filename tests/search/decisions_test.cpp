#include "search/decisions.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "core/field.h"

namespace sundog::search {
namespace {

// A tree whose shape is a hash of the path: visits states, some without a choice.
class Walker {
 public:
  std::vector<std::string> leaves;
  uint64_t states = 0;

  std::vector<Subtree> walk(const Subtree& subtree, uint64_t most) {
    Limits limits({}, 0, 0, nullptr);
    Quantum quantum(most, most, limits);
    quantum_ = &quantum;
    decisions_.begin(subtree, &quantum);
    visit("", 0);
    states += quantum.used();
    return decisions_.take_rest();
  }

 private:
  void visit(const std::string& path, int depth) {
    if (!decisions_.repeating()) quantum_->spend();
    uint64_t h = 1;
    for (const char c : path) h = mix(h, static_cast<uint64_t>(c));
    if (depth == 7 || (depth > 1 && h % 5 == 0)) {
      leaves.push_back(path);
      return;
    }
    if (depth > 1 && h % 7 == 0) return visit(path + "-", depth + 1);
    for (Choice c(decisions_, depth < 2 ? 4 : h / 64 % 4); c.next();) {
      visit(path + static_cast<char>('a' + c.index()), depth + 1);
    }
  }

  Decisions decisions_;
  Quantum* quantum_ = nullptr;
};

TEST(DecisionsTest, AnUnbrokenWalkLeavesNothing) {
  Walker whole;
  EXPECT_TRUE(whole.walk({}, 1 << 20).empty());
  EXPECT_GT(whole.leaves.size(), 10u);
}

TEST(DecisionsTest, BrokenWalksVisitTheSameInTheSameOrder) {
  Walker whole;
  whole.walk({}, 1 << 20);
  for (uint64_t quantum : {1, 2, 3, 7, 50}) {
    Walker broken;
    std::deque<Subtree> due{{}};
    for (int steps = 0; !due.empty(); ++steps) {
      ASSERT_LT(steps, 100000) << "no progress with a quantum of " << quantum;
      const Subtree next = due.front();
      due.pop_front();
      const std::vector<Subtree> rest = broken.walk(next, quantum);
      due.insert(due.begin(), rest.begin(), rest.end());
    }
    EXPECT_EQ(broken.leaves, whole.leaves) << "a quantum of " << quantum;
    EXPECT_LE(broken.states, whole.states);
    EXPECT_GE(broken.states + 1, whole.states);  // the root may be counted or not
  }
}

TEST(DecisionsTest, NothingIsTriedOnceTheQuantumIsUsedUp) {
  Walker walker;
  const std::vector<Subtree> rest = walker.walk({}, 0);
  EXPECT_EQ(walker.leaves.size(), 0u);
  EXPECT_EQ(rest, (std::vector<Subtree>{{{}, 0}}));
}

TEST(DecisionsTest, ADecisionThatIsNoMoreThereEndsTheWalk) {
  Walker walker;
  EXPECT_TRUE(walker.walk({{99, 1}, 0}, 1000).empty());
  EXPECT_TRUE(walker.leaves.empty());
}

}  // namespace
}  // namespace sundog::search
