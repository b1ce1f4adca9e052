#include "core/overlap.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace sundog {
namespace {

TensorDecl strided(std::vector<int64_t> extents, std::vector<int64_t> strides) {
  TensorDecl tensor;
  tensor.name = "t";
  tensor.extents = std::move(extents);
  tensor.strides = std::move(strides);
  return tensor;
}

// Whether two elements have one place, by listing all of them.
bool listed_twice(const TensorDecl& tensor) {
  std::set<int64_t> places;
  for (int64_t e = 0; e < element_count(tensor); ++e) {
    int64_t rest = e, place = 0;
    for (size_t d = tensor.extents.size(); d-- > 0;) {
      place += rest % tensor.extents[d] * tensor.strides[d];
      rest /= tensor.extents[d];
    }
    if (!places.insert(place).second) return true;
  }
  return false;
}

TEST(Overlap, IsWhatListingElementsFinds) {
  EXPECT_TRUE(elements_share_memory(strided({8, 4}, {3, 1})));
  EXPECT_FALSE(elements_share_memory(strided({8, 4}, {4, 1})));
  EXPECT_FALSE(elements_share_memory(strided({2, 2}, {3, 2}))) << "apart though not nested";
  EXPECT_TRUE(elements_share_memory(strided({4, 3}, {2, 3})));
  EXPECT_FALSE(elements_share_memory(strided({1, 5}, {0, 1}))) << "one index has no second";
  EXPECT_TRUE(elements_share_memory(strided({4, 4}, {int64_t{1} << 62, 1})));
  int shared = 0;
  for (int64_t code = 0; code < 20 * 20 * 20; ++code) {
    const TensorDecl tensor =
        strided({2 + code % 3, 4, 3}, {code % 20, code / 20 % 20, code / 400 % 20});
    ASSERT_EQ(elements_share_memory(tensor), listed_twice(tensor)) << code;
    shared += elements_share_memory(tensor) ? 1 : 0;
  }
  EXPECT_GT(shared, 1000);
  EXPECT_LT(shared, 7000);
}

}  // namespace
}  // namespace sundog
