// An earlier result as the start of a run at other sizes, or for another device.
#pragma once

#include "cli/result.h"
#include "core/device.h"
#include "core/program.h"
#include "core/status.h"
#include "search/search_space.h"

namespace sundog::cli {

// The structures of an earlier result with sizes for this program on this device (search/replan.h),
// and the program's own unfused form within `space`.  Nothing of it is verified yet.
// Errors: it is a result for another program; none of its structures fits.
Result<StoredReport> fit_start(const StoredResult& earlier, const Program& program,
                               const Device& device, const search::SearchSpace& space);

}  // namespace sundog::cli
