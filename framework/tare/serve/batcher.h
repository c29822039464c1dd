// Batcher: predicts for many callers at once, those together that wait at the same time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tare/inference/predictor.h"

namespace tare::serve {

/// Bounds what a Batcher takes.
struct BatcherOptions {
  int64_t batch = 32;   ///< samples of one forward, >= 1
  int64_t queue = 256;  ///< samples that wait, besides those of the forward that runs, >= 1
  /// A caller is told after this time that there is no answer; > 0.
  std::chrono::duration<double> timeout{30};
};

/// Counts what a Batcher has done.
struct BatcherFigures {
  int64_t batches = 0;  ///< groups of samples that were predicted together
  int64_t samples = 0;  ///< that were predicted
  int64_t waiting = 0;  ///< samples in the queue now
  double seconds = 0;   ///< that the predictor worked
};

/// Predicts samples of concurrent callers by one Predictor, in one thread of its own. While a
/// forward runs, samples wait, and the next forward takes as many of them as there are, up to a
/// batch: nothing waits for a batch to fill. Thread-safe.
class Batcher {
 public:
  /// Starts the thread; `predictor` outlives this object and is used by it alone. Throws
  /// ConfigError for an option out of range.
  Batcher(Predictor& predictor, const BatcherOptions& options);
  /// Predicts what waits, and ends the thread.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Returns the outputs of each sample, as predict_samples() does, which computes them: samples
  /// [1, ...]. Waits for them. Throws Refusal 503 where the queue is full or stop() was called, 504
  /// after the timeout; what Predictor::predict() throws for these samples, and for no others.
  [[nodiscard]] std::vector<Outputs> predict(std::vector<Batch> samples);
  /// Refuses samples from now on; those that wait are predicted.
  void stop();
  [[nodiscard]] BatcherFigures figures() const;  ///< returns the counts so far

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    std::vector<Batch> samples;
    Clock::time_point deadline;
    std::promise<std::vector<Outputs>> outputs;
  };

  void work();
  [[nodiscard]] std::vector<std::shared_ptr<Job>> take();
  void compute(std::vector<std::shared_ptr<Job>> jobs);
  [[nodiscard]] std::vector<Outputs> timed(const std::vector<Batch>& samples);

  Predictor& predictor_;
  BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;  // this and the rest are guarded by mutex_
  BatcherFigures figures_;
  bool stopping_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace tare::serve
