// Ranks: a topological order of the classes that the outputs reach.  Equal terms compute one
// another (a * b = c and c / b = a, in effect), so the graph of nodes may have cycles; a
// depth-first walk from the outputs drops the nodes that close one.
//
// What may be stored between kernels is limited by three rules, each of which the search was run
// without to see that it loses nothing: a reduction must be somewhere below (elementwise work on
// inputs is recomputed); a unary image of another term is not stored (store the term); and a term
// that is summed over a part of a tile's factors only is nobody's final result.
#include "search/term_table.h"

#include <algorithm>
#include <functional>
#include <set>

#include "search/trimmed.h"
#include "search/work.h"

namespace sundog::search {

bool is_reduction(NodeKind kind) {
  switch (kind) {
    case NodeKind::kSum:
    case NodeKind::kMax:
    case NodeKind::kOnlineSum:
      return true;
    case NodeKind::kProduct:
    case NodeKind::kLinear:
    case NodeKind::kScale:
    case NodeKind::kExp:
    case NodeKind::kReciprocal:
    case NodeKind::kOpaque:
      return false;
  }
  return false;
}

namespace {

// Index values along the axes of a set.
double domain(const Bank& bank, AxisSet axes, const Machine& machine) {
  double size = 1;
  for (AxisId base = 0; base < bank.base_count(); ++base) {
    const BaseAxis& b = bank.base(base);
    const double extent = static_cast<double>(bank.program().axes[base].extent);
    if (b.whole != kNoAxis) {
      if (axes.has(b.whole)) size *= extent;
    } else if (axes.contains(b.all)) {
      size *= extent;
    } else if (axes.has(b.tile) && (b.step == kNoAxis || axes.has(b.step))) {
      size *= std::max(1.0, extent / machine.sms);  // one part of many
    }
  }
  return size;
}

class Ranker {
 public:
  Ranker(const Bank& bank, const std::vector<ClassId>& outputs, const Machine& machine,
         bool store_anything)
      : bank_(bank), outputs_(outputs), machine_(machine), store_anything_(store_anything) {
    note_masks();
  }

  TermTable run() {
    state_.assign(bank_.size(), State::kNew);
    nodes_.resize(bank_.size());
    for (ClassId c : outputs_) {
      if (state_[c] == State::kNew) walk(c);
    }
    drop_dead_ends();
    rank();
    for (RankedTerm& t : table_.terms) t.storable = is_storable(t);
    if (!store_anything_) store_last_images();
    for (ClassId c : outputs_) table_.outputs.push_back(rank_[c]);
    return std::move(table_);
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };

  bool is_leaf(ClassId c) const { return bank_[c].leaf != LeafKind::kNone || bank_.is_constant(c); }

  void walk(ClassId c) {
    state_[c] = State::kOpen;
    if (!is_leaf(c)) {
      for (const Node& n : bank_[c].nodes) {
        bool cycle = false;
        for (ClassId o : n.operands) {
          if (state_[o] == State::kNew) walk(o);
          cycle = cycle || state_[o] == State::kOpen;
        }
        if (!cycle) nodes_[c].push_back(n);
      }
    }
    state_[c] = State::kDone;
    order_.push_back(c);
  }

  // A class that lost all its nodes cannot be computed, nor can what needs it.
  void drop_dead_ends() {
    computable_.assign(bank_.size(), false);
    for (ClassId c : order_) {
      std::erase_if(nodes_[c], [&](const Node& n) {
        return !std::all_of(n.operands.begin(), n.operands.end(),
                            [&](ClassId o) { return computable_[o]; });
      });
      computable_[c] = is_leaf(c) || !nodes_[c].empty();
    }
  }

  void rank() {
    std::vector<bool> reached(bank_.size(), false);
    const std::function<void(ClassId)> reach = [&](ClassId c) {
      if (reached[c]) return;
      reached[c] = true;
      for (const Node& n : nodes_[c]) {
        for (ClassId o : n.operands) reach(o);
      }
    };
    for (ClassId c : outputs_) reach(c);
    rank_.assign(bank_.size(), -1);
    for (ClassId c : order_) {
      if (!reached[c] || !computable_[c]) continue;
      rank_[c] = table_.size();
      RankedTerm t;
      t.id = c;
      t.axes = bank_[c].axes;
      t.leaf = bank_.is_constant(c) ? LeafKind::kConstant : bank_[c].leaf;
      t.inline_only = bank_[c].inline_only;
      for (const Node& n : nodes_[c]) {
        RankedNode r;
        r.node = n;
        for (ClassId o : n.operands) r.operands.push_back(rank_[o]);
        r.work = work_of_node(n);
        t.nodes.push_back(std::move(r));
      }
      table_.terms.push_back(std::move(t));
    }
    table_.too_large = table_.size() > kMostRanks;
    for (RankedTerm& t : table_.terms) measure(t);
  }

