#include "core/term.h"

#include <algorithm>
#include <type_traits>

#include "core/check.h"

namespace sundog {
namespace {

// Mixes words with the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
class Hasher {
 public:
  void add(uint64_t word) {
    state_ = (state_ ^ word) + 0x9e3779b97f4a7c15ull;
    state_ = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9ull;
    state_ = (state_ ^ (state_ >> 27)) * 0x94d049bb133111ebull;
    state_ ^= state_ >> 31;
  }
  void add(int64_t word) { add(static_cast<uint64_t>(word)); }
  void add(uint32_t word) { add(uint64_t{word}); }
  void add(DType dtype) { add(static_cast<uint64_t>(dtype)); }
  void add(const Number& n) {
    add(n.numerator());
    add(n.denominator());
    add(static_cast<int64_t>(n.exponent()));
  }
  void add(const std::vector<IndexExpr::Item>& items) {
    add(uint64_t{items.size()});
    for (const auto& item : items) {
      add(item.axis);
      add(item.coefficient);
    }
  }
  void add(const IndexExpr& e) {
    add(e.constant);
    add(e.axes);
    add(e.sizes);
  }
  void add(const Op& op) {
    add(uint64_t{op.index()});
    std::visit(
        [this](const auto& o) {
          std::apply([this](const auto&... a) { (add(a), ...); }, o.attributes());
        },
        op);
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0;
};

void add_term(Hasher& h, const InputTerm& t) {
  h.add(t.tensor);
  for (const IndexExpr& e : t.index) h.add(e);
}
void add_term(Hasher& h, const LocalTerm& t) {
  h.add(t.computation);
  h.add(t.axes.bits());
}
void add_term(Hasher& h, const ConstantTerm& t) { h.add(t.value); }
void add_term(Hasher& h, const SizeTerm& t) { h.add(t.axis); }
void add_term(Hasher& h, const IndexTerm& t) { h.add(t.index); }
void add_term(Hasher& h, const ApplyTerm& t) {
  h.add(t.op);
  for (TermId id : t.operands) h.add(id);
}
void add_term(Hasher& h, const ReduceTerm& t) {
  h.add(static_cast<uint64_t>(t.kind));
  h.add(t.axes.bits());
  h.add(t.operand);
}
void add_term(Hasher& h, const SelectTerm& t) {
  h.add(t.condition.expr);
  h.add(static_cast<uint64_t>(t.condition.relation));
  h.add(t.then);
  h.add(t.otherwise);
}
void add_term(Hasher& h, const CompareTerm& t) {
  h.add(static_cast<uint64_t>(t.relation));
  for (TermId id : {t.left, t.right, t.then, t.otherwise}) h.add(id);
}

AxisSet own_axes(const Term& term) {
  if (const auto* input = std::get_if<InputTerm>(&term)) {
    AxisSet set;
    for (const IndexExpr& e : input->index) set |= e.axis_set();
    return set;
  }
  if (const auto* local = std::get_if<LocalTerm>(&term)) return local->axes;
  if (const auto* index = std::get_if<IndexTerm>(&term)) return index->index.axis_set();
  if (const auto* select = std::get_if<SelectTerm>(&term)) return select->condition.expr.axis_set();
  return {};
}

// One substitution: the replacement in force, and the terms already done under it.
class Substitution {
 public:
  Substitution(TermGraph& graph, std::vector<IndexExpr> replacement,
               const std::function<AxisId(AxisId)>& fresh)
      : graph_(graph), replacement_(std::move(replacement)), fresh_(fresh) {}

  TermId apply(TermId id) {
    if (leaves_alone(graph_.axes(id))) return id;
    if (const auto known = done_.find(id); known != done_.end()) return known->second;
    const Term term = graph_[id];  // a copy: pushing moves the graph's terms
    const TermId result = std::visit([this](const auto& t) { return rebuild(t); }, term);
    done_.emplace(id, result);
    return result;
  }

 private:
  IndexExpr target(AxisId axis) const {
    return axis < replacement_.size() ? replacement_[axis] : IndexExpr::of(axis);
  }
  bool leaves_alone(AxisSet axes) const {
    for (AxisId a : axes) {
      if (!(target(a) == IndexExpr::of(a))) return false;
    }
    return true;
  }
  IndexExpr substituted(const IndexExpr& e) const {
    IndexExpr result{e.constant, {}, e.sizes};
    for (const auto& item : e.axes) result = result + target(item.axis) * item.coefficient;
    return result;
  }

