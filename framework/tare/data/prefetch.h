// Prefetch: batches made ahead by threads and given out in order, for the Loader. Internal.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tare/data/dataset.h"

namespace tare {

/// Keeps a ring of `capacity` places for the batches [begin, end). Each worker takes the next
/// number, makes that batch and puts it in its place, so that the order does not depend on the
/// threads. One consumer thread.
class Prefetch {
 public:
  /// Starts the threads; several of them call `make` at once.
  Prefetch(std::function<Batch(int64_t)> make, int64_t begin, int64_t end, int64_t capacity);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Starts the threads; once.
  void run(int64_t workers);
  /// Waits for the next batch; rethrows what making it threw. Not to be called after batch end - 1.
  [[nodiscard]] Batch next();
  /// Waits until the workers have nothing to do before the next call of next(); returns the batches
  /// that are ready.
  [[nodiscard]] std::vector<Batch> settled();

 private:
  struct Place {
    Batch batch;
    std::exception_ptr error;
    bool ready = false;
  };
  void work();
  [[nodiscard]] Place& place(int64_t index);
  [[nodiscard]] bool may_make() const;

  std::function<Batch(int64_t)> make_;
  std::mutex mutex_;
  std::condition_variable changed_, ready_;
  std::vector<Place> places_;
  int64_t given_, taken_, end_;  // batches given to the consumer, taken by a worker
  int64_t busy_ = 0;             // workers that are making a batch
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tare
