// Whether elements of a tensor share memory.
#pragma once

#include "core/program.h"

namespace sundog {

// Whether two elements have one place.  Strides that are neither nested nor shown to be apart in a
// million steps count as such, and those that no memory has room for.
bool elements_share_memory(const TensorDecl& tensor);

}  // namespace sundog
