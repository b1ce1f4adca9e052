// The host part of an emitted file: NAME(...) and NAME_workspace_bytes().
#pragma once

#include <string>
#include <vector>

#include "codegen/generate.h"
#include "codegen/launch_plan.h"

namespace sundog::codegen {

std::string launcher_text(const LaunchPlan& plan, const std::vector<KernelStats>& stats,
                          const MuGraph& graph);

}  // namespace sundog::codegen
