// Chooses how many samples are predicted together, and divides those that cannot be.
#include "tare/cli/predict_queue.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

#include "tare/inference/json_predict.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"

namespace tare::cli {
namespace {

constexpr int64_t kMostTogether = 64;  // more are hardly faster on a processor

}  // namespace

void PredictQueue::add(SamplePlace place, Batch sample) {
  waiting_.push_back({std::move(place), std::move(sample)});
  if (!most_) {
    most_ = measured(waiting_.front());
    waiting_.clear();
  } else if (std::cmp_greater_equal(waiting_.size(), *most_)) {
    flush();
  }
}

void PredictQueue::flush() { predict(std::exchange(waiting_, {})); }

int64_t PredictQueue::measured(const Waiting& first) {
  const memory::PeakScope peak(inputs_.predictor.device());
  predict({&first, 1});
  const int64_t bytes = std::max<int64_t>(1, peak.peak_above_start_bytes()),
                available =
                    memory::backend(inputs_.predictor.device()).memory_info().available_bytes;
  const auto fits =
      static_cast<uint64_t>(std::clamp(available / 2 / bytes, int64_t{1}, kMostTogether));
  return static_cast<int64_t>(std::bit_floor(fits));
}

void PredictQueue::predict(std::span<const Waiting> waiting) {
  if (waiting.empty()) return;
  std::vector<Batch> samples;
  for (const Waiting& one : waiting) samples.push_back(one.sample);
  std::vector<Outputs> outputs;
  try {
    outputs = predict_samples(inputs_.predictor, samples, std::ssize(samples));
  } catch (...) {
    if (waiting.size() == 1) return inputs_.on_failure(waiting.front().place);
    if (memory::classify(std::current_exception())) most_ = std::ssize(waiting) / 2;
  }
  if (outputs.empty()) {  // outside of the handler, which holds the memory of what failed
    predict(waiting.first(waiting.size() / 2));
    return predict(waiting.subspan(waiting.size() / 2));
  }
  for (size_t i = 0; i < waiting.size(); ++i) {
    try {
      inputs_.on_prediction(waiting[i].place, outputs[i]);
    } catch (...) {
      inputs_.on_failure(waiting[i].place);
    }
  }
}

}  // namespace tare::cli
