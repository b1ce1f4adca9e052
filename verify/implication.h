// Does one set of conditions on indices imply another?  Asked of Z3 as linear arithmetic.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "verify/canonical_form.h"

namespace sundog::verify {

// Extents of factors as they are in the file.
using FactorExtents = std::map<DomainId, int64_t>;

// The conditions (atoms of kind kCondition) imply `goal relation 0` for all values of the
// variables.
struct Implication {
  std::vector<AtomId> conditions;
  IndexRelation relation = IndexRelation::kNotPositive;
  IndexId goal = 0;
};

// The question as SMT-LIB text; nothing if an extent that it needs is not known.  Positions are
// written out with the extents of inner factors as numbers; sizes of axes and of outermost factors
// stay symbols, at least 1.
std::optional<std::string> implication_text(const Forms& forms, const Implication& question,
                                            const FactorExtents& extents);

// Asks each question once.
class Implications {
 public:
  FactorExtents extents;
  bool hold(const Forms& forms, const Implication& question);

 private:
  std::map<std::string, bool> known_;
};

}  // namespace sundog::verify
