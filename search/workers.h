// Threads that share out numbered jobs.
//
//   Workers workers(8);
//   workers.run(tasks.size(), [&](size_t i) { outcomes[i] = run(tasks[i]); });
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sundog::search {

class Workers {
 public:
  // The calling thread is one of them, so `threads` of 1 starts none.  Where the system refuses a
  // thread there are fewer.
  explicit Workers(int threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  // Runs job(0) to job(count - 1), each once, begun in that order, and returns when all have ended.
  // Of the exceptions that jobs let out, the one of the lowest number is thrown.
  void run(size_t count, const std::function<void(size_t)>& job);

  size_t size() const { return threads_.size() + 1; }

 private:
  void serve();
  void work(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  const std::function<void(size_t)>* job_ = nullptr;
  size_t next_ = 0, count_ = 0, open_ = 0;
  size_t thrown_at_ = 0;
  std::exception_ptr thrown_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sundog::search