  // What masks leave of the index space of their axes: loops are trimmed to it.
  void note_masks() {
    const Program& program = bank_.program();
    std::vector<TermId> roots;
    for (const Output& o : program.outputs) roots.push_back(o.value);
    std::vector<IndexCondition> masks;
    for (TermId t : reachable(program.terms, roots)) {
      const auto* select = std::get_if<SelectTerm>(&program.terms[t]);
      if (select == nullptr) continue;
      if (!std::holds_alternative<ConstantTerm>(program.terms[select->otherwise])) continue;
      masks.push_back(select->condition);
      masked_ |= select->condition.expr.axis_set();
    }
    std::vector<int64_t> extents;
    for (const Axis& a : program.axes) extents.push_back(a.extent);
    if (!masks.empty()) kept_ = kept_share(masks, extents);
  }

  bool has_masked(AxisSet axes) const {
    for (AxisId base : masked_) {
      const BaseAxis& b = bank_.base(base);
      const AxisSet own = b.whole != kNoAxis ? AxisSet::of(b.whole) : b.all;
      if ((axes & own).empty()) return false;
    }
    return !masked_.empty();
  }

  // What the node takes at least, if nothing is computed twice.  A product may be the inside of a
  // matrix product, and a sum is fused with what it sums.
  WorkTime work_of_node(const Node& n) const {
    AxisSet axes;
    for (ClassId o : n.operands) axes |= bank_[o].axes;
    double count = domain(bank_, axes, machine_);
    if (has_masked(axes)) count *= kept_;
    switch (n.kind) {
      case NodeKind::kProduct:
        return {count / tensor_peak(machine_), 0, 0};
      case NodeKind::kLinear:
        return {0, count / machine_.alu_rate, 0};
      case NodeKind::kExp:
      case NodeKind::kReciprocal:
        return {0, 0, count / machine_.sfu_rate};
      case NodeKind::kOpaque: {
        const auto* apply = std::get_if<ApplyTerm>(&bank_.opaque(n.opaque).term);
        const Work work = apply == nullptr ? Work{1, 0} : work_of(apply->op);
        return {0, count * work.alu / machine_.alu_rate, count * work.sfu / machine_.sfu_rate};
      }
      case NodeKind::kScale:
      case NodeKind::kSum:
      case NodeKind::kMax:
      case NodeKind::kOnlineSum:
        return {};
    }
    return {};
  }

  void measure(RankedTerm& t) {
    const Program& program = bank_.program();
    if (t.leaf == LeafKind::kInput) {
      const auto& in = std::get<InputTerm>(program.terms[bank_[t.id].term]);
      t.bytes = bytes(program.inputs[in.tensor].dtype);
    }
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (outputs_[o] == t.id) t.bytes = bytes(program.outputs[o].tensor.dtype);
    }
    t.total_bytes = t.leaf == LeafKind::kConstant || t.leaf == LeafKind::kIndex ? 0 : t.bytes;
    for (AxisId base = 0; base < bank_.base_count(); ++base) {
      const BaseAxis& b = bank_.base(base);
      const double extent = static_cast<double>(program.axes[base].extent);
      const bool whole =
          (b.whole != kNoAxis && t.axes.has(b.whole)) || (b.tile != kNoAxis && t.axes.has(b.tile));
      if (whole)
        t.total_bytes *= extent;
      else if (b.part != kNoAxis && t.axes.has(b.part))
        t.total_bytes *= 2;
    }
  }

  bool is_storable(const RankedTerm& t) const {
    if (t.leaf != LeafKind::kNone || t.inline_only) return false;
    if (!store_anything_ && !reduces_below(rank_[t.id])) return false;
    for (AxisId base = 0; base < bank_.base_count(); ++base) {
      const BaseAxis& b = bank_.base(base);
      if (!b.reduced) continue;
      const AxisSet here = t.axes & b.all;
      const bool only_part = b.part != kNoAxis && here == AxisSet::of(b.part);
      if (!here.empty() && !(here == b.all) && !only_part) return false;
    }
    return store_anything_ || !is_image(t);
  }

