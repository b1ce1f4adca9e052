#include "search/operand_cost.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "search/cost_constants.h"

namespace sundog::search {
namespace {

class Operands {
 public:
  Operands(const KernelProfile& profile, const ThreadLevel& level,
           const std::vector<int64_t>& extents)
      : p_(profile), level_(level), extents_(extents) {}

  OperandCost of_warps(uint32_t i) const {
    const Contraction& c = *p_.roles[i].contraction;
    OperandCost cost;
    for (const auto& [operand, other] : {std::pair(c.left, c.right), std::pair(c.right, c.left)}) {
      if (level_.storage[operand] == Storage::kReg) continue;
      const double read = count(p_.roles[operand].tile) * readers(i, operand == c.left ? c.n : c.m);
      const bool pairs = is_narrow(operand) && !(p_.roles[operand].row & c.k).empty();
      cost.shared_bytes +=
          read * bytes(level_.dtype[operand]) * conflicts(operand) * (pairs ? kPairTurns : 1);
      if (!is_narrow(operand)) continue;
      // By way of f16, where floats become bf16.
      const bool twice = level_.dtype[operand] != DType::kI8 && level_.dtype[other] == DType::kBF16;
      cost.instructions += read * kWidenSlots * (twice ? 2 : 1);
    }
    return cost;
  }

  OperandCost of_threads(uint32_t i) const {
    OperandCost cost;
    for (uint32_t j = 0; j < p_.roles.size(); ++j) {
      const std::vector<uint32_t>& users = p_.roles[j].users;
      if (std::find(users.begin(), users.end(), i) == users.end()) continue;
      const double read = count(p_.roles[j].tile);
      if (is_narrow(j)) cost.instructions += read * kNarrowSlots;
      if (!level_.fragment[i] || level_.storage[j] != Storage::kShared) continue;
      cost.shared_bytes += read * bytes(level_.dtype[j]) * (is_narrow(j) ? kPairTurns : 1);
    }
    return cost;
  }

 private:
  double count(AxisSet f) const { return tile_count(f, extents_); }
  bool is_narrow(uint32_t i) const { return bytes(level_.dtype[i]) == 1; }

  // Warps that differ only along the other operand's axes read the same.
  double readers(uint32_t i, AxisSet others) const {
    double warps = 1;
    for (const WarpSplit& s : level_.splits[i]) {
      if (others.has(s.factor)) warps *= s.count;
    }
    return warps;
  }

  // Turns that eight rows of 16 bytes of a loaded tile take: one where the rows are swizzled, else
  // as many as start at the same bank.
  double conflicts(uint32_t operand) const {
    if (p_.load_of[operand] == kNone) return 1;
    const Traffic& t = p_.traffic[p_.load_of[operand]];
    const auto row = static_cast<int64_t>(count(t.row) * t.element_bytes);
    if (row == 32 || row == 64 || row % 128 == 0 || row % 16 != 0) return 1;
    return static_cast<double>(std::gcd(row / 16, int64_t{8}));
  }

  const KernelProfile& p_;
  const ThreadLevel& level_;
  const std::vector<int64_t>& extents_;
};

}  // namespace

OperandCost operands_of_warps(const KernelProfile& profile, const ThreadLevel& level,
                              const std::vector<int64_t>& extents, uint32_t i) {
  return Operands(profile, level, extents).of_warps(i);
}

OperandCost operands_of_threads(const KernelProfile& profile, const ThreadLevel& level,
                                const std::vector<int64_t>& extents, uint32_t i) {
  return Operands(profile, level, extents).of_threads(i);
}

}  // namespace sundog::search
