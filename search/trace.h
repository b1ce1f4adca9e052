// What a search did, decision by decision: for `sundog trace` and `sundog explain`.
//
// A task tells its events in order.  An event that tries an alternative holds at its depth until
// another one at that depth or less; so the events with the greatest depths are the path to
// whatever comes next.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sundog::search {

enum class TraceKind : uint8_t {
  kOutputs,    // a kernel that computes `term` and the subset `index` of the other pending terms
  kCompute,    // `term` by its node `index`
  kLoad,       // `term` from an earlier kernel, which has to store it
  kShape,      // the kernel in its shape `index`
  kCut,        // by `rule`: what is decided takes `us` or more, where that is known
  kPrice,      // the kernel takes `us`; for the first time in this round
  kStructure,  // nothing is left to decide: all kernels together take `us`
};

enum class PruneRule : uint8_t { kBound, kDuplicate, kDominated, kDoesNotFit };
inline constexpr int kPruneRules = 4;
const char* name_of(PruneRule rule);  // as in reports

struct TraceEvent {
  TraceKind kind = TraceKind::kCut;
  PruneRule rule = PruneRule::kBound;
  uint16_t depth = 0;  // decisions before this one
  int32_t term = -1;   // rank in the task's bank
  uint32_t index = 0;
  float us = 0;
  bool operator==(const TraceEvent&) const = default;
};

// One task of a round.  `best_us`: what there was to beat when the round began.
struct TaskTrace {
  uint64_t round = 0;
  int bank = 0, kernels = 0;
  double best_us = 0;
  std::vector<TraceEvent> events;
  bool operator==(const TaskTrace&) const = default;
};

// The terms of a bank by rank, in words, and the nodes of each.
struct TermText {
  std::string name, axes;
  bool storable = false;  // between kernels
  std::vector<std::string> nodes;
  bool operator==(const TermText&) const = default;
};
struct TraceHead {
  std::string program, device, space;  // as text, but for the device's name
  std::vector<std::vector<TermText>> banks;
  bool operator==(const TraceHead&) const = default;
};

// The file form: TraceRecords of core/search.proto, each preceded by its length as a varint.  A
// file is one head and then tasks, so what was written until a search was killed can be read.
std::string trace_bytes(const TraceHead& head);
std::string trace_bytes(const TaskTrace& task);

struct TraceReader {
  std::function<void(const TraceHead&)> head;
  std::function<void(const TaskTrace&)> task;
};
// Errors: not a trace, a record that is damaged.  A last record that is cut short is left out, and
// `whole` is false.
Status read_trace(std::string_view bytes, const TraceReader& reader, bool* whole);

}  // namespace sundog::search
