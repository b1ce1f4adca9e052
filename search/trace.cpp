// A record for each task, with its events in columns: numbers of one kind stand together, and a
// column that is seldom used costs nothing where it is not.  An event takes four to eight bytes so,
// against some twenty as a message of its own.
#include "search/trace.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <optional>

#include "core/proto.h"
#include "core/search.pb.h"

namespace sundog::search {
namespace {

constexpr uint32_t kMostRecordBytes = uint32_t{1} << 28;
constexpr size_t kMostLengthBytes = 5;  // of a varint

bool tries(TraceKind kind) {
  switch (kind) {
    case TraceKind::kOutputs:
    case TraceKind::kCompute:
    case TraceKind::kLoad:
    case TraceKind::kShape:
      return true;
    case TraceKind::kCut:
    case TraceKind::kPrice:
    case TraceKind::kStructure:
      return false;
  }
  return false;
}

std::string delimited(const proto::TraceRecord& record) {
  const std::string body = record.SerializeAsString();
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  {
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.WriteVarint32(static_cast<uint32_t>(body.size()));
    coded.WriteString(body);
  }
  return bytes;
}

void put(const TraceEvent& e, proto::TraceRecord::Task* to) {
  to->add_kinds(static_cast<uint32_t>(e.kind));
  if (tries(e.kind)) {
    to->add_depths(e.depth);
    to->add_terms(static_cast<uint32_t>(e.term + 1));
    to->add_indices(e.index);
  } else {
    to->add_us(e.us);
    if (e.kind == TraceKind::kCut) to->add_rules(static_cast<uint32_t>(e.rule));
  }
}

// Nothing if the columns do not agree.
std::optional<TaskTrace> task_of(const proto::TraceRecord::Task& from) {
  TaskTrace task{from.round(), from.bank(), from.kernels(), from.best_us(), {}};
  int tried = 0, others = 0, cuts = 0;
  const int most_tried = std::min({from.depths_size(), from.terms_size(), from.indices_size()});
  for (const uint32_t kind : from.kinds()) {
    if (kind > static_cast<uint32_t>(TraceKind::kStructure)) return std::nullopt;
    TraceEvent e;
    e.kind = static_cast<TraceKind>(kind);
    if (tries(e.kind)) {
      if (tried >= most_tried) return std::nullopt;
      e.depth = static_cast<uint16_t>(from.depths(tried));
      e.term = static_cast<int32_t>(from.terms(tried)) - 1;
      e.index = from.indices(tried);
      ++tried;
    } else {
      if (others >= from.us_size()) return std::nullopt;
      e.us = from.us(others++);
      if (e.kind == TraceKind::kCut) {
        if (cuts >= from.rules_size() || from.rules(cuts) >= kPruneRules) return std::nullopt;
        e.rule = static_cast<PruneRule>(from.rules(cuts++));
      }
    }
    task.events.push_back(e);
  }
  return task;
}

TraceHead head_of(const proto::TraceRecord::Head& from) {
  TraceHead head{from.program(), from.device(), from.space(), {}};
  for (const auto& b : from.banks()) {
    auto& bank = head.banks.emplace_back();
    for (const auto& t : b.terms()) {
      bank.push_back({t.name(), t.axes(), t.storable(), {t.nodes().begin(), t.nodes().end()}});
    }
  }
  return head;
}

}  // namespace

const char* name_of(PruneRule rule) {
  switch (rule) {
    case PruneRule::kBound:
      return "bound";
    case PruneRule::kDuplicate:
      return "duplicate";
    case PruneRule::kDominated:
      return "dominated";
    case PruneRule::kDoesNotFit:
      return "does not fit";
  }
  return "";
}

std::string trace_bytes(const TraceHead& head) {
  proto::TraceRecord record;
  proto::TraceRecord::Head& to = *record.mutable_head();
  to.set_program(head.program);
  to.set_device(head.device);
  to.set_space(head.space);
  for (const auto& bank : head.banks) {
    auto& b = *to.add_banks();
    for (const TermText& t : bank) {
      auto& term = *b.add_terms();
      term.set_name(t.name);
      term.set_axes(t.axes);
      term.set_storable(t.storable);
      for (const std::string& n : t.nodes) term.add_nodes(n);
    }
  }
  return delimited(record);
}

std::string trace_bytes(const TaskTrace& task) {
  proto::TraceRecord record;
  proto::TraceRecord::Task& to = *record.mutable_task();
  to.set_round(task.round);
  to.set_bank(task.bank);
  to.set_kernels(task.kernels);
  to.set_best_us(task.best_us);
  for (const TraceEvent& e : task.events) put(e, &to);
  return delimited(record);
}

Status read_trace(std::string_view bytes, const TraceReader& reader, bool* whole) {
  *whole = true;
  bool first = true;
  while (!bytes.empty()) {
    google::protobuf::io::CodedInputStream coded(
        reinterpret_cast<const uint8_t*>(bytes.data()),
        static_cast<int>(std::min<size_t>(bytes.size(), 16)));
    uint32_t size = 0;
    const bool counted = coded.ReadVarint32(&size);
    const size_t at = static_cast<size_t>(coded.CurrentPosition());
    const bool cut_short = counted ? size <= kMostRecordBytes && size > bytes.size() - at
                                   : bytes.size() < kMostLengthBytes;
    if (cut_short && !first) {
      *whole = false;
      return {};
    }
    proto::TraceRecord record;
    const bool read = counted && size <= kMostRecordBytes && size <= bytes.size() - at &&
                      parse_message(bytes.substr(at, size), &record);
    if (!read || record.has_head() != first) {
      return bad_input(first ? "these bytes are no trace of a search" : "the trace is damaged");
    }
    bytes.remove_prefix(at + size);
    if (first) {
      reader.head(head_of(record.head()));
    } else {
      const auto task = task_of(record.task());
      if (!task) return bad_input("the trace is damaged");
      reader.task(*task);
    }
    first = false;
  }
  if (first) return bad_input("an empty file is no trace of a search");
  return {};
}

}  // namespace sundog::search
