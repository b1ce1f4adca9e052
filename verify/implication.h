// Does what has conditions on indices vanish where another condition does not hold?  Asked of Z3 as
// linear arithmetic.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "verify/canonical_form.h"

namespace sundog::verify {

// Extents of factors as they are in the file.
using FactorExtents = std::map<DomainId, int64_t>;

// A weight where all conditions (atoms of kind kCondition) hold, else 0.
struct ConditionedWeight {
  int64_t weight = 1;
  std::vector<AtomId> conditions;
};

// The sum of the terms is 0 wherever `goal relation 0` does not hold, for all values of the
// variables.  Of one term: its conditions imply the goal.  Several stand for what is written with
// the opposite of a condition, x - x (not c) = x c.
struct Implication {
  std::vector<ConditionedWeight> terms;
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
  // Whether a product of conditions follows from the conditions of another product.
  bool follows(const Forms& forms, FormId product, FormId given);

 private:
  std::map<std::string, bool> known_;
};

}  // namespace sundog::verify
