// Evaluates one term over a box of index values, for any algebra: what both interpreters of
// core/interpret.h are made of.
//
// The box is cut into chunks along its leading axes, small enough for intermediate values to stay
// in cache.  In a chunk each term is a strided array over the axes it varies along; reads of
// tensors are views wherever they stay in range.  A term is computed again only when an axis that
// it varies along has moved.
//
// Every element either has a value or is undefined: a read out of range, or of what was never
// computed, is undefined, and so is what depends on it; a select or a decided comparison passes on
// only the branch that it takes.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/algebra.h"
#include "core/check.h"
#include "core/strided.h"
#include "core/term.h"

namespace sundog {

// A term's values in a chunk: strides are one an inner axis of the box.
template <class V>
struct Operand {
  const V* data = nullptr;
  const uint8_t* defined = nullptr;  // null: all
  std::vector<int64_t> strides;
};

template <Algebra A>
class BoxEvaluator {
 public:
  using V = typename A::Value;

  // A term that is read instead of computed: array element at `index`, one expression a dimension.
  struct Leaf {
    const Array<V>* array = nullptr;
    std::vector<IndexExpr> index;
  };

  // Evaluates `root` over the axes `box`, outermost first.  `axis_extents`: one entry an axis of
  // the graph; `size_of`: the table of SizeTerm and of sizes in index expressions.  `leaf` says
  // which terms are read; it must for InputTerm and LocalTerm.  All arguments must outlive this.
  BoxEvaluator(A& algebra, const TermGraph& graph, TermId root, std::vector<AxisId> box,
               std::span<const int64_t> axis_extents, const std::vector<int64_t>& size_of,
               const std::function<std::optional<Leaf>(TermId)>& leaf)
      : a_(algebra), graph_(graph), box_(std::move(box)), size_of_(size_of) {
    for (AxisId axis : box_) extents_.push_back(axis_extents[axis]);
    split_box();
    add(root, leaf);
  }

  // Calls sink(operand, outer) for each chunk; `outer` are the index values of the leading axes.
  // Ends early where the algebra gives up.
  // `index`: one entry an axis of the graph; those outside the box are fixed, those inside are 0 on
  // return.
  template <class Sink>
  void run(std::vector<int64_t>& index, Sink&& sink) {
    for (int64_t extent : extents_) {
      if (extent == 0) return;
    }
    std::vector<int64_t> outer(inner_begin_, 0);
    for (AxisId axis : box_) index[axis] = 0;
    int moved = -1;
    while (true) {
      for (Node& node : nodes_) {
        if (moved <= node.deepest || moved < 0) evaluate(node, index);
      }
      sink(std::as_const(nodes_.back().result), std::as_const(outer));
      if (!goes_on()) return;
      size_t d = inner_begin_;
      for (; d > 0; --d) {
        index[box_[d - 1]] = ++outer[d - 1];
        if (outer[d - 1] < extents_[d - 1]) break;
        index[box_[d - 1]] = outer[d - 1] = 0;
      }
      if (d == 0) return;
      moved = static_cast<int>(d) - 1;
    }
  }

  std::span<const AxisId> box() const { return box_; }
  size_t inner_begin() const { return inner_begin_; }  // axes from here on are inside a chunk
  std::span<const int64_t> inner_extents() const {
    return std::span<const int64_t>(extents_).subspan(inner_begin_);
  }

 private:
  // An affine index: constant, coefficients of axes of the graph, and of the inner axes apart.
  struct Affine {
    int64_t constant = 0;
    std::vector<IndexExpr::Item> outer;
    std::vector<int64_t> inner;
    int64_t base(const std::vector<int64_t>& index) const {
      int64_t value = constant;
      for (const auto& item : outer) value += item.coefficient * index[item.axis];
      return value;
    }
  };

  struct Node {
    TermId id = kNoTerm;
    int deepest = -1;                // last leading axis that it varies along
    std::vector<int64_t> sizes;      // per inner axis: its extent, or 1
    std::vector<int64_t> strides;    // dense, 0 where it does not vary
    std::vector<uint32_t> operands;  // nodes
    const Array<V>* array = nullptr;
    std::vector<Affine> index;  // of a leaf, a condition or an index term
    std::vector<V> values;
    std::vector<uint8_t> defined;
    Operand<V> result;
  };

