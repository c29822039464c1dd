// A training run's progress as a checkpoint holds it: a value, to and from JSON.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
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

/// What a callback gave for a checkpoint.
struct CallbackState {
  std::string name{};
  std::string state{};
};
/// Of those that have one.
[[nodiscard]] std::vector<CallbackState> states_of(const std::vector<CallbackPtr>& callbacks);
/// Gives each of `callbacks` the state of its name, where there is one. Throws what it throws.
void restore(const std::vector<CallbackState>& states, const std::vector<CallbackPtr>& callbacks);

/// A fit that is not finished: what resume() goes on from.
struct Unfinished {
  FitPlan plan{};
  std::vector<CallbackState> callbacks{};
};

struct TrainState {
  int64_t epochs_done =
      0;              ///< over the Learner's life: numbers the rows, seeds the order of samples
  int64_t saves = 0;  ///< checkpoints written so far, this one included: tells which is newer
  std::vector<EpochRow> history{};
  std::optional<FitPlan> plan{};           ///< of a fit that is not finished
  std::vector<CallbackState> callbacks{};  ///< of that fit, or those that every fit has
};

/// What a checkpoint says of itself.
struct CheckpointInfo {
  std::string name{};
  int64_t saves = 0;        ///< the higher, the newer
  bool unfinished = false;  ///< saved inside a fit: resume() goes on from there
  std::vector<CallbackState> callbacks{};
};
/// The newest of the checkpoints `names` in `folder` that verifies, every byte of it; unset where
/// there is none. One that does not verify is passed over with a warning saying why; where none
/// does, the FormatError comes out. Throws IoError.
[[nodiscard]] std::optional<CheckpointInfo> newest_checkpoint(
    const std::filesystem::path& folder, const std::vector<std::string>& names);

[[nodiscard]] std::string to_json(const TrainState& state);
/// Throws FormatError(operation, path) naming the field that is missing, of another type or out of
/// range.
[[nodiscard]] TrainState train_state_from_json(const std::string& text,
                                               const std::filesystem::path& path);

}  // namespace tare
