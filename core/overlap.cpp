#include "core/overlap.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sundog {
namespace {

constexpr int kMostSteps = 1 << 20;
constexpr int64_t kFarthest = int64_t{1} << 61;

// Looks for an index difference whose address difference is 0, from the largest stride down: below
// a dimension only what the smaller ones can make up for is worth trying.
class OverlapSearch {
 public:
  explicit OverlapSearch(const TensorDecl& tensor) {
    const std::vector<int64_t> strides = strides_of(tensor);
    for (size_t d = 0; d < strides.size(); ++d) {
      if (tensor.extents[d] > 1) dims_.push_back({strides[d], tensor.extents[d] - 1});
    }
    std::sort(dims_.begin(), dims_.end());
    int64_t reach = 0;
    for (const auto& [stride, last] : dims_) {
      below_.push_back(reach);
      int64_t more = 0;
      too_far_ =
          too_far_ || __builtin_mul_overflow(stride, last, &more) || more > kFarthest - reach;
      reach += too_far_ ? 0 : more;
    }
  }

  bool found() { return too_far_ || from(dims_.size(), 0, false); }

 private:
  // Whether the first `dims` dimensions can make up for `apart`; not by standing still if nothing
  // has moved so far.
  bool from(size_t dims, int64_t apart, bool moved) {
    if (dims == 0) return moved && apart == 0;
    const auto [stride, last] = dims_[dims - 1];
    const int64_t below = below_[dims - 1];
    if (stride == 0) return true;
    // The first that moves may go forward: its mirror image is the same pair.
    const int64_t low = moved ? std::max(-last, -(apart + below) / stride - 1) : 0;
    const int64_t high = std::min(last, (below - apart) / stride + 1);
    for (int64_t by = low; by <= high; ++by) {
      const int64_t rest = apart + by * stride;
      if (rest > below || rest < -below) continue;
      if (++steps_ > kMostSteps || from(dims - 1, rest, moved || by != 0)) return true;
    }
    return false;
  }

  std::vector<std::pair<int64_t, int64_t>> dims_;  // stride and last index, by stride
  std::vector<int64_t> below_;                     // farthest that the ones before reach
  bool too_far_ = false;                           // for any memory
  int steps_ = 0;
};

}  // namespace

bool elements_share_memory(const TensorDecl& tensor) {
  return element_count(tensor) > 1 && OverlapSearch(tensor).found();
}

}  // namespace sundog
