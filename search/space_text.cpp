// One table joins the struct's members to the message's fields by name; reflection does the rest,
// so that a new member is one row here and one field there.
#include "search/space_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <span>
#include <variant>

#include "core/check.h"
#include "core/search.pb.h"

namespace sundog::search {
namespace {

struct Member {
  const char* name;
  std::variant<bool SearchSpace::*, int SearchSpace::*, int64_t SearchSpace::*> at;
  int64_t low = 0, high = 1;
};

constexpr int64_t kMostKept = 1000;

std::span<const Member> members() {
  static const Member kMembers[] = {
      {"flatten", &SearchSpace::flatten},
      {"exchange", &SearchSpace::exchange},
      {"distribute", &SearchSpace::distribute},
      {"factor", &SearchSpace::factor},
      {"split_exp", &SearchSpace::split_exp},
      {"shift_exp", &SearchSpace::shift_exp},
      {"online", &SearchSpace::online},
      {"nested_loops", &SearchSpace::nested_loops},
      {"nested_parallel_loops", &SearchSpace::nested_parallel_loops},
      {"most_kernels", &SearchSpace::most_kernels, 1, 16},
      {"most_split_axes", &SearchSpace::most_split_axes, 0, 2},
      {"last_block", &SearchSpace::last_block},
      {"cluster", &SearchSpace::cluster},
      {"library_gemm", &SearchSpace::library_gemm},
      {"shortest_loop", &SearchSpace::shortest_loop, 1, int64_t{1} << 40},
      {"kept_per_kind", &SearchSpace::kept_per_kind, 1, kMostKept},
      {"sizes_per_structure", &SearchSpace::sizes_per_structure, 1, kMostKept},
      {"prune_by_bound", &SearchSpace::prune_by_bound},
      {"prune_duplicates", &SearchSpace::prune_duplicates},
      {"prune_dominated", &SearchSpace::prune_dominated},
      {"prune_outclassed", &SearchSpace::prune_outclassed},
      {"prune_more_kernels", &SearchSpace::prune_more_kernels},
      {"store_anything", &SearchSpace::store_anything},
      {"as_written", &SearchSpace::as_written},
  };
  return kMembers;
}

const google::protobuf::FieldDescriptor* field_of(const Member& m) {
  const auto* field = proto::SearchSpace::descriptor()->FindFieldByName(m.name);
  SUNDOG_CHECK(field != nullptr);
  return field;
}

int64_t value_of(const SearchSpace& space, const Member& m) {
  return std::visit([&](auto at) { return static_cast<int64_t>(space.*at); }, m.at);
}

void set(SearchSpace& space, const Member& m, int64_t value) {
  std::visit([&](auto at) { space.*at = static_cast<std::decay_t<decltype(space.*at)>>(value); },
             m.at);
}

// Keeps the first complaint.
class Complaints : public google::protobuf::io::ErrorCollector {
 public:
  explicit Complaints(std::string file) : file_(std::move(file)) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!error) error = bad_input(message, "", Position{file_, line + 1, column + 1});
  }
  std::optional<Error> error;

 private:
  std::string file_;
};

}  // namespace

std::string print(const SearchSpace& space) {
  proto::SearchSpace message;
  for (const Member& m : members()) {
    const auto* field = field_of(m);
    if (std::holds_alternative<bool SearchSpace::*>(m.at)) {
      message.GetReflection()->SetBool(&message, field, value_of(space, m) != 0);
    } else {
      message.GetReflection()->SetInt64(&message, field, value_of(space, m));
    }
  }
  std::string text;
  SUNDOG_CHECK(google::protobuf::TextFormat::PrintToString(message, &text));
  return text;
}

Result<SearchSpace> parse_space(std::string_view text, const std::string& file_name) {
  proto::SearchSpace message;
  google::protobuf::TextFormat::Parser parser;
  google::protobuf::TextFormat::ParseInfoTree places;
  Complaints complaints(file_name);
  parser.RecordErrorsTo(&complaints);
  parser.WriteLocationsTo(&places);
  const bool parsed = parser.ParseFromString(std::string(text), &message);
  if (complaints.error) {
    complaints.error->hint = "sundog space prints the fields";
    return *complaints.error;
  }
  if (!parsed) return bad_input(file_name + " is no search space");
  SearchSpace space;
  for (const Member& m : members()) {
    const auto* field = field_of(m);
    if (!message.GetReflection()->HasField(message, field)) continue;
    const int64_t value = std::holds_alternative<bool SearchSpace::*>(m.at)
                              ? message.GetReflection()->GetBool(message, field)
                              : message.GetReflection()->GetInt64(message, field);
    if (value < m.low || value > m.high) {
      const auto place = places.GetLocation(field, -1);
      return bad_input(std::string(m.name) + " must be between " + std::to_string(m.low) + " and " +
                           std::to_string(m.high),
                       "", Position{file_name, place.line + 1, place.column + 1});
    }
    set(space, m, value);
  }
  return space;
}

}  // namespace sundog::search
