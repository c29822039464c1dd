// StepSamples: loss and rate of some steps of a fit, thinned out, for logs that grow. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tare/callback/callback.h"

namespace tare {

/// Describes a step that a log writes.
struct StepSample {
  int64_t step = 0;   ///< from 1, over all fits of the log
  int64_t epoch = 0;  ///< EpochRow::epoch of the step
  double loss = 0;    ///< of the step's batch
  double lr = 0;      ///< of the last parameter group
  double time = 0;    ///< seconds since 1970, when the step was done
};

/// Collects steps between two writes of a log. A loss on a device is copied into a buffer there and
/// read in groups of kUnread, so that not every step waits for it. A fit continues the count of the
/// one before.
class StepSamples {
 public:
  static constexpr int64_t kUnread = 64;  ///< losses that are read from a device at a time
  static constexpr int64_t kEach = 1000;  ///< samples before their distance doubles
  static constexpr int64_t kBytesOnCard = kUnread * static_cast<int64_t>(sizeof(double));

  /// Takes each `every`-th step; 0: each step at first, and every time that kEach more were taken
  /// half as many, so that a million steps give about ten thousand samples.
  explicit StepSamples(int64_t every) : every_(every) {}

  /// Begins or resumes a fit, and allocates the buffer.
  void begin(const FitContext& context);
  /// Looks at a step, in after_step. Returns whether take() is due.
  bool add(const FitContext& context);
  /// Returns the samples since the last call. Waits for the device where it has losses.
  [[nodiscard]] std::vector<StepSample> take();
  /// Returns the number of the last step.
  [[nodiscard]] int64_t last_step() const { return last_; }
  /// Frees the buffer; losses that were not taken are lost.
  void release();
  /// Adds the buffer to a ledger, under the name.
  void account(Ledger& ledger, const std::string& name) const;
  /// Returns the counts, without samples: a state is made after take().
  [[nodiscard]] nlohmann::json state() const;
  /// Restores the counts. Returns false, and changes nothing, for what state() did not return.
  [[nodiscard]] bool load(const nlohmann::json& state);

 private:
  void read();

  int64_t every_;
  int64_t stride_ = 1, taken_ = 0;  // of automatic thinning
  int64_t base_ = 0, last_ = 0;     // steps of the fits before, and of all
  std::vector<StepSample> samples_;
  at::Tensor losses_;   // on the device, of the last samples; none on the host
  int64_t unread_ = 0;  // how many of them
};

}  // namespace tare