  TermId rebuild(InputTerm t) {
    for (IndexExpr& e : t.index) e = substituted(e);
    return graph_.push(std::move(t));
  }
  TermId rebuild(LocalTerm t) {  // only renamings reach the axes of a local read
    AxisSet axes;
    for (AxisId a : t.axes) {
      AxisId to = 0;
      SUNDOG_CHECK(target(a).is_axis(&to));
      axes.insert(to);
    }
    t.axes = axes;
    return graph_.push(t);
  }
  TermId rebuild(const ConstantTerm& t) { return graph_.push(t); }
  TermId rebuild(const SizeTerm& t) { return graph_.push(t); }
  TermId rebuild(IndexTerm t) {
    t.index = substituted(t.index);
    return graph_.push(std::move(t));
  }
  TermId rebuild(ApplyTerm t) {
    for (TermId& operand : t.operands) operand = apply(operand);
    return graph_.push(std::move(t));
  }
  TermId rebuild(SelectTerm t) {
    t.condition.expr = substituted(t.condition.expr);
    t.then = apply(t.then);
    t.otherwise = apply(t.otherwise);
    return graph_.push(std::move(t));
  }
  TermId rebuild(CompareTerm t) {
    t.left = apply(t.left);
    t.right = apply(t.right);
    t.then = apply(t.then);
    t.otherwise = apply(t.otherwise);
    return graph_.push(std::move(t));
  }
  TermId rebuild(ReduceTerm t) {
    AxisSet incoming;
    for (AxisId a : graph_.axes(t.operand) - t.axes) incoming |= target(a).axis_set();
    std::vector<IndexExpr> inner = replacement_;
    AxisSet bound;
    for (AxisId a : t.axes) {
      const AxisId name = incoming.has(a) ? fresh_(a) : a;
      while (inner.size() <= a) inner.push_back(IndexExpr::of(static_cast<AxisId>(inner.size())));
      inner[a] = IndexExpr::of(name);
      bound.insert(name);
    }
    t.axes = bound;
    if (inner == replacement_) {
      t.operand = apply(t.operand);
    } else {
      t.operand = Substitution(graph_, std::move(inner), fresh_).apply(t.operand);
    }
    return graph_.push(t);
  }

  TermGraph& graph_;
  std::vector<IndexExpr> replacement_;
  const std::function<AxisId(AxisId)>& fresh_;
  std::unordered_map<TermId, TermId> done_;
};

}  // namespace

uint64_t hash(const Term& term) {
  Hasher h;
  h.add(uint64_t{term.index()});
  std::visit([&h](const auto& t) { add_term(h, t); }, term);
  return h.value();
}

namespace {

// Calls f for each operand, in their order.
template <class F>
void each_operand(const Term& term, F f) {
  if (const auto* apply = std::get_if<ApplyTerm>(&term)) {
    for (TermId operand : apply->operands) f(operand);
  } else if (const auto* reduce = std::get_if<ReduceTerm>(&term)) {
    f(reduce->operand);
  } else if (const auto* select = std::get_if<SelectTerm>(&term)) {
    for (TermId operand : {select->then, select->otherwise}) f(operand);
  } else if (const auto* compare = std::get_if<CompareTerm>(&term)) {
    for (TermId operand : {compare->left, compare->right, compare->then, compare->otherwise}) {
      f(operand);
    }
  }
}

}  // namespace

std::vector<TermId> operands(const Term& term) {
  std::vector<TermId> list;
  each_operand(term, [&](TermId operand) { list.push_back(operand); });
  return list;
}

TermId TermGraph::push(Term term) {
  AxisSet free = own_axes(term);
  each_operand(term, [&](TermId operand) {
    SUNDOG_CHECK(operand < terms_.size());
    free |= axes_[operand];
  });
  if (const auto* reduce = std::get_if<ReduceTerm>(&term)) free = free - reduce->axes;
  const uint64_t key = hash(term);
  const auto [begin, end] = by_hash_.equal_range(key);
  for (auto at = begin; at != end; ++at) {
    if (terms_[at->second] == term) return at->second;
  }
  const TermId id = size();
  SUNDOG_CHECK(id != kNoTerm);
  terms_.push_back(std::move(term));
  axes_.push_back(free);
  by_hash_.emplace(key, id);
  return id;
}

std::vector<TermId> reachable(const TermGraph& graph, std::span<const TermId> roots) {
  std::vector<uint8_t> wanted(graph.size(), 0);
  TermId top = 0;
  for (TermId root : roots) {
    SUNDOG_CHECK(root < graph.size());
    wanted[root] = 1;
    top = std::max(top, root + 1);
  }
  std::vector<TermId> result;
  for (TermId id = top; id-- > 0;) {  // users before operands
    if (wanted[id] == 0) continue;
    result.push_back(id);
    for (TermId operand : operands(graph[id])) wanted[operand] = 1;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

TermId substitute_axes(TermGraph& graph, TermId term, const std::vector<IndexExpr>& replacement,
                       const std::function<AxisId(AxisId)>& fresh) {
  return Substitution(graph, replacement, fresh).apply(term);
}

}  // namespace sundog
