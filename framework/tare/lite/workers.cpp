// Shares tasks over threads that wait between two operators.
#include "tare/lite/workers.h"

#include <utility>

namespace tare::lite {
namespace {

constexpr int kSpins = 2000;  // some microseconds, as long as the gap between two operators

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Waits until a value differs from `old`: first awake, then asleep.
template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

Workers::Workers(int64_t threads) {
  for (int64_t i = 1; i < threads; ++i) threads_.emplace_back([this, i] { serve(i); });
}

Workers::~Workers() {
  work_ = nullptr;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::take_tasks(int64_t worker) {
  try {
    for (int64_t task = next_++; task < tasks_; task = next_++) (*work_)(task, worker);
  } catch (...) {
    next_ = tasks_;
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void Workers::serve(int64_t worker) {
  for (uint32_t seen = 0;;) {
    wait_while(round_, seen);
    seen = round_.load(std::memory_order_acquire);
    if (!work_) return;
    take_tasks(worker);
    if (--busy_ == 0) busy_.notify_one();
  }
}

void Workers::run(int64_t tasks, const std::function<void(int64_t, int64_t)>& work) {
  if (threads_.empty() || tasks < 2) {
    for (int64_t task = 0; task < tasks; ++task) work(task, 0);
    return;
  }
  work_ = &work;
  tasks_ = tasks;
  next_ = 0;
  busy_ = static_cast<int64_t>(threads_.size());
  ++round_;
  round_.notify_all();
  take_tasks(0);
  for (int64_t left = busy_; left > 0; left = busy_) wait_while(busy_, left);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace tare::lite
