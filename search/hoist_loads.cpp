// Placement writes reads where they are used; which reads share one load, and where in the loop
// nest it stands, is decided here once for all kernels, fused or not.  Two readers in the same loop
// share a load.  Two loops over the same factor load twice: holding the tile across them is the
// structure with one iteration, which the sizes may choose.
#include "search/hoist_loads.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "search/term_copy.h"

namespace sundog::search {
namespace {

class LoadHoister {
 public:
  LoadHoister(const MuGraph& graph, Kernel& kernel) : graph_(graph), kernel_(kernel) {
    for (AxisId f : kernel.grid) outside_.insert(f);
    for (const Computation& c : kernel.computations) names_.insert(c.name);
  }

  void run() { walk(kernel_.body); }

 private:
  // Loads to insert at the start of one loop body (or of the block).
  struct Level {
    AxisSet loops;  // factors of this loop and those around it
    std::map<TermId, uint32_t> loads;
    std::vector<Statement> statements;
  };

  void walk(std::vector<Statement>& body) {
    Level level;
    if (!levels_.empty()) level.loops = levels_.back().loops;
    if (current_ != kNoLoop) level.loops.insert(current_);
    levels_.push_back(level);
    for (Statement& s : body) {
      if (const auto* compute = std::get_if<Compute>(&s.node)) {
        rewrite(compute->computation);
      } else if (auto* loop = std::get_if<Loop>(&s.node)) {
        const AxisId before = current_;
        current_ = loop->factor;
        walk(loop->body);
        current_ = before;
      }
    }
    body.insert(body.begin(), levels_.back().statements.begin(), levels_.back().statements.end());
    levels_.pop_back();
  }

  void rewrite(uint32_t computation) {
    const TermId root = kernel_.computations[computation].value;
    if (std::holds_alternative<InputTerm>(kernel_.terms[root])) return;  // a load already
    seen_.assign(kernel_.terms.size(), false);
    std::vector<TermId> plain;
    collect(root, plain);
    if (plain.empty()) return;
    std::sort(plain.begin(), plain.end());
    std::vector<std::pair<TermId, TermId>> local;
    for (TermId t : plain) local.push_back({t, load(t)});
    TermCopier copier(kernel_.terms, kernel_.terms);
    copier.replace = [&](TermId t) -> std::optional<TermId> {
      const auto it = std::find_if(local.begin(), local.end(),
                                   [&](const auto& item) { return item.first == t; });
      return it == local.end() ? std::nullopt : std::optional(it->second);
    };
    kernel_.computations[computation].value = copier.copy(root);
  }

  // Reads under `term` that may be hoisted.  Terms share what is below them: each is visited once.
  void collect(TermId term, std::vector<TermId>& out) {
    if (seen_[term]) return;
    seen_[term] = true;
    const Term& t = kernel_.terms[term];
    if (const auto* in = std::get_if<InputTerm>(&t)) {
      if (is_plain(*in)) out.push_back(term);
    } else if (const auto* select = std::get_if<SelectTerm>(&t)) {
      for (TermId branch : {select->then, select->otherwise}) {
        if (always_inside(branch)) collect(branch, out);
      }
    } else {
      for (TermId o : operands(t)) collect(o, out);
    }
  }

  // Whether every read under a branch stays inside its tensor whatever the condition says.
  bool always_inside(TermId term) const {
    const std::vector<TermId> below = reachable(kernel_.terms, std::array{term});
    return std::all_of(below.begin(), below.end(), [&](TermId o) {
      const auto* in = std::get_if<InputTerm>(&kernel_.terms[o]);
      return in == nullptr || in->index == default_index(kernel_, graph_.tensors[in->tensor].decl);
    });
  }

  // Each dimension runs along one axis of the µGraph.
  bool is_plain(const InputTerm& in) const {
    AxisSet seen;
    for (const IndexExpr& e : in.index) {
      const auto axis = [&](const IndexExpr::Item& i) { return kernel_.factors[i.axis].axis; };
      for (const auto& item : e.axes) {
        if (axis(item) != axis(e.axes.front())) return false;
      }
      if (!(e.axis_set() & seen).empty()) return false;  // a diagonal
      seen |= e.axis_set();
    }
    return true;
  }

  TermId load(TermId term) {
    const auto& in = std::get<InputTerm>(kernel_.terms[term]);
    AxisSet used;
    for (const IndexExpr& e : in.index) used |= e.axis_set();
    size_t depth = levels_.size() - 1;
    while (depth > 0 && (levels_[depth].loops & used) == (levels_[depth - 1].loops & used)) --depth;
    Level& level = levels_[depth];
    const AxisSet tile = used - level.loops - outside_;
    auto [it, fresh] = level.loads.try_emplace(term, 0);
    if (fresh) {
      Computation c;
      c.name = fresh_name(graph_.tensors[in.tensor].decl.name);
      for (AxisId f : tile_order(in, tile)) c.axes.push_back(f);
      c.value = term;
      c.dtype = graph_.tensors[in.tensor].decl.dtype;
      it->second = static_cast<uint32_t>(kernel_.computations.size());
      kernel_.computations.push_back(std::move(c));
      level.statements.emplace_back().node = Compute{it->second};
    }
    return kernel_.terms.local(it->second, tile);
  }

  // Tile factors in the order of the tensor's dimensions, so that the last is contiguous in memory.
  static std::vector<AxisId> tile_order(const InputTerm& in, AxisSet tile) {
    std::vector<AxisId> order;
    for (const IndexExpr& e : in.index) {
      for (const auto& item : e.axes) {
        if (tile.has(item.axis)) order.push_back(item.axis);
      }
    }
    return order;
  }

  std::string fresh_name(std::string base) {
    for (char& ch : base) ch = static_cast<char>(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
    std::string name = base + "s";
    for (int n = 2; !names_.insert(name).second; ++n) name = base + "s" + std::to_string(n);
    return name;
  }

  static constexpr AxisId kNoLoop = ~AxisId{0};
  const MuGraph& graph_;
  Kernel& kernel_;
  AxisId current_ = kNoLoop;
  AxisSet outside_;
  std::set<std::string> names_;
  std::vector<Level> levels_;
  std::vector<bool> seen_;  // terms of the value that is looked at
};

}  // namespace

void hoist_loads(const MuGraph& graph, Kernel& kernel) { LoadHoister(graph, kernel).run(); }

}  // namespace sundog::search
