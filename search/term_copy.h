// Copies terms from one graph to another over other axes: from a program into a kernel, whose axes
// are factors, or from a kernel into the same kernel with factors dropped.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/mugraph.h"

namespace sundog::search {

class TermCopier {
 public:
  // `index_of[a]` is what axis a of `from` is in `to`; a reduction over a becomes one over all axes
  // of index_of[a].  `from` and `to` must outlive the copier.
  TermCopier(const TermGraph& from, TermGraph& to, std::vector<IndexExpr> index_of)
      : from_(&from), to_(&to), index_of_(std::move(index_of)) {}
  // Over the same axes.
  TermCopier(const TermGraph& from, TermGraph& to) : from_(&from), to_(&to), same_axes_(true) {}

  // Asked first for each term: a result stands for the copy.
  std::function<std::optional<TermId>(TermId)> replace;

  TermId copy(TermId term);
  IndexExpr copy(const IndexExpr& e) const { return same_axes_ ? e : substitute(e, index_of_); }
  AxisSet copy(AxisSet axes) const;

 private:
  TermId copy_anew(const Term& term);

  const TermGraph* from_;
  TermGraph* to_;
  std::vector<IndexExpr> index_of_;
  bool same_axes_ = false;
  std::vector<TermId> done_;  // by term of `from`; kNoTerm: not yet
};

// Lets the value of computation `reader` read computation `to` wherever it reads `from`, which has
// the same axes.
void read_instead(Kernel& kernel, uint32_t reader, uint32_t from, uint32_t to);

}  // namespace sundog::search