  // Whether the algebra does; it hears of what took none of its operations, too.
  bool goes_on() {
    if constexpr (requires { a_.looked_at(uint64_t{1}); }) {
      a_.looked_at(static_cast<uint64_t>(product(inner_extents())));
    }
    if constexpr (requires { a_.failure(); }) return !a_.failure();
    return true;
  }

  void split_box() {
    constexpr int64_t kChunk = 4096;
    inner_begin_ = box_.size();
    int64_t elements = 1;
    while (inner_begin_ > 0) {
      const int64_t more = elements * std::max<int64_t>(extents_[inner_begin_ - 1], 1);
      if (more > kChunk && inner_begin_ < box_.size()) break;
      elements = more;
      --inner_begin_;
    }
  }

  Affine affine(const IndexExpr& e) const {
    Affine result;
    result.constant = e.constant;
    for (const auto& item : e.sizes) result.constant += item.coefficient * size_of_[item.axis];
    result.inner.assign(box_.size() - inner_begin_, 0);
    for (const auto& item : e.axes) {
      const auto at = std::find(box_.begin() + static_cast<std::ptrdiff_t>(inner_begin_),
                                box_.end(), item.axis);
      if (at == box_.end()) {
        result.outer.push_back(item);
      } else {
        const auto position = static_cast<size_t>(at - box_.begin()) - inner_begin_;
        result.inner[position] = item.coefficient;
      }
    }
    return result;
  }

  uint32_t add(TermId id, const std::function<std::optional<Leaf>(TermId)>& leaf) {
    if (const auto known = node_of_.find(id); known != node_of_.end()) return known->second;
    Node node;
    node.id = id;
    if (std::optional<Leaf> read = leaf(id)) {
      node.array = read->array;
      for (const IndexExpr& e : read->index) node.index.push_back(affine(e));
    } else {
      for (TermId operand : operands(graph_[id])) node.operands.push_back(add(operand, leaf));
      if (const auto* select = std::get_if<SelectTerm>(&graph_[id])) {
        node.index.push_back(affine(select->condition.expr));
      } else if (const auto* index = std::get_if<IndexTerm>(&graph_[id])) {
        node.index.push_back(affine(index->index));
      }
    }
    const AxisSet axes = graph_.axes(id);
    for (size_t d = 0; d < box_.size(); ++d) {
      const bool varies = axes.has(box_[d]);
      if (d >= inner_begin_) {
        node.sizes.push_back(varies ? extents_[d] : 1);
      } else if (varies) {
        node.deepest = static_cast<int>(d);
      }
    }
    node.strides = row_major(node.sizes);
    for (size_t d = 0; d < node.sizes.size(); ++d) {
      if (!axes.has(box_[inner_begin_ + d])) node.strides[d] = 0;
    }
    nodes_.push_back(std::move(node));
    return node_of_[id] = static_cast<uint32_t>(nodes_.size() - 1);
  }

  void evaluate(Node& node, const std::vector<int64_t>& index) {
    if (node.array != nullptr) {
      read(node, index);
      return;
    }
    node.values.resize(static_cast<size_t>(product(node.sizes)), a_.constant(Number()));
    bool masked = false;
    for (uint32_t operand : node.operands) masked |= nodes_[operand].result.defined != nullptr;
    if (masked) node.defined.assign(node.values.size(), 1);
    node.result = {node.values.data(), masked ? node.defined.data() : nullptr, node.strides};
    std::visit([&](const auto& term) { compute(node, term, index); }, graph_[node.id]);
  }

  const Operand<V>& in(const Node& node, size_t i) const { return nodes_[node.operands[i]].result; }

  // --- reads