  // Whether a single other term determines it, element by element.
  bool is_image(const RankedTerm& t) const {
    return std::any_of(t.nodes.begin(), t.nodes.end(), [&](const RankedNode& n) {
      switch (n.node.kind) {
        case NodeKind::kScale:
        case NodeKind::kExp:
        case NodeKind::kReciprocal:
          return true;
        case NodeKind::kOpaque:
          return n.operands.size() == 1;
        case NodeKind::kLinear:
          return table_.terms[static_cast<size_t>(n.operands[0])].leaf == LeafKind::kConstant ||
                 table_.terms[static_cast<size_t>(n.operands[1])].leaf == LeafKind::kConstant;
        case NodeKind::kProduct:
        case NodeKind::kSum:
        case NodeKind::kMax:
        case NodeKind::kOnlineSum:
          return false;
      }
      return false;
    });
  }

  // Of a term that nothing reads but an image of it, the image is stored in its place: it is as
  // large, and worked out once.  Sums of products stay: a library makes those and no image of them.
  void store_last_images() {
    std::vector<std::set<int>> readers(table_.terms.size());
    for (int r = 0; r < table_.size(); ++r) {
      for (const RankedNode& n : table_.terms[static_cast<size_t>(r)].nodes) {
        for (int o : n.operands) readers[static_cast<size_t>(o)].insert(r);
      }
    }
    for (int r = 0; r < table_.size(); ++r) {
      if (sums_products(table_.terms[static_cast<size_t>(r)])) continue;
      int last = r;
      while (readers[static_cast<size_t>(last)].size() == 1) {
        const int reader = *readers[static_cast<size_t>(last)].begin();
        const RankedTerm& t = table_.terms[static_cast<size_t>(reader)];
        if (t.storable || t.leaf != LeafKind::kNone || t.inline_only || !is_image(t)) break;
        if (std::find(outputs_.begin(), outputs_.end(), t.id) != outputs_.end()) break;
        if (!(t.axes == table_.terms[static_cast<size_t>(r)].axes)) break;
        last = reader;
      }
      RankedTerm& first = table_.terms[static_cast<size_t>(r)];
      if (last == r || !first.storable) continue;
      first.storable = false;
      table_.terms[static_cast<size_t>(last)].storable = true;
    }
  }

  // Of two different terms.
  bool sums_products(const RankedTerm& t) const {
    const auto multiplies = [](const RankedNode& n) {
      return n.node.kind == NodeKind::kProduct && n.operands.front() != n.operands.back();
    };
    return std::any_of(t.nodes.begin(), t.nodes.end(), [&](const RankedNode& n) {
      if (n.node.kind != NodeKind::kSum) return false;
      const auto& summed = table_.terms[static_cast<size_t>(n.operands.back())].nodes;
      return std::any_of(summed.begin(), summed.end(), multiplies);
    });
  }

  bool reduces_below(int rank) const {
    if (reduces_.empty()) {
      for (const RankedTerm& t : table_.terms) {
        bool below = false;
        for (const RankedNode& n : t.nodes) {
          below = below || is_reduction(n.node.kind);
          for (int o : n.operands) below = below || reduces_[static_cast<size_t>(o)];
        }
        reduces_.push_back(below);
      }
    }
    return reduces_[static_cast<size_t>(rank)];
  }

  const Bank& bank_;
  const std::vector<ClassId>& outputs_;
  const Machine& machine_;
  const bool store_anything_;
  AxisSet masked_;   // axes of the program that masks name
  double kept_ = 1;  // of their index space
  std::vector<State> state_;
  std::vector<std::vector<Node>> nodes_;
  std::vector<ClassId> order_;
  std::vector<bool> computable_;
  std::vector<int> rank_;
  mutable std::vector<bool> reduces_;
  TermTable table_;
};

}  // namespace

TermTable term_table(const Bank& bank, const std::vector<ClassId>& outputs, const Machine& machine,
                     bool store_anything) {
  return Ranker(bank, outputs, machine, store_anything).run();
}

int drop_expensive(TermTable& table, double limit_us) {
  int dropped = 0;
  std::vector<double> least(table.terms.size(), 0);
  for (size_t i = 0; i < table.terms.size(); ++i) {
    RankedTerm& t = table.terms[i];
    if (t.nodes.empty()) continue;
    double best = limit_us;
    for (RankedNode& n : t.nodes) {
      double us = 0;
      for (int o : n.operands) us = std::max(us, least[static_cast<size_t>(o)]);
      us += std::max({n.work.tensor, n.work.alu, n.work.sfu});
      best = std::min(best, us);
      dropped += !n.dropped && us >= limit_us ? 1 : 0;
      n.dropped = us >= limit_us;
    }
    least[i] = best;
  }
  return dropped;
}

}  // namespace sundog::search
