// A softmax is one pass, and so is a norm with the product behind it: the divisor leaves the sum.
// The divergence of two softmaxes is two, since the logarithms of the divisors stand in what is
// summed.
#include "search/passes.h"

#include <algorithm>
#include <map>
#include <set>

namespace sundog::search {
namespace {

// Sums below a term in its part, one waiting for another.
struct Passes {
  int count = 0;
  AxisSet axes;  // that the last of them runs along

  void wait_for(const Passes& below) {
    if (below.count > count) count = below.count, axes = {};
    if (below.count == count) axes |= below.axes;
  }
};

class Counter {
 public:
  explicit Counter(const Program& program) : program_(program) {}

  Passes of_sum(const ReduceTerm& sum, const std::map<TermId, Passes>& known) {
    Passes here;
    seen_.clear();
    add_waits(sum.operand, sum.axes, known, here);
    if (here.count == 0 || !(here.axes & sum.axes).empty()) here = {here.count + 1, {}};
    here.axes |= sum.axes;
    return here;
  }

 private:
  // Adds what a sum over `along` has to wait for of a term of its operand: not for factors that
  // leave the sum, nor for what an exp is shifted by.
  void add_waits(TermId t, AxisSet along, const std::map<TermId, Passes>& known, Passes& here) {
    if ((program_.terms.axes(t) & along).empty() || !seen_.insert(t).second) return;
    const auto* apply = std::get_if<ApplyTerm>(&program_.terms[t]);
    const bool is_product = apply != nullptr && (std::holds_alternative<op::Mul>(apply->op) ||
                                                 std::holds_alternative<op::Div>(apply->op));
    if (is_product) {
      for (TermId o : apply->operands) add_waits(o, along, known, here);
    } else if (apply != nullptr && std::holds_alternative<op::Exp>(apply->op)) {
      const auto* shifted = std::get_if<ApplyTerm>(&program_.terms[apply->operands[0]]);
      const bool is_sum = shifted != nullptr && (std::holds_alternative<op::Add>(shifted->op) ||
                                                 std::holds_alternative<op::Sub>(shifted->op));
      for (TermId o : is_sum ? shifted->operands : apply->operands) {
        add_waits(o, along, known, here);
      }
    } else if (const auto below = known.find(t); below != known.end()) {
      here.wait_for(below->second);
    }
  }

  const Program& program_;
  std::set<TermId> seen_;
};

}  // namespace

std::vector<int> passes_of_parts(const Program& program, const std::vector<TermId>& order,
                                 size_t parts, const std::function<int(TermId)>& part_of,
                                 const std::vector<int>& made_in) {
  Counter counter(program);
  std::vector<std::map<TermId, Passes>> passes(parts);
  std::vector<int> most(parts, 1);
  for (TermId t : order) {
    if (part_of(t) < 0) continue;
    const auto part = static_cast<size_t>(part_of(t));
    Passes here;
    const auto* reduce = std::get_if<ReduceTerm>(&program.terms[t]);
    if (reduce != nullptr && reduce->kind == ReduceKind::kSum) {
      here = counter.of_sum(*reduce, passes[part]);
      most[part] = std::max(most[part], here.count);
    } else {
      for (TermId o : operands(program.terms[t])) {
        const auto below = passes[part].find(o);
        if (below != passes[part].end()) here.wait_for(below->second);
      }
    }
    passes[part][t] = here;
  }
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    const TermId value = program.outputs[o].value;
    const auto part = static_cast<size_t>(made_in[o]);
    const auto below = passes[part].find(value);
    if (below == passes[part].end()) continue;
    const bool once_more = !(below->second.axes & program.terms.axes(value)).empty();
    most[part] = std::max(most[part], below->second.count + (once_more ? 1 : 0));
  }
  return most;
}

}  // namespace sundog::search