  void read(Node& node, const std::vector<int64_t>& index) {
    const Array<V>& array = *node.array;
    int64_t offset = 0;
    std::vector<int64_t>& strides = node.result.strides;
    strides.assign(node.sizes.size(), 0);
    for (size_t d = 0; d < node.index.size(); ++d) {
      const int64_t base = node.index[d].base(index);
      int64_t low = base, high = base;
      for (size_t i = 0; i < strides.size(); ++i) {
        const int64_t reach = node.index[d].inner[i] * (node.sizes[i] - 1);
        (reach < 0 ? low : high) += reach;
        strides[i] += node.index[d].inner[i] * array.strides[d];
      }
      if (low < 0 || high >= array.extents[d]) {
        gather(node, index);
        return;
      }
      offset += base * array.strides[d];
    }
    node.result.data = array.values.data() + offset;
    node.result.defined = array.defined.empty() ? nullptr : array.defined.data() + offset;
  }

  // A read that leaves the tensor somewhere: element by element.
  void gather(Node& node, const std::vector<int64_t>& index) {
    const Array<V>& array = *node.array;
    node.values.resize(static_cast<size_t>(product(node.sizes)), a_.constant(Number()));
    node.defined.assign(node.values.size(), 0);
    std::vector<int64_t> at(node.sizes.size(), 0), base;
    for (const Affine& e : node.index) base.push_back(e.base(index));
    for (size_t element = 0; element < node.values.size(); ++element) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t d = 0; d < node.index.size(); ++d) {
        int64_t value = base[d];
        for (size_t i = 0; i < at.size(); ++i) value += node.index[d].inner[i] * at[i];
        inside = inside && value >= 0 && value < array.extents[d];
        offset += value * array.strides[d];
      }
      if (inside && !array.defined.empty())
        inside = array.defined[static_cast<size_t>(offset)] != 0;
      if (inside) {
        node.values[element] = array.values[static_cast<size_t>(offset)];
        node.defined[element] = 1;
      }
      for (size_t i = at.size(); i-- > 0;) {
        if (++at[i] < node.sizes[i]) break;
        at[i] = 0;
      }
    }
    node.result = {node.values.data(), node.defined.data(), node.strides};
  }

  // --- terms

  void compute(Node&, const InputTerm&, const std::vector<int64_t>&) { SUNDOG_CHECK(false); }
  void compute(Node&, const LocalTerm&, const std::vector<int64_t>&) { SUNDOG_CHECK(false); }
  void compute(Node&, const ReduceTerm&, const std::vector<int64_t>&) { SUNDOG_CHECK(false); }

  void compute(Node& node, const ConstantTerm& term, const std::vector<int64_t>&) {
    node.values[0] = a_.constant(term.value);
  }
  void compute(Node& node, const SizeTerm& term, const std::vector<int64_t>&) {
    node.values[0] = a_.constant(Number(size_of_[term.axis]));
  }
  void compute(Node& node, const IndexTerm&, const std::vector<int64_t>& index) {
    const int64_t base = node.index[0].base(index);
    for_runs<2>(node.sizes, {node.strides, node.index[0].inner},
                [&](const auto& at, int64_t count, const auto& step) {
                  for (int64_t i = 0; i < count; ++i) {
                    const int64_t value = base + at[1] + i * step[1];
                    V& to = node.values[static_cast<size_t>(at[0] + i * step[0])];
                    if constexpr (requires { a_.index(value); }) {
                      to = a_.index(value);
                    } else {
                      to = a_.constant(Number(value));
                    }
                  }
                });
  }

  void compute(Node& node, const ApplyTerm& term, const std::vector<int64_t>&) {
    std::visit(
        [&]<class O>(const O& o) {
          if constexpr (O::arity == 1) {
            unary(node, o);
          } else {
            binary(node, o);
          }
        },
        term.op);
  }

  template <class O>
  void unary(Node& node, const O& o) {
    const Operand<V>& x = in(node, 0);
    for_runs<2>(node.sizes, {node.strides, x.strides},
                [&](const auto& at, int64_t count, const auto& step) {
                  V* out = node.values.data() + at[0];
                  const V* xs = x.data + at[1];
                  const int64_t so = step[0], sx = step[1];
                  if (x.defined == nullptr) {
                    for (int64_t i = 0; i < count; ++i) out[i * so] = o.apply(a_, xs[i * sx]);
                    return;
                  }
                  for (int64_t i = 0; i < count; ++i) {
                    const bool known = x.defined[at[1] + i * sx] != 0;
                    node.defined[static_cast<size_t>(at[0] + i * so)] = known;
                    if (known) out[i * so] = o.apply(a_, xs[i * sx]);
                  }
                });
  }

  template <class O>
  void binary(Node& node, const O& o) {
    const Operand<V>& x = in(node, 0);
    const Operand<V>& y = in(node, 1);
    for_runs<3>(node.sizes, {node.strides, x.strides, y.strides},
                [&](const auto& at, int64_t count, const auto& step) {
                  V* out = node.values.data() + at[0];
                  const V* xs = x.data + at[1];
                  const V* ys = y.data + at[2];
                  const int64_t so = step[0], sx = step[1], sy = step[2];
                  if (node.result.defined == nullptr) {
                    for (int64_t i = 0; i < count; ++i) {
                      out[i * so] = o.apply(a_, xs[i * sx], ys[i * sy]);
                    }
                    return;
                  }
                  for (int64_t i = 0; i < count; ++i) {
                    const bool known =
                        is_defined(x, at[1] + i * sx) && is_defined(y, at[2] + i * sy);
                    node.defined[static_cast<size_t>(at[0] + i * so)] = known;
                    if (known) out[i * so] = o.apply(a_, xs[i * sx], ys[i * sy]);
                  }
                });
  }

  static bool is_defined(const Operand<V>& x, int64_t at) {
    return x.defined == nullptr || x.defined[at] != 0;
  }

  void compute(Node& node, const SelectTerm& term, const std::vector<int64_t>& index) {
    const Operand<V>& yes = in(node, 0);
    const Operand<V>& no = in(node, 1);
    const int64_t base = node.index[0].base(index);
    for_runs<4>(node.sizes, {node.strides, node.index[0].inner, yes.strides, no.strides},
                [&](const auto& at, int64_t count, const auto& step) {
                  for (int64_t i = 0; i < count; ++i) {
                    const bool taken =
                        holds(term.condition.relation, base + at[1] + i * step[1], int64_t{0});
                    const Operand<V>& from = taken ? yes : no;
                    const int64_t source = taken ? at[2] + i * step[2] : at[3] + i * step[3];
                    pass(node, at[0] + i * step[0], from, source);
                  }
                });
  }

  void pass(Node& node, int64_t to, const Operand<V>& from, int64_t at) {
    node.values[static_cast<size_t>(to)] = from.data[at];
    if (node.result.defined != nullptr) {
      node.defined[static_cast<size_t>(to)] = is_defined(from, at);
    }
  }

  void compute(Node& node, const CompareTerm& term, const std::vector<int64_t>&) {
    const Operand<V>&left = in(node, 0), &right = in(node, 1), &yes = in(node, 2),
          &no = in(node, 3);
    for_runs<5>(node.sizes, {node.strides, left.strides, right.strides, yes.strides, no.strides},
                [&](const auto& at, int64_t count, const auto& step) {
                  for (int64_t i = 0; i < count; ++i) {
                    const int64_t to = at[0] + i * step[0], l = at[1] + i * step[1],
                                  r = at[2] + i * step[2], y = at[3] + i * step[3],
                                  n = at[4] + i * step[4];
                    if (!is_defined(left, l) || !is_defined(right, r)) {
                      node.defined[static_cast<size_t>(to)] = 0;
                      continue;
                    }
                    choose(node, term.relation, to, left.data[l], right.data[r], yes, y, no, n);
                  }
                });
  }

  void choose(Node& node, Relation relation, int64_t to, const V& l, const V& r,
              const Operand<V>& yes, int64_t y, const Operand<V>& no, int64_t n) {
    if constexpr (requires { a_.decide(relation, l, r); }) {  // std::optional<bool>
      if (const std::optional<bool> taken = a_.decide(relation, l, r)) {
        *taken ? pass(node, to, yes, y) : pass(node, to, no, n);
        return;
      }
    }
    const bool known = is_defined(yes, y) && is_defined(no, n);
    if (node.result.defined != nullptr) node.defined[static_cast<size_t>(to)] = known;
    if (known) {
      node.values[static_cast<size_t>(to)] = a_.choose(relation, l, r, yes.data[y], no.data[n]);
    }
  }

  A& a_;
  const TermGraph& graph_;
  std::vector<AxisId> box_;
  std::vector<int64_t> extents_;
  const std::vector<int64_t>& size_of_;
  size_t inner_begin_ = 0;
  std::vector<Node> nodes_;  // operands first
  std::unordered_map<TermId, uint32_t> node_of_;
};

