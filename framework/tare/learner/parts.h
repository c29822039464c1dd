// What a Learner is made of; shared by its source files only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/callback/recorder.h"
#include "tare/data/loader.h"
#include "tare/inference/bundle.h"
#include "tare/learner/learner.h"
#include "tare/learner/rng.h"
#include "tare/learner/step_snapshot.h"
#include "tare/learner/train_state.h"

namespace tare {

/// Means over samples, summed where the values are: reading them waits for the device once, not
/// each step.
class LossMeter {
 public:
  /// Makes room for the sum on a device, so that add() allocates nothing.
  void prepare(c10::Device device);
  void reset();
  void add(const at::Tensor& loss, int64_t samples);
  [[nodiscard]] double mean() const;
  [[nodiscard]] int64_t samples() const { return samples_; }
  /// For a checkpoint saved inside an epoch.
  [[nodiscard]] double sum() const;
  void restore(double sum, int64_t samples);

 private:
  double sum_ = 0;
  at::Tensor device_sum_;
  int64_t samples_ = 0;
};

struct Learner::Parts {
  Parts(Model m, Splits d, LearnerOptions o)
      : model(std::move(m)), data(std::move(d)), options(std::move(o)) {}

  Model model;
  Splits data;
  LearnerOptions options;
  c10::Device device = c10::kCPU;
  ResolvedLoss loss;
  std::vector<MetricState> metrics;
  std::unique_ptr<Optimizer> optimizer;
  double made_with_rate = 0;
  std::vector<EpochRow> history;
  int64_t epochs_done =
      0;              ///< over the Learner's life: numbers the rows, seeds the order of samples
  int64_t saves = 0;  ///< checkpoints written, over the Learner's life
  bool checked_batch = false;  ///< the first batch's target was compared with the model's output
  /// Of the batch that went to a device last, read before it went. They hold for that tensor while
  /// no callback writes to it.
  struct {
    std::optional<LabelRange> range;
    const void* target = nullptr;
    int64_t version = 0;
  } sent;
  bool running = false;
  CallbackPtr progress;               ///< behind all others, so that it shows the columns they add
  Run* run = nullptr;                 ///< the fit under way, for save() from a callback
  std::optional<Unfinished> pending;  ///< stopped, or loaded from a checkpoint saved inside a fit
  std::optional<BundleManifest> origin;  ///< what load_learner() opened

  [[nodiscard]] const DatasetPtr& split(Split which, const char* call) const;
  /// The host's batch where the model is; notes its labels for check_output(). Throws DeviceError
  /// for a batch of another device.
  [[nodiscard]] Batch to_device(const Batch& batch);
  Optimizer& ensure_optimizer();
  /// The rate that the optimizer was made with.
  [[nodiscard]] double base_rate();
  Evaluation evaluate(const DatasetPtr& set);
  [[nodiscard]] at::Tensor predict(const Batch& batch);
  /// What the loss would fail on: shapes, at the first batch; class labels, at each. Throws what
  /// check_batch() throws. Waits for the device at the first batch only.
  void check_output(const at::Tensor& output, const Batch& batch);
  /// Throws DeviceError for a batch that is not where the model is.
  void check_devices(const Batch& batch) const;
  /// Keeps where a fit stopped, for save() and resume().
  void keep_position(const Run& fit);
  [[nodiscard]] TrainState train_state() const;
  [[nodiscard]] BundleManifest manifest(const std::vector<std::string>& labels) const;
};

struct Learner::Run {
  FitPlan plan;
  std::vector<CallbackPtr> callbacks;
  FitContext context;
  std::unique_ptr<Loader> loader{};
  LossMeter meter{};
  StepSnapshot snapshot{};
  FitResult result{};
  Action action = Action::proceed;  ///< the strongest answer since it was last looked at
  bool interrupted = false;
  bool closing = false;  ///< in after_epoch: the epoch is whole, its row still open

  /// Notifies all callbacks; false when one answers `least` or more. What reaches beyond this batch
  /// is kept in `action`.
  bool allows(EventMethod event, Action least) {
    const Action answer = notify(callbacks, event, context);
    if (answer > Action::skip && answer > action) action = answer;
    return answer < least;
  }
  void notify_quietly(EventMethod event);
  /// From here on the batch counts: weights, running statistics, mean loss and position belong
  /// together. Allocates nothing.
  void count_batch();
  /// The plan with the epoch under way, as a checkpoint needs it.
  [[nodiscard]] FitPlan current_plan() const;
  void release_step();
};

/// Marks the Learner as running; what callbacks may not call then throws StateError.
class Learner::RunningScope {
 public:
  explicit RunningScope(Parts& parts) : parts_(parts) { parts_.running = true; }
  ~RunningScope() {
    parts_.running = false;
    parts_.run = nullptr;
  }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;

 private:
  Parts& parts_;
};

}  // namespace tare
