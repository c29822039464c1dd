// Threads that share the work of one operator.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tare::lite {

/// Owns threads, which wait for work and end with this object. Not thread-safe.
class Workers {
 public:
  /// Starts `threads` - 1 threads; the caller of run() is one. `threads`: >= 1. Throws
  /// std::system_error where the system starts none.
  explicit Workers(int64_t threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Returns the number of threads that work, with the caller.
  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(threads_.size()) + 1; }
  /// Calls work(task, worker) for each task in [0, tasks), and returns when all are done. `worker`,
  /// in [0, count()), identifies the thread. After an exception of `work` the tasks that have not
  /// begun are left out, and the first exception is rethrown.
  void run(int64_t tasks, const std::function<void(int64_t task, int64_t worker)>& work);

 private:
  void serve(int64_t worker);
  void take_tasks(int64_t worker);

  std::vector<std::thread> threads_;
  const std::function<void(int64_t, int64_t)>* work_ = nullptr;  // null: the threads shall end
  int64_t tasks_ = 0;
  std::atomic<int64_t> next_ = 0;
  std::atomic<uint32_t> round_ = 0;  // is changed when there is work
  std::atomic<int64_t> busy_ = 0;    // threads that have not finished the round
  std::mutex mutex_;
  std::exception_ptr error_;  // of the round
};

}  // namespace tare::lite
