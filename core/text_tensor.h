// The parts of a tensor declaration that do not depend on what its axes are: strides, offset,
// alignment, range, and the limits on sizes.
// NOLINT(sundog-mirror): the insides of core/text.h, tested through it
#pragma once

#include <functional>
#include <optional>

#include "core/program.h"
#include "core/text_syntax.h"

namespace sundog::text {

using IntegerOf = std::function<std::optional<int64_t>(const Ident&)>;

// Fills in what follows the axes of `syntax`.
// require: name, dtype, dims and extents of `to` are set.
void set_attributes(const TensorSyntax& syntax, const IntegerOf& value_of, bool written,
                    Diagnostics& diagnostics, TensorDecl& to);

// The factor that lacks its extent in a split of `extent` gets the least that covers it.  Gives the
// extents, outer to inner.
std::vector<int64_t> split_extents(const SplitSyntax& syntax, int64_t extent,
                                   const IntegerOf& value_of, bool exact, Diagnostics& diagnostics);

}  // namespace sundog::text