// Adds the operand of a reduction (or copies a plain value) into `to`.
//  to_strides  per axis of the box; 0 where reduced
//  present     dense over the inner axes, or null; elements that are not are skipped
template <Algebra A>
struct Sink {
  using V = typename A::Value;
  A& a;
  Array<V>& to;
  std::vector<int64_t> to_strides;
  std::optional<ReduceKind> reduce;  // none: copy

  // Starts all elements of `to` at the unit of the reduction.
  void reset() {
    const Number unit = reduce == ReduceKind::kMax ? Number::infinity(true) : Number(0);
    std::fill(to.values.begin(), to.values.end(), a.constant(unit));
    to.defined.clear();
  }

  void add(const BoxEvaluator<A>& box, const Operand<V>& x, const std::vector<int64_t>& outer,
           const uint8_t* present) {
    int64_t start = 0;
    for (size_t d = 0; d < outer.size(); ++d) start += outer[d] * to_strides[d];
    const std::span<const int64_t> sizes = box.inner_extents();
    const std::span<const int64_t> inner = std::span(to_strides).subspan(box.inner_begin());
    const std::vector<int64_t> dense = row_major(sizes);
    if ((x.defined != nullptr || present != nullptr) && to.defined.empty()) {
      to.defined.assign(to.values.size(), 1);
    }
    for_runs<3>(sizes, {inner, x.strides, dense},
                [&](const auto& at, int64_t count, const auto& step) {
                  const int64_t begin = start + at[0];
                  if (to.defined.empty()) {
                    plain(to.values.data() + begin, step[0], x.data + at[1], step[1], count);
                    return;
                  }
                  for (int64_t i = 0; i < count; ++i) {
                    const bool skip = present != nullptr && present[at[2] + i * step[2]] == 0;
                    const int64_t from = at[1] + i * step[1];
                    masked(static_cast<size_t>(begin + i * step[0]), skip,
                           x.defined == nullptr || x.defined[from] != 0, x.data[from]);
                  }
                });
  }

