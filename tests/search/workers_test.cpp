#include "search/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace sundog::search {
namespace {

TEST(WorkersTest, EachJobRunsOnce) {
  for (int threads : {1, 2, 5}) {
    Workers workers(threads);
    EXPECT_LE(workers.size(), static_cast<size_t>(threads));
    for (size_t count : {0u, 1u, 3u, 200u}) {
      std::vector<std::atomic<int>> runs(count);
      workers.run(count, [&](size_t i) { ++runs[i]; });
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(runs[i], 1);
    }
  }
}

TEST(WorkersTest, OneThreadIsTheCaller) {
  Workers workers(1);
  std::thread::id by;
  workers.run(1, [&](size_t) { by = std::this_thread::get_id(); });
  EXPECT_EQ(by, std::this_thread::get_id());
}

TEST(WorkersTest, TheFirstExceptionComesOutAfterAllJobs) {
  Workers workers(3);
  std::atomic<int> ran = 0;
  try {
    workers.run(20, [&](size_t i) {
      ++ran;
      if (i % 4 == 3) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "nothing came out";
  } catch (const std::runtime_error& e) {
    EXPECT_EQ(std::string(e.what()), "3");
  }
  EXPECT_EQ(ran, 20);
  workers.run(2, [&](size_t) { ++ran; });
  EXPECT_EQ(ran, 22);
}

}  // namespace
}  // namespace sundog::search
