// The files that a search reads and writes besides its result.
#pragma once

#include "cli/options.h"
#include "cli/pipeline.h"
#include "core/status.h"
#include "search/search_space.h"

namespace sundog::cli {

// --space FILE; `space` keeps its value without.
Status take_space(const Invocation& invocation, search::SearchSpace* space);
Result<search::SearchSpace> read_space(const std::string& path);

// --checkpoint FILE, or a folder to keep it in: what to go on from, and where to save.  A
// checkpoint of another search is refused later, by the search, with a note; a file that is no
// checkpoint at all is an error, since it is not ours to write over.
Status take_checkpoint(const Invocation& invocation, PipelineOptions* options);

// --trace FILE: an event file, written as the search goes.
Status take_trace(const Invocation& invocation, PipelineOptions* options);

}  // namespace sundog::cli