 private:
  void plain(V* out, int64_t so, const V* x, int64_t sx, int64_t count) {
    if (!reduce) {
      for (int64_t i = 0; i < count; ++i) out[i * so] = x[i * sx];
    } else if (so == 0) {
      V total = *out;
      if (*reduce == ReduceKind::kSum) {
        for (int64_t i = 0; i < count; ++i) total = a.add(total, x[i * sx]);
      } else {
        for (int64_t i = 0; i < count; ++i) total = a.max(total, x[i * sx]);
      }
      *out = total;
    } else if (*reduce == ReduceKind::kSum) {
      for (int64_t i = 0; i < count; ++i) out[i * so] = a.add(out[i * so], x[i * sx]);
    } else {
      for (int64_t i = 0; i < count; ++i) out[i * so] = a.max(out[i * so], x[i * sx]);
    }
  }

  void masked(size_t at, bool skip, bool known, const V& x) {
    if (!reduce) {
      to.defined[at] = !skip && known;
      if (to.defined[at] != 0) to.values[at] = x;
      return;
    }
    if (skip || to.defined[at] == 0) return;
    if (!known) {
      to.defined[at] = 0;
      return;
    }
    to.values[at] = *reduce == ReduceKind::kSum ? a.add(to.values[at], x) : a.max(to.values[at], x);
  }
};

}  // namespace sundog
