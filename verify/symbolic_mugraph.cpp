// Kernels in order, each a function of what the ones before stored.
#include "verify/symbolic_mugraph.h"

#include "verify/symbolic_kernel.h"

namespace sundog::verify {
namespace {

// Domains of all factors first: an axis of partial results is the domain of its grid factor.
GraphSymbols graph_symbols(Forms& forms, const MuGraph& graph, const Program& program,
                           const AxisSymbols& axes, FactorExtents* extents) {
  GraphSymbols symbols;
  symbols.domains = axes.domains;
  symbols.variables = axes.variables;
  symbols.domains.resize(graph.axes.size());
  symbols.factors.resize(graph.kernels.size());
  symbols.stored.resize(graph.tensors.size());
  // An axis of partial results stems from an earlier kernel, whose factors are known by then.
  const auto define_partial = [&](uint32_t kernel) {
    for (size_t a = program.axes.size(); a < graph.axes.size(); ++a) {
      if (graph.axes[a].kernel != kernel) continue;
      symbols.domains[a] = symbols.factors[kernel][graph.axes[a].factor];
    }
  };
  for (uint32_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    for (const Factor& factor : kernel.factors) {
      const bool whole = sundog::factors_of(kernel, factor.axis).size() == 1 &&
                         factor.extent == graph.axes[factor.axis].extent;
      if (graph.axes[factor.axis].kernel != kNone && graph.axes[factor.axis].kernel >= k) {
        forms.fail("a kernel uses partial results of a later one");
        return symbols;
      }
      const DomainId domain = whole ? symbols.domains[factor.axis]
                                    : forms.indices.domain(kernel.name + "." + factor.name);
      symbols.factors[k].push_back(domain);
      if (!whole) extents->emplace(domain, factor.extent);
    }
    define_partial(k);
  }
  for (size_t a = program.axes.size(); a < graph.axes.size(); ++a) {
    symbols.variables.push_back(forms.indices.variable(graph.axes[a].name, symbols.domains[a]));
  }
  return symbols;
}

}  // namespace

SymbolicMuGraph symbolic_mugraph(SymbolicAlgebra& algebra, const MuGraph& graph,
                                 const Program& program, const AxisSymbols& axes,
                                 Implications& implications) {
  Forms& forms = algebra.forms();
  SymbolicMuGraph result;
  GraphSymbols symbols = graph_symbols(forms, graph, program, axes, &implications.extents);
  for (uint32_t k = 0; k < graph.kernels.size() && !forms.failure(); ++k) {
    SymbolicKernel(algebra, graph, k, symbols, result, implications).run();
  }
  for (size_t i = 0; i < program.outputs.size() && !forms.failure(); ++i) {
    result.outputs.push_back(*symbols.stored[program.inputs.size() + i]);
  }
  return result;
}

}  // namespace sundog::verify
