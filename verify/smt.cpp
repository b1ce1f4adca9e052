// The child answers in order and hands over what it has after each question, so that one question
// that hangs costs only itself and those behind it; these are asked again in a child of their own.
// Time is that of the processor: what is shown must not depend on what else a machine does.
#include "verify/smt.h"

#include <z3++.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>

#include "core/process.h"
#include "core/process_wire.h"

namespace sundog::verify {
namespace {

constexpr double kPatience = 10;  // how much longer than the processor the clock may run

// What this process has computed, in seconds.
double computed_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Interrupts the solver when this process has computed for so long.
class Watch {
 public:
  Watch(z3::context& context, double seconds)
      : thread_([this, &context, end = computed_s() + seconds](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          const auto ended = [&] { return computed_s() >= end; };
          while (!stop.stop_requested() && !ended()) {
            changed_.wait_for(lock, stop, std::chrono::milliseconds(20), ended);
          }
          if (!stop.stop_requested()) context.interrupt();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

SmtAnswer answer_one(const std::string& question, double seconds) {
  SmtAnswer answer;
  try {
    z3::context context;
    z3::solver solver(context);
    z3::params parameters(context);
    parameters.set("timeout", static_cast<unsigned>(kPatience * seconds * 1000));
    solver.set(parameters);
    const Watch watch(context, seconds);
    solver.from_string(question.c_str());
    switch (solver.check()) {
      case z3::unsat:
        answer.kind = SmtAnswer::kShown;
        break;
      case z3::sat: {
        answer.kind = SmtAnswer::kRefuted;
        const z3::model model = solver.get_model();
        for (unsigned i = 0; i < model.num_consts(); ++i) {
          const z3::func_decl name = model.get_const_decl(i);
          answer.detail += (i == 0 ? "" : ", ") + name.name().str() + " = " +
                           model.get_const_interp(name).to_string();
        }
        break;
      }
      case z3::unknown:
        answer.detail = solver.reason_unknown();
        break;
    }
  } catch (const z3::exception& error) {
    answer = {SmtAnswer::kUnknown, error.msg()};
  }
  return answer;
}

// Answers to questions [begin, end) in one child, and then the seconds that it computed.
Result<std::string> in_child(const std::vector<std::string>& questions, size_t begin, size_t end,
                             const SmtLimits& limits, double seconds) {
  const ProcessLimits process{.seconds = kPatience * seconds + 1,
                              .memory_bytes = limits.memory_bytes};
  return run_in_child(
      "the solver",
      [&] {
        Packer out;
        for (size_t i = begin; i < end; ++i) {
          const double left = std::min(limits.query_s, seconds - computed_s());
          const SmtAnswer answer =
              left > 0 ? answer_one(questions[i], left) : SmtAnswer{SmtAnswer::kUnknown, "time"};
          out.put(static_cast<uint32_t>(answer.kind));
          out.put(answer.detail);
        }
        out.put(computed_s());
        return out.bytes();
      },
      process);
}

}  // namespace

std::vector<SmtAnswer> ask(const std::vector<std::string>& questions, const SmtLimits& limits) {
  constexpr size_t kTogether = 32;
  std::vector<SmtAnswer> answers(questions.size());
  double left = limits.total_s;
  size_t batch = kTogether;
  for (size_t begin = 0; begin < questions.size();) {
    const size_t end = std::min(questions.size(), begin + batch);
    if (left <= 0) {
      for (size_t i = begin; i < questions.size(); ++i) answers[i].detail = "time";
      break;
    }
    const double most = std::min(left, limits.query_s * static_cast<double>(end - begin));
    const Result<std::string> bytes = in_child(questions, begin, end, limits, most);
    if (!bytes.ok() && end - begin > 1) {
      batch = 1;  // find the one that brought it down
      continue;
    }
    if (bytes.ok()) {
      Unpacker in(*bytes);
      for (size_t i = begin; i < end; ++i) {
        const auto kind = in.number<uint32_t>();
        std::string detail = in.text();
        if (in.failed() || kind > SmtAnswer::kUnknown) break;
        answers[i] = {static_cast<SmtAnswer::Kind>(kind), std::move(detail)};
      }
      left -= in.number<double>();
    } else {
      left -= most;  // at least what it computed
      answers[begin].detail = bytes.error().message;
    }
    begin = end;
  }
  return answers;
}

}  // namespace sundog::verify
