// The terms of a bank in words.
#pragma once

#include <string>
#include <vector>

#include "search/bank.h"
#include "search/term_table.h"
#include "search/trace.h"

namespace sundog::search {

// The program's name of the term, else "t7" with its rank, as in emitted µGraphs.
std::string term_name(const Bank& bank, const TermTable& table, int rank);

// "sum[h.o](t3)", "t4 * x"
std::string node_text(const Bank& bank, const TermTable& table, const RankedNode& node);

std::vector<TermText> term_texts(const Bank& bank, const TermTable& table);

}  // namespace sundog::search
