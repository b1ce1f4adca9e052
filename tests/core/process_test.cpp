#include "core/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace sundog {
namespace {

TEST(Process, KeepsBothStreamsAndTheExitCode) {
  const auto result = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->end, ProcessResult::End::kExited);
  EXPECT_EQ(result->code, 3);
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");
  EXPECT_FALSE(result->succeeded());
}

TEST(Process, SaysThatAToolIsMissing) {
  const auto result = run_process({"sundog-no-such-program"}, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kToolMissing);
  EXPECT_NE(result.error().message.find("sundog-no-such-program"), std::string::npos);
}

TEST(Process, IsKilledAsAGroupWhenItsTimeIsUp) {
  // The grandchild holds the pipe open: without the group it would keep us waiting.
  ProcessLimits limits;
  limits.seconds = 0.3;
  const auto start = std::chrono::steady_clock::now();
  const auto result = run_process({"sh", "-c", "sleep 30 & echo $!; sleep 30"}, limits);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->end, ProcessResult::End::kTimedOut);
  EXPECT_LT(seconds, 5);
  EXPECT_NE(describe_end(*result, limits).find("0.3 s"), std::string::npos);
  // It may linger as a zombie until its new parent reaps it.
  const std::string file = "/proc/" + std::to_string(std::stoi(result->out)) + "/stat";
  char state = '?';
  for (int i = 0; i < 300 && state != 'Z' && state != '-'; ++i) {
    std::ifstream stat(file);
    std::string pid, name;
    state = '-';
    stat >> pid >> name >> state;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(state == 'Z' || state == '-') << "the grandchild lives on in state " << state;
}

TEST(Process, TellsWantOfMemoryFromOtherFailures) {
  const auto lacked_memory = [](const std::string& script) {
    const auto result = run_process({"bash", "-c", script}, {});
    return result.ok() && lacked(*result) == "memory";
  };
  EXPECT_TRUE(lacked_memory("echo 'cc1plus: out of memory allocating 65536 bytes' >&2; exit 1"));
  EXPECT_TRUE(lacked_memory("echo 'catastrophic error: out of memory'; exit 4"));
  EXPECT_FALSE(lacked_memory("echo 'out of memory'"));
  EXPECT_FALSE(lacked_memory("echo 'error: expected ;' >&2; exit 1"));
  EXPECT_FALSE(lacked_memory("kill -SEGV $$")) << "a crash by itself is the program's own";
  EXPECT_FALSE(lacked_memory("exit 139"));
}

// A compiler crashes where the limit on stacks is low, and its driver speaks of a bug of its own.
TEST(Process, TellsWantOfStackWhereItIsLow) {
  const auto lacked_under = [](const char* kilobytes, const std::string& script) {
    const auto answer = run_in_child("child",
                                     [&]() -> std::string {
                                       const auto bytes =
                                           static_cast<rlim_t>(std::stoll(kilobytes)) * 1024;
                                       const rlimit limit{bytes, bytes};
                                       if (setrlimit(RLIMIT_STACK, &limit) != 0) return "no limit";
                                       const auto result = run_process({"bash", "-c", script}, {});
                                       return result.ok() ? lacked(*result) : "no process";
                                     },
                                     {});
    return answer.ok() ? *answer : answer.error().message;
  };
  const std::string crash = "echo 'internal compiler error: Segmentation fault signal' >&2; exit 4";
  EXPECT_EQ(lacked_under("256", crash), "stack: ulimit -s is 256 kB");
  EXPECT_EQ(lacked_under("256", "kill -SEGV $$"), "stack: ulimit -s is 256 kB");
  EXPECT_EQ(lacked_under("256", "echo 'error: expected ;' >&2; exit 1"), "");
  EXPECT_EQ(lacked_under("4096", crash), "") << "that is enough, so the crash has another cause";
}

