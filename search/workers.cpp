// A task of the search takes a few milliseconds or more, so one lock for all that is shared costs
// nothing that could be measured, and no job is ever stolen or split.
#include "search/workers.h"

#include <algorithm>
#include <utility>

namespace sundog::search {

Workers::Workers(int threads) {
  try {
    threads_.reserve(static_cast<size_t>(std::max(threads, 1)));
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  } catch (const std::exception&) {
    // A limit on threads or on memory: those that there are have to do.
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  begun_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void Workers::run(size_t count, const std::function<void(size_t)>& job) {
  std::unique_lock lock(mutex_);
  job_ = &job;
  next_ = 0;
  count_ = count;
  thrown_ = nullptr;
  begun_.notify_all();
  work(lock);
  ended_.wait(lock, [&] { return open_ == 0; });
  count_ = 0;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Workers::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return closing_ || next_ < count_; });
    if (closing_) return;
    work(lock);
  }
}

// Takes jobs until none is left.
void Workers::work(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) {
    const size_t mine = next_++;
    ++open_;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      (*job_)(mine);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    --open_;
    if (thrown && (!thrown_ || mine < thrown_at_)) {
      thrown_ = thrown;
      thrown_at_ = mine;
    }
  }
  if (open_ == 0) ended_.notify_all();
}

}  // namespace sundog::search
