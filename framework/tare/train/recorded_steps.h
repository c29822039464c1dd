// RecordedSteps: the steps of a fit that a device does again as a whole. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/memory/device_graph.h"
#include "tare/optim/fit_schedules.h"
#include "tare/train/learner_state.h"
#include "tare/train/micro_batches.h"
#include "tare/train/rank_options.h"

namespace tare {

/// Returns why LearnerOptions::graph is refused beside another option; unset: it is not.
[[nodiscard]] std::optional<RefusedOption> refused_by_graph(const LearnerOptions& options);
/// Throws ConfigError, naming `where`, for what refused_by_graph() finds.
void check_graph_option(const LearnerOptions& options, const std::string& where);

/// Returns the error of LearnerOptions::graph for a device that records no work.
[[nodiscard]] ConfigError no_graphs(c10::Device device, const std::string& where);

/// Holds a step that is recorded: the tensors that it reads and writes, which stay where they are.
struct RecordedStep {
  Batch batch{};  ///< that it reads
  /// Describes a part of the batch, the whole batch where it is not cut.
  struct Part {
    Outputs outputs{};  ///< of the model, without a graph
    at::Tensor loss{};  ///< scalar, without a graph
  };
  std::vector<Part> parts{};
  at::Tensor loss{};                     ///< of the batch, the mean of its parts
  LearnerState::Gradients gradients{};   ///< by parameter
  bool with_optimizer = false;           ///< it ends with the optimizer's step
  std::vector<const void*> addresses{};  ///< of the model's tensors
  std::unique_ptr<memory::DeviceGraph> graph{};
};

/// Keeps the recorded steps of a fit, one for each layout of a batch and division into parts. A
/// layout that has come kEager times is worth recording: until then libraries choose their kernels
/// and take their workspaces. The rates of the optimizer are in tensors, which replay() sets.
class RecordedSteps {
 public:
  static constexpr int64_t kEager = 2;  ///< steps of a layout that are done operator by operator
  static constexpr size_t kMost = 8;    ///< recorded steps; more than that share of batches is rare

  /// Begins without records. `state`, with its optimizer, must outlive this; `schedules` are those
  /// of the fit. Throws ConfigError for a device that records no work.
  RecordedSteps(LearnerState& state, const FitSchedules& schedules);

  /// Rounds the rates of the next step to float32, as a recorded one has them, so that a fit which
  /// is resumed, and begins without records, has the bits of one that was not interrupted. Where
  /// the optimizer's step is not recorded it does nothing.
  void round_rates();

  /// Returns the recorded step for a batch in these parts (empty: it is not cut); nullptr: none.
  /// `fresh`: whether such a batch is to be recorded now, which this call counts.
  [[nodiscard]] RecordedStep* find(const Batch& batch, const std::vector<BatchPart>& parts,
                                   bool& fresh);
  /// Records the step of such a batch, which `work` does with the batch and the parts that it is
  /// given, and adds its tensors to the RecordedStep. Nothing is computed. Throws OutOfMemory, and
  /// ConfigError where the step cannot be recorded.
  using Work = std::function<void(RecordedStep& step, const std::vector<BatchPart>& parts)>;
  RecordedStep& record(const Batch& batch, const std::vector<BatchPart>& parts, const Work& work);
  /// Queues the step with a batch and the optimizer's present rates.
  void replay(RecordedStep& step, const Batch& batch);
  /// Drops what is recorded, and counts anew.
  void clear();
  [[nodiscard]] int64_t replays() const { return replays_; }    ///< calls of replay()
  [[nodiscard]] int64_t recorded() const { return recorded_; }  ///< calls of record()
  /// Adds the tensors of the recorded steps to a ledger.
  void account(Ledger& ledger) const;

 private:
  struct Known {
    std::vector<double> layout{};
    int64_t seen = 0;
    std::unique_ptr<RecordedStep> step{};  // null: not recorded
  };
  [[nodiscard]] std::unique_ptr<memory::DeviceGraph> make_graph() const;
  [[nodiscard]] std::vector<double> fixed_numbers() const;
  [[nodiscard]] std::vector<const void*> addresses() const;
  [[nodiscard]] size_t steps() const;
  void watch_optimizer();
  void set_rates();

  LearnerState& state_;
  /// Whether the optimizer's step is recorded too: it reads rates from tensors, and its other
  /// numbers do not change in the fit.
  bool with_optimizer_;
  std::vector<double> fixed_;  // numbers of the optimizer that are recorded
  struct Rate {
    at::Tensor tensor{};
    double value = 0;
  };
  std::vector<Rate> rates_;  // by group
  std::vector<Known> known_;
  int64_t replays_ = 0, recorded_ = 0;
};

}  // namespace tare
