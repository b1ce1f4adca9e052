// A load is planned beside what reads it first.  Where loops have vanished because their tiles hold
// whole rows, that leaves loads behind reductions over all threads, and memory is waited for again
// after each of them: a third of the time of a kernel of one row a block.  Started together they
// are waited for once.  Registers are the price: where loops or products want them, and other
// blocks on the SM load meanwhile, those to registers stay where they are.
#include "search/early_loads.h"

#include <algorithm>

namespace sundog::search {

void start_loads_early(const MuGraph& graph, Kernel& kernel, bool registers) {
  // 0: a load of an input, 1: of what an earlier kernel leaves, 2: anything else.
  const auto rank = [&](const Statement& statement) {
    const auto* compute = std::get_if<Compute>(&statement.node);
    if (compute == nullptr) return 2;
    const Computation& c = kernel.computations[compute->computation];
    const auto* load = std::get_if<InputTerm>(&kernel.terms[c.value]);
    if (load == nullptr || (!registers && c.storage != Storage::kShared)) return 2;
    return graph.tensors[load->tensor].role == TensorRole::kInput ? 0 : 1;
  };
  std::stable_sort(kernel.body.begin(), kernel.body.end(),
                   [&](const Statement& a, const Statement& b) { return rank(a) < rank(b); });
}

}  // namespace sundog::search
