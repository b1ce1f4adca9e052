// A view is flat and a kernel computes in single steps, so a view is taken apart: a sum loses its
// outermost factor first (parts are joined last), a product is cut in two.  How products are cut
// decides the size of the space.  With a sum, either both sides keep a share of it (an order of
// contraction) or all factors that can leave the sum leave together; without one, either both sides
// have an axis of their own (an outer product) or the largest factor is peeled off, which leaves
// one chain where all orders would be equally dear.
#include "search/nodes.h"

#include <algorithm>
#include <tuple>

namespace sundog::search {
namespace {

// x = exp(m - max[axis](m)): gives m.
ClassId online_maximum(const Bank& bank, ClassId x, AxisId axis) {
  for (const View& v : bank[x].views) {
    if (v.kind != ViewKind::kExp) continue;
    for (const Bank::Shifted& s : bank.shifted_by_maximum(v.factors[0])) {
      if (s.over == AxisSet::of(axis)) return s.from;
    }
  }
  return kNoClass;
}

void add_sums(Bank& bank, ClassId c, const View& v, const SearchSpace& space) {
  for (AxisId a : outermost(bank, v.reduced)) {
    AxisSet inner = v.reduced;
    inner.erase(a);
    Node sum;
    sum.kind = NodeKind::kSum;
    sum.axis = a;
    sum.operands = {bank.product({}, inner, v.factors)};
    bank.add_node(c, std::move(sum));
    if (!space.online || bank.axes()[a].level != Level::kStep) continue;
    for (size_t i = 0; i < v.factors.size(); ++i) {
      const ClassId m = online_maximum(bank, v.factors[i], a);
      if (m == kNoClass) continue;
      std::vector<ClassId> rest = v.factors;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      if (rest.empty()) continue;
      Node online;
      online.kind = NodeKind::kOnlineSum;
      online.axis = a;
      online.operands = {m, bank.product({}, inner, rest)};
      bank.add_node(c, std::move(online));
    }
  }
}

struct Cut {
  std::vector<ClassId> left, right;
  AxisSet left_axes, right_axes;
};

bool is_canonical(const Bank& bank, const View& v, const Cut& cut) {
  if (!v.reduced.empty()) {
    const bool left = !(v.reduced & cut.left_axes).empty();
    const bool right = !(v.reduced & cut.right_axes).empty();
    if (left && right) return true;
    const auto leaves = [&](ClassId f) { return (bank[f].axes & v.reduced).empty(); };
    const auto& outside = left ? cut.right : cut.left;
    return static_cast<std::ptrdiff_t>(outside.size()) ==
           std::count_if(v.factors.begin(), v.factors.end(), leaves);
  }
  if (!(cut.left_axes - cut.right_axes).empty() && !(cut.right_axes - cut.left_axes).empty()) {
    return true;
  }
  const auto size = [&](ClassId f) {
    return std::make_tuple(bank[f].axes.size(), bank[f].axes.bits(), f);
  };
  const ClassId largest = *std::max_element(
      v.factors.begin(), v.factors.end(), [&](ClassId x, ClassId y) { return size(x) < size(y); });
  return cut.left == std::vector{largest} || cut.right == std::vector{largest};
}

// exp(a + b) = exp(a) * exp(b) is there for sums that a factor leaves, where it is flattened; by
// itself the left side is computed as it stands. Not so for reciprocals: x = 1 / (1 / x).
bool is_exponential(const Bank& bank, ClassId c) {
  return std::any_of(bank[c].views.begin(), bank[c].views.end(),
                     [](const View& v) { return v.kind == ViewKind::kExp; });
}

void add_products(Bank& bank, ClassId c, const View& v) {
  const size_t n = v.factors.size();
  if (n < 2 || (v.reduced.empty() && is_exponential(bank, c))) return;
  // The first factor is always on the left: each cut once.
  for (uint32_t chosen = 1; chosen + 1 < uint32_t{1} << n; chosen += 2) {
    Cut cut;
    for (size_t i = 0; i < n; ++i) {
      const ClassId f = v.factors[i];
      const bool left = (chosen >> i & 1) != 0;
      (left ? cut.left : cut.right).push_back(f);
      (left ? cut.left_axes : cut.right_axes) |= bank[f].axes;
    }
    if (!(v.reduced & cut.left_axes & cut.right_axes).empty()) continue;
    if (!is_canonical(bank, v, cut)) continue;
    Node node;
    node.kind = NodeKind::kProduct;
    node.operands = {bank.product({}, v.reduced & cut.left_axes, cut.left),
                     bank.product({}, v.reduced & cut.right_axes, cut.right)};
    bank.add_node(c, std::move(node));
  }
}

void add_linear(Bank& bank, ClassId c, const View& v) {
  const size_t n = v.factors.size();
  for (uint32_t chosen = 1; chosen + 1 < uint32_t{1} << n; chosen += 2) {
    std::vector<std::pair<Coefficient, ClassId>> side[2];
    for (size_t i = 0; i < n; ++i) {
      side[(chosen >> i & 1) != 0 ? 0 : 1].push_back({v.coefficients[i], v.factors[i]});
    }
    Node node;
    node.kind = NodeKind::kLinear;
    Coefficient* coefficients[2] = {&node.ca, &node.cb};
    for (int s = 0; s < 2; ++s) {
      if (side[s].size() == 1) {
        *coefficients[s] = side[s][0].first;
        node.operands.push_back(side[s][0].second);
      } else {
        node.operands.push_back(bank.linear(side[s]));
      }
    }
    bank.add_node(c, std::move(node));
  }
}

}  // namespace

AxisSet outermost(const Bank& bank, AxisSet axes) {
  AxisSet out;
  for (AxisId a = 0; a < bank.base_count(); ++a) {
    const BaseAxis& base = bank.base(a);
    for (AxisId f : {base.part, base.step, base.tile, base.whole}) {
      if (f == kNoAxis || !axes.has(f)) continue;
      out.insert(f);
      break;
    }
  }
  return out;
}

void add_nodes(Bank& bank, ClassId c, const View& v, const SearchSpace& space) {
  Node node;
  node.operands = v.factors;
  switch (v.kind) {
    case ViewKind::kProduct:
      if (v.coefficient.is_one()) {
        add_sums(bank, c, v, space);
        add_products(bank, c, v);
        return;
      }
      node.kind = NodeKind::kScale;
      node.ca = v.coefficient;
      node.operands = {bank.product({}, v.reduced, v.factors)};
      break;
    case ViewKind::kLinear:
      add_linear(bank, c, v);
      return;
    case ViewKind::kExp:
      node.kind = NodeKind::kExp;
      break;
    case ViewKind::kReciprocal:
      node.kind = NodeKind::kReciprocal;
      break;
    case ViewKind::kOpaque:
      node.kind = NodeKind::kOpaque;
      node.opaque = v.opaque;
      break;
    case ViewKind::kMax:
      for (AxisId a : outermost(bank, v.reduced)) {
        AxisSet inner = v.reduced;
        inner.erase(a);
        Node maximum;
        maximum.kind = NodeKind::kMax;
        maximum.axis = a;
        maximum.operands = {bank.maximum(inner, v.factors[0])};
        bank.add_node(c, std::move(maximum));
      }
      return;
  }
  bank.add_node(c, std::move(node));
}

}  // namespace sundog::search
