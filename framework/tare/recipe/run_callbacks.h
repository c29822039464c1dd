// The callbacks that tare run adds to a phase's own. Internal.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "tare/callback/callback.h"
#include "tare/recipe/allocation_recording.h"

namespace tare {

/// Ends every epoch after two steps, for a dry run.
class TwoSteps final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "two_steps"; }
  Action after_batch(FitContext& context) override {
    return context.batch >= 1 ? Action::stop_epoch : Action::proceed;
  }
};

/// Notes the size of the micro-batches where a batch took the most of them.
class SmallestMicroBatch final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "smallest_micro_batch"; }
  Action after_loss(FitContext& context) override {
    if (context.micro_batches <= most_) return Action::proceed;
    most_ = context.micro_batches;
    samples_ = context.data.size();
    return Action::proceed;
  }
  /// Returns the samples per micro-batch of the batch with the most parts, and starts again; 0:
  /// every batch was whole.
  [[nodiscard]] int64_t take() {
    most_ = 1;
    return std::exchange(samples_, 0);
  }
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  int64_t most_ = 1, samples_ = 0;
};

/// Prints what the search for the rate of a phase has found, and writes its curve.
class FoundRate final : public Callback {
 public:
  /// Writes the table of the curve to `file` in the run's folder, or, where `file` is empty, no
  /// table. `print` gets the result.
  FoundRate(std::filesystem::path file, std::function<void(const LrFindResult&)> print)
      : file_(std::move(file)), print_(std::move(print)) {}
  [[nodiscard]] std::string name() const override { return "found_rate"; }
  Action before_fit(FitContext& context) override;

 private:
  std::filesystem::path file_;
  std::function<void(const LrFindResult&)> print_;
};

/// Returns the figures of a search for the report of its phase.
[[nodiscard]] RateSearch figures_of(const LrFindResult& found);

/// Notes what the blocks of a memory trace are for, while they live.
class NoteCategories final : public Callback {
 public:
  explicit NoteCategories(AllocationRecording& trace) : trace_(trace) {}
  [[nodiscard]] std::string name() const override { return "note_categories"; }
  Action before_fit(FitContext&) override { return note(); }
  Action after_epoch(FitContext&) override { return note(); }

 private:
  Action note() {
    trace_.note_categories();
    return Action::proceed;
  }

  AllocationRecording& trace_;
};

}  // namespace tare
