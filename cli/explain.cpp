// Why a term, or a cut into kernels, was not chosen.
#include "search/explain.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/evidence.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/search_files.h"
#include "core/join.h"

namespace sundog::cli {
namespace {

// "a, b"; "none" is the empty list.
std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> names;
  if (text == "none") return names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const size_t first = text.find_first_not_of(' ', at);
    if (first < end)
      names.push_back(text.substr(first, text.find_last_not_of(' ', end - 1) + 1 - first));
    at = end + 1;
  }
  return names;
}

Result<search::StructureQuestion> question_of(const Invocation& invocation) {
  search::StructureQuestion question;
  question.computed = invocation.text("term");
  question.nothing_else = invocation.given("cut");
  question.stored = listed(invocation.text(question.nothing_else ? "cut" : "stored"));
  if (invocation.given("cut") && invocation.given("stored")) {
    return bad_input("--cut and --stored exclude each other");
  }
  if (question.computed.empty() && question.stored.empty() && !question.nothing_else) {
    return bad_input("nothing is asked", "--term NAME, --stored NAME,... or --cut NAME,...");
  }
  return question;
}

// "with r, t13 stored between kernels"
std::string in_words(const search::StructureQuestion& q) {
  std::string text;
  if (!q.computed.empty()) text += "that compute " + q.computed;
  if (q.stored.empty() && !q.nothing_else) return text;
  text += std::string(text.empty() ? "" : " and ") + "with ";
  if (q.stored.empty()) return text + "nothing stored between kernels";
  return text + join(q.stored) + (q.nothing_else ? " and nothing else" : "") +
         " stored between kernels";
}

std::string compared(const search::Explanation& e) {
  const double more = e.best_us / e.pick_us - 1;
  if (std::abs(more) < 1e-6) return "as the pick does";
  char text[96];
  std::snprintf(text, sizeof text, "%.1f %% %s", 100 * std::abs(more),
                more > 0 ? "more" : "less than the pick: the search for that left it too early");
  return text;
}

std::string answer_text(const search::StructureQuestion& question, const search::Explanation& e) {
  std::string text = "the pick takes " + microseconds(e.pick_us) + ": " + e.pick + "\n";
  const std::string kind = "structures " + in_words(question);
  if (!e.never_stored.empty()) {
    text +=
        "no kernel stores " + join(e.never_stored) +
        " for another: what is stored has a reduction below it, is complete or of whole parts, and "
        "is no unary image of another term\n";
  } else if (e.best.empty()) {
    text += "there are no " + kind + (e.exhausted ? "" : ", as far as was searched") + "\n";
  } else {
    text += "of " + kind + " the best takes " + microseconds(e.best_us) + ", " + compared(e) +
            (e.exhausted ? "" : ", as far as was searched") + ": " + e.best + "\n";
  }
  text += "in the search for the pick, of such structures:\n";
  for (int r = 0; r < search::kPruneRules; ++r) {
    const auto& cut = e.cuts[static_cast<size_t>(r)];
    if (cut.times == 0) continue;
    text += "  " + std::string(name_of(static_cast<search::PruneRule>(r))) + ": left " +
            std::to_string(cut.times) + " times";
    if (std::isfinite(cut.least_us))
      text += ", the best having reached " + microseconds(cut.least_us);
    text += "\n";
  }
  return text + "  complete: " + std::to_string(e.structures) + "\n";
}

std::string answer_json(const search::StructureQuestion& question, const search::Explanation& e) {
  JsonWriter json;
  const auto number = [&](double value) {
    if (std::isfinite(value) && value > 0) {
      json.value(value);
    } else {
      json.null();
    }
  };
  json.begin_object();
  json.key("question").value(in_words(question));
  json.key("pick").begin_object();
  json.key("predicted_us").value(e.pick_us).key("structure").value(e.pick).end_object();
  json.key("best").begin_object();
  json.key("predicted_us");
  number(e.best_us);
  json.key("structure").value(e.best).key("exhausted").value(e.exhausted).end_object();
  json.key("pruned").begin_object();
  for (int r = 0; r < search::kPruneRules; ++r) {
    const auto& cut = e.cuts[static_cast<size_t>(r)];
    json.key(name_of(static_cast<search::PruneRule>(r))).begin_object();
    json.key("times").value(static_cast<int64_t>(cut.times)).key("least_us");
    number(cut.least_us);
    json.end_object();
  }
  json.end_object();
  json.key("structures").value(static_cast<int64_t>(e.structures));
  json.key("never_stored").begin_array();
  for (const std::string& name : e.never_stored) json.value(name);
  json.end_array().end_object();
  return json.text();
}

}  // namespace

int explain(const Invocation& invocation) {
  finish_when_interrupted();
  const auto question = question_of(invocation);
  if (!question.ok()) return fail(question.error());
  const Result<Program> program = load_program(invocation.operands[0], invocation);
  if (!program.ok()) return fail(program.error());
  const Result<Device> device = choose_device(invocation.text("target"), std::nullopt);
  if (!device.ok()) return fail(device.error());
  search::SearchSpace space;
  if (const Status status = take_space(invocation, &space); !status.ok()) {
    return fail(status.error());
  }
  space.rounding = rounding_of(invocation);
  search::SearchOptions options;
  options.max_states = static_cast<uint64_t>(invocation.integer("states"));
  const bool clocked = options.max_states == 0 || invocation.given("budget");
  options.budget_s = clocked ? invocation.seconds("budget") : 0;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const auto threads = static_cast<int>(invocation.integer("threads"));
  options.threads = threads > 0 ? threads : std::max(1, cores);
  options.seed = static_cast<uint64_t>(invocation.integer("seed"));
  options.memory_bytes = static_cast<uint64_t>(invocation.bytes("memory"));
  options.stop = &interrupted();
  options.clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  ProgressLine line(invocation.flag("quiet"));
  options.progress = [&line](const search::Progress& p) {
    line.show("searched " + std::to_string(p.states) + " states, best " + microseconds(p.best_us));
  };
  const auto answer = search::explain(*program, *device, space, options, *question);
  line.clear();
  if (!answer.ok()) return fail(answer.error());
  const Status status = write_output(invocation.flag("json") ? answer_json(*question, *answer)
                                                             : answer_text(*question, *answer));
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace sundog::cli
