// A training run's progress as a checkpoint holds it: a value, to and from JSON.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/optim/schedule.h"

namespace tare {

/// How far a fit is, and everything that decides how it goes on.
struct FitPlan {
  int64_t epochs = 0;
  std::vector<double> rates{};  ///< of each layer group, before the schedule's factor
  Schedule schedule{};
  int64_t epoch = 0, batch = 0,
          step = 0;     ///< next epoch and next batch of it; optimizer steps taken
  double loss_sum = 0;  ///< over the samples of the epoch under way
  int64_t loss_samples = 0;
  std::vector<EpochRow> rows{};  ///< epochs of this fit that are whole

  [[nodiscard]] bool finished() const { return epoch >= epochs; }
};

struct TrainState {
  int64_t epochs_done =
      0;  ///< over the Learner's life: numbers the rows, seeds the order of samples
  std::vector<EpochRow> history{};
  std::optional<FitPlan> plan{};                                 ///< of a fit that is not finished
  std::vector<std::pair<std::string, std::string>> callbacks{};  ///< name, state
};

[[nodiscard]] std::string to_json(const TrainState& state);
/// Throws FormatError(operation, path) naming the field that is missing, of another type or out of
/// range.
[[nodiscard]] TrainState train_state_from_json(const std::string& text,
                                               const std::filesystem::path& path);

}  // namespace tare
