// Range classes: how a term behaves in floating point, as far as it can be read off its form.
//
// Over the reals exp(x) / sum exp(x) and its version with the maximum taken off are one term, and
// so are the two formulas of a variance.  On a machine they are not, so the range class is part of
// what makes two terms the same: safe and unsafe forms are never merged, and since every term is
// decomposed within its own class, no candidate contains a form that the program does not ask for.
#pragma once

#include <cstdint>

namespace sundog::search {

using RangeClass = uint8_t;                     // a set of the bits below; 0 is the best
inline constexpr RangeClass kUnboundedExp = 1;  // an exp whose argument is not <= 0 by construction
inline constexpr RangeClass kCancelling = 2;    // a difference of quantities that may nearly agree

}  // namespace sundog::search
