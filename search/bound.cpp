// What is committed, and nothing else: launches, and compulsory traffic.  The program's own
// arithmetic is no bound, since algebra changes it.  A tensor that fits in the L2 is still read
// from memory once.
#include "search/bound.h"

#include <algorithm>
#include <set>

namespace sundog::search {

double structure_bound(const Machine& machine, int launches, double bytes) {
  return launches * (machine.launch_us + machine.fill_us) -
         std::max(launches - 1, 0) * machine.overlap_us + bytes / hbm_peak(machine);
}

double program_bound(const Program& program, const Machine& machine) {
  std::vector<TermId> roots;
  double bytes_moved = 0;
  for (const Output& o : program.outputs) {
    roots.push_back(o.value);
    bytes_moved += static_cast<double>(element_count(o.tensor)) * bytes(o.tensor.dtype);
  }
  std::set<uint32_t> counted;
  for (TermId t : reachable(program.terms, roots)) {
    const auto* in = std::get_if<InputTerm>(&program.terms[t]);
    if (in == nullptr || !counted.insert(in->tensor).second) continue;
    // Elements that the index reaches: a slice reads less than its tensor.
    double elements = 1;
    AxisSet seen;
    for (const IndexExpr& e : in->index) seen |= e.axis_set();
    for (AxisId a : seen) elements *= static_cast<double>(program.axes[a].extent);
    const TensorDecl& decl = program.inputs[in->tensor];
    elements = std::min(elements, static_cast<double>(element_count(decl)));
    const bool broadcast =
        std::any_of(decl.strides.begin(), decl.strides.end(), [](int64_t s) { return s == 0; });
    if (!broadcast) bytes_moved += elements * bytes(decl.dtype);
  }
  return structure_bound(machine, 1, bytes_moved);
}

}  // namespace sundog::search
