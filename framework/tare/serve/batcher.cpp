// Collects the samples that wait, and hands the outputs to their callers.
#include "tare/serve/batcher.h"

#include <string>
#include <utility>

#include "tare/base/error.h"
#include "tare/inference/json_predict.h"
#include "tare/serve/refusal.h"

namespace tare::serve {

Batcher::Batcher(Predictor& predictor, const BatcherOptions& options)
    : predictor_(predictor), options_(options) {
  const auto require = [](bool good, const char* field) {
    if (!good) throw ConfigError("serve", field, "is out of range", ">= 1, the timeout > 0", "");
  };
  require(options.batch >= 1, "batch");
  require(options.queue >= 1, "queue");
  require(options.timeout.count() > 0, "timeout");
  thread_ = std::thread([this] { work(); });
}

Batcher::~Batcher() {
  stop();
  thread_.join();
}

void Batcher::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

BatcherFigures Batcher::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

std::vector<Outputs> Batcher::predict(std::vector<Batch> samples) {
  if (samples.empty()) return {};
  const auto job = std::make_shared<Job>();
  job->samples = std::move(samples);
  job->deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.timeout);
  std::future<std::vector<Outputs>> outputs = job->outputs.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Refusal(503, "the server stops; ask another one");
    const int64_t waiting = figures_.waiting + std::ssize(job->samples);
    // More samples than the queue holds are taken where nothing else waits.
    if (waiting > options_.queue && figures_.waiting > 0)
      throw Refusal(
          503, "too many samples wait: " + std::to_string(figures_.waiting) + "; ask again later");
    figures_.waiting = waiting;
    queue_.push_back(job);
    changed_.notify_all();
  }
  if (outputs.wait_until(job->deadline) == std::future_status::ready) return outputs.get();
  throw Refusal(504, "no prediction within the timeout of the server");
}

void Batcher::work() {
  for (auto jobs = take(); !jobs.empty(); jobs = take()) compute(std::move(jobs));
}

/// Waits for samples; returns none once there will be none.
std::vector<std::shared_ptr<Batcher::Job>> Batcher::take() {
  std::unique_lock lock(mutex_);
  std::vector<std::shared_ptr<Job>> jobs;
  while (jobs.empty()) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return {};
    int64_t samples = 0;
    while (!queue_.empty() && samples < options_.batch) {
      const std::shared_ptr<Job> job = std::move(queue_.front());
      queue_.pop_front();
      figures_.waiting -= std::ssize(job->samples);
      if (job->deadline < Clock::now()) continue;  // its caller has gone
      samples += std::ssize(job->samples);
      jobs.push_back(job);
    }
  }
  return jobs;
}

std::vector<Outputs> Batcher::timed(const std::vector<Batch>& samples) {
  const Clock::time_point start = Clock::now();
  std::vector<Outputs> outputs = predict_samples(predictor_, samples, options_.batch);
  const std::chrono::duration<double> seconds = Clock::now() - start;
  const std::lock_guard lock(mutex_);
  ++figures_.batches;
  figures_.samples += std::ssize(samples);
  figures_.seconds += seconds.count();
  return outputs;
}

void Batcher::compute(std::vector<std::shared_ptr<Job>> jobs) {
  if (jobs.size() > 1) {
    std::vector<Batch> all;
    for (const auto& job : jobs) all.insert(all.end(), job->samples.begin(), job->samples.end());
    try {
      std::vector<Outputs> outputs = timed(all);
      auto next = std::make_move_iterator(outputs.begin());
      for (const auto& job : jobs) {
        const auto end = next + std::ssize(job->samples);
        job->outputs.set_value(std::vector<Outputs>(next, end));
        next = end;
      }
      return;
    } catch (const std::exception&) {  // of one of them: each is computed alone below
    }
  }
  for (const auto& job : jobs) {
    try {
      job->outputs.set_value(timed(job->samples));
    } catch (...) {
      job->outputs.set_exception(std::current_exception());
    }
  }
}

}  // namespace tare::serve