TEST(Process, IsStoppedOnRequest) {
  std::atomic<bool> stop = false;
  ProcessLimits limits;
  limits.stop = &stop;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop = true;
  });
  const auto result = run_process({"sleep", "30"}, limits);
  later.join();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->end, ProcessResult::End::kStopped);
}

TEST(Process, DropsOutputBeyondItsLimitWithoutBlockingTheChild) {
  ProcessLimits limits;
  limits.output_bytes = 1000;
  const auto result = run_process({"sh", "-c", "head -c 300000 /dev/zero; echo done >&2"}, limits);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->truncated);
  EXPECT_EQ(result->out.size(), 1000u);
  EXPECT_EQ(result->err, "done\n");
}

TEST(Process, LimitsOfTheMachineAreToldFromFaults) {
  EXPECT_TRUE(names_a_limit("cannot open source file \"a.h\": Too many open files"));
  EXPECT_TRUE(names_a_limit("ld terminated with signal 25 [File size limit exceeded]"));
  EXPECT_FALSE(names_a_limit("a.cu(3): error: identifier \"x\" is undefined"));
}

TEST(Child, GivesBackAnyBytes) {
  std::string bytes(200000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  const auto result = run_in_child("the test", [&] { return bytes; }, {});
  ASSERT_TRUE(result.ok()) << to_string(result.error());
  EXPECT_EQ(*result, bytes);
}

TEST(Child, ReportsCrashesAndEarlyExits) {
  const auto crash = run_in_child("the kernel",
                                  [&]() -> std::string {
                                    raise(SIGSEGV);
                                    return {};
                                  },
                                  {});
  ASSERT_FALSE(crash.ok());
  EXPECT_EQ(crash.error().code, ErrorCode::kFailed);
  EXPECT_EQ(crash.error().message.rfind("the kernel", 0), 0u);

  const auto early = run_in_child("the kernel", []() -> std::string { _exit(0); }, {});
  EXPECT_FALSE(early.ok()) << "an empty answer is no answer";

  const auto thrown =
      run_in_child("the kernel", []() -> std::string { throw std::runtime_error("why"); }, {});
  ASSERT_FALSE(thrown.ok());
  EXPECT_NE(thrown.error().message.find("why"), std::string::npos);
}

TEST(Child, HasAWatchdog) {
  ProcessLimits limits;
  limits.seconds = 0.2;
  const auto result = run_in_child(
      "the kernel",
      [] {
        while (true) usleep(1000);
        return std::string();
      },
      limits);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kLimit);
}

TEST(Child, SendsItsAnswersAsTheyCome) {
  std::vector<std::string> taken;
  const auto take = [&](std::string answer) { taken.push_back(std::move(answer)); };
  const Status crash = answers_of_child("the kernel",
                                        [](const SendAnswer& send) {
                                          send("one");
                                          send("");
                                          send(std::string(100000, 'x'));
                                          raise(SIGKILL);
                                        },
                                        take, {});
  ASSERT_FALSE(crash.ok());
  EXPECT_NE(crash.error().message.find("signal 9"), std::string::npos);
  EXPECT_EQ(taken, (std::vector<std::string>{"one", "", std::string(100000, 'x')}));
}

TEST(Child, HasTheWholeTimeForEachAnswer) {
  ProcessLimits limits;
  limits.seconds = 0.5;
  int taken = 0;
  const auto take = [&](const std::string&) { ++taken; };
  const Status done = answers_of_child(
      "the kernel",
      [](const SendAnswer& send) {
        for (int i = 0; i < 8; ++i) {
          usleep(100000);
          send("done");
        }
      },
      take, limits);
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(taken, 8);
  const Status late = answers_of_child(
      "the kernel",
      [](const SendAnswer& send) {
        send("done");
        while (true) usleep(1000);
      },
      take, limits);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::kLimit);
  EXPECT_EQ(taken, 9);
}

}  // namespace
}  // namespace sundog
