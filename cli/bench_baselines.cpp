#include "cli/bench_baselines.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/temporary_folder.h"

namespace sundog::cli {

// python/bench, by cli/embed.cmake.
extern const std::string_view bench___main__, bench_attention, bench_clock, bench_methods,
    bench_terms, bench_writer;

namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// The last line of a text that says something.
std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return {};
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

const Value* field(const Struct& object, const std::string& key) {
  const auto found = object.fields().find(key);
  return found == object.fields().end() ? nullptr : &found->second;
}

std::string text_at(const Struct& object, const std::string& key) {
  const Value* value = field(object, key);
  return value == nullptr ? std::string() : value->string_value();
}

std::optional<double> number_at(const Struct& object, const std::string& key) {
  const Value* value = field(object, key);
  if (value == nullptr || !value->has_number_value()) return std::nullopt;
  return value->number_value();
}

bool truth_at(const Struct& object, const std::string& key) {
  const Value* value = field(object, key);
  return value != nullptr && value->bool_value();
}

// The texts among the fields of an object, an object inside as "key.field".
void take_texts(const Value* value, const std::string& prefix,
                std::map<std::string, std::string>& texts) {
  if (value == nullptr) return;
  for (const auto& [key, each] : value->struct_value().fields()) {
    if (each.has_string_value()) texts[prefix + key] = each.string_value();
    if (each.has_struct_value()) take_texts(&each, prefix + key + ".", texts);
  }
}

MethodResult take_method(const Struct& object) {
  MethodResult method;
  method.method = text_at(object, "method");
  method.part = truth_at(object, "part");
  method.right = truth_at(object, "right");
  method.cold_us = number_at(object, "cold_us");
  method.warm_us = number_at(object, "warm_us");
  method.cold_spread = number_at(object, "cold_spread");
  method.warm_spread = number_at(object, "warm_spread");
  method.error = number_at(object, "error");
  method.prepare_s = number_at(object, "prepare_s");
  method.note = text_at(object, "note");
  return method;
}

BaselineResult take_row(const Struct& object) {
  BaselineResult row;
  row.row = text_at(object, "row");
  row.failure = text_at(object, "failure");
  if (const Value* methods = field(object, "methods")) {
    for (const Value& method : methods->list_value().values()) {
      row.methods.push_back(take_method(method.struct_value()));
    }
  }
  take_texts(field(object, "texts"), "", row.texts);
  take_texts(field(object, "clocks"), "", row.clocks);
  return row;
}

Status write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return file.flush() ? Status() : io_error(path.string() + " cannot be written");
}

Status write_scripts(const std::filesystem::path& folder) {
  const std::pair<const char*, std::string_view> files[] = {
      {"__main__.py", bench___main__}, {"attention.py", bench_attention},
      {"clock.py", bench_clock},       {"methods.py", bench_methods},
      {"terms.py", bench_terms},       {"writer.py", bench_writer}};
  for (const auto& [name, text] : files) {
    SUNDOG_RETURN_IF_ERROR(write_text(folder / name, text));
  }
  return {};
}

// Runs the rows that are left once.  False: there is no use in going on.
bool run_once(const std::string& python, BaselineJob& job, const std::filesystem::path& folder,
              const ProcessLimits& row_limits, BaselineRun& run) {
  const std::string file = (folder / "job.json").string();
  if (const Status status = write_text(file, job_text(job)); !status.ok()) {
    run.not_run = status.error().message;
    return false;
  }
  ProcessLimits limits = row_limits;
  limits.seconds *= static_cast<double>(job.rows.size());
  const Result<ProcessResult> child = run_process({python, "-B", folder.string(), file}, limits);
  if (!child.ok()) {
    run.not_run = child.error().message;
    return false;
  }
  const size_t before = run.rows.size();
  const std::optional<std::string> begun = take_answers(child->out, run);
  const std::string end = describe_end(*child, limits);
  const std::string said = last_line(child->err);
  if (begun) run.rows.push_back({*begun, end + (said.empty() ? "" : ": " + said), {}, {}, {}});
  const size_t done = run.rows.size() - before;
  job.rows.erase(job.rows.begin(),
                 job.rows.begin() + static_cast<int64_t>(std::min(done, job.rows.size())));
  if (done == 0 && !job.rows.empty()) run.not_run = python + " " + end + ": " + said;
  return done > 0 && child->end != ProcessResult::End::kStopped;
}

}  // namespace

std::optional<std::string> take_answers(const std::string& output, BaselineRun& run) {
  std::optional<std::string> begun;
  std::istringstream lines(output);
  std::string line;
  while (std::getline(lines, line)) {
    Struct object;
    if (!google::protobuf::util::JsonStringToMessage(line, &object).ok()) continue;
    if (field(object, "machine") != nullptr) {
      take_texts(field(object, "machine"), "", run.machine);
    } else if (field(object, "begin") != nullptr) {
      begun = text_at(object, "begin");
    } else if (field(object, "row") != nullptr) {
      run.rows.push_back(take_row(object));
      begun.reset();
    }
  }
  return begun;
}

BaselineRun run_baselines(const std::string& python, const BaselineJob& job,
                          const ProcessLimits& limits) {
  BaselineRun run;
  const Result<TemporaryFolder> folder = TemporaryFolder::make("bench");
  const Status written = folder.ok() ? write_scripts(folder->path()) : Status(folder.error());
  if (!written.ok()) {
    run.not_run = written.error().message;
    return run;
  }
  BaselineJob rest = job;
  while (!rest.rows.empty() && run_once(python, rest, folder->path(), limits, run)) {
  }
  return run;
}

}  // namespace sundog::cli
