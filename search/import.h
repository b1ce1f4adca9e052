// Fills a bank with the terms of a program.
#pragma once

#include <vector>

#include "core/status.h"
#include "search/bank.h"

namespace sundog::search {

// Files every term that the outputs depend on and gives the class of each output.  Error
// kUnsupported: the bank cannot express the program (then it is computed unfused).
Result<std::vector<ClassId>> import_program(Bank& bank);

}  // namespace sundog::search
