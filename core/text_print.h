// Printing of terms and index expressions, with the names of a program or of one kernel.
// NOLINT(sundog-mirror): the insides of core/text.h, tested through it
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/mugraph.h"

namespace sundog::text {

// What ids are called in the place where a term is printed.
struct Names {
  std::function<std::string(AxisId)> axis;      // an index: axis of a program, factor of a kernel
  std::function<std::string(AxisId)> sized;     // what size() takes
  std::function<std::string(uint32_t)> tensor;  // as a read of it starts: "X" or "@X"
  std::function<std::vector<IndexExpr>(uint32_t)> default_index;
  std::function<std::string(uint32_t)> computation;
  std::function<bool(std::string_view)> is_index_name;
  std::set<std::string> taken;  // names that a let must not use
};

// "4 * q.o + q.i - size(n)".
std::string index_text(const IndexExpr& e, const Names& names);
std::string condition_text(const IndexCondition& c, const Names& names);
std::string number_text(const Number& number);

class TermPrinter {
 public:
  TermPrinter(const TermGraph& terms, Names names) : terms_(terms), names_(std::move(names)) {}

  // From now on `term` is called `name`, unless it has a name already.
  void give_name(TermId term, const std::string& name) { named_.emplace(term, name); }

  // Lines `let t1[axes] = ...` for terms below `root` that are shared or nested too deep to be
  // written where they are used.  Call before text().
  std::vector<std::string> lets(TermId root);

  // The term; `force` prints its operator even if it has a name.
  std::string text(TermId term, bool force = false);
  // The same, cut short when it grows longer than about `limit` characters.
  std::string short_text(TermId term, size_t limit, bool force = false);

 private:
  std::string print(TermId term, int context, bool force);
  std::string apply(const ApplyTerm& t, int context);
  std::string compare(const CompareTerm& t);
  std::string list(const AxisSet& axes) const;
  std::string argument(TermId term) { return print(term, 0, false); }

  const TermGraph& terms_;
  Names names_;
  std::map<TermId, std::string> named_;
  int lets_ = 0;
  size_t written_ = 0, limit_ = ~size_t{0};
};

}  // namespace sundog::text
