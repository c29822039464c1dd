// Defines the state of a Learner, and the work that its calls share. Internal.
#pragma once

#include <c10/core/DeviceGuard.h>

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/callback/recorder.h"
#include "tare/data/loader.h"
#include "tare/data/sampling.h"
#include "tare/inference/bundle.h"
#include "tare/memory/oom_report.h"
#include "tare/model/precision.h"
#include "tare/optim/grad_scaler.h"
#include "tare/parallel/group.h"
#include "tare/parallel/stages.h"
#include "tare/train/bundle_data.h"
#include "tare/train/compute_error.h"
#include "tare/train/micro_batches.h"
#include "tare/train/options.h"
#include "tare/train/train_state.h"

namespace tare {

class FitLoop;
class SetAside;
namespace checkpoint {
struct Contents;
}
namespace memory {
class SideWork;
}
namespace parallel {
struct Shard;
}

/// Puts copies in the place of tensors; `part` names the part of a checkpoint that they are of.
using CopyTensors = std::function<void(const std::string& part, std::vector<NamedTensor>& tensors)>;

/// Throws ConfigError, naming `where`, for options that step_in_backward cannot have.
void check_step_in_backward(const LearnerOptions& options, const std::string& where);
/// Throws ConfigError, naming `call`, for a number of epochs that is not in [1, kMostEpochs].
void check_epochs(int64_t epochs, const std::string& call);

/// Returns the tensors of a list without their names.
[[nodiscard]] std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named);
/// Returns float16 and bfloat16 to float32; others as they are.
[[nodiscard]] at::Tensor full_precision(const at::Tensor& tensor);
void to_full_precision(Outputs& outputs);

/// Holds tensors of a split on the host, batch by batch.
struct Collected {
  std::vector<std::vector<at::Tensor>> outputs, targets;  // by output and target, then by batch
  std::vector<at::Tensor> losses;

  void append(const Collected& batch);
  [[nodiscard]] Predictions all() const;
};

/// Holds everything that a Learner owns, and does the work that its calls share.
struct LearnerState {
  LearnerState(Model m, Splits d, LearnerOptions o)
      : model(std::move(m)), data(std::move(d)), options(std::move(o)) {}

  Model model;
  Splits data;
  LearnerOptions options;
  c10::Device device = c10::kCPU;  ///< of the model or, with stages, of the first of them
  parallel::Stages stages{};       ///< empty: the model is on one device
  /// Holds the newest block of each of devices() when the Learner was made.
  std::vector<uint64_t> born_after{};
  Precision precision = Precision::fp32;
  std::optional<AutocastState> autocast{};  ///< of the forward
  std::optional<GradScaler> scaler{};       ///< for fp16
  std::vector<std::string> recomputing{};   ///< the blocks in force, `auto` resolved
  ResolvedLoss loss;
  std::vector<MetricState> metrics;
  std::unique_ptr<Optimizer> optimizer;
  /// Holds tensors of the optimizer with the devices that they are from, see return_to_device().
  struct OnHost {
    at::Tensor tensor{};
    c10::Device device = c10::kCPU;
  };
  std::vector<OnHost> state_on_host{};
  double made_with_rate = 0;  ///< learning rate of the new optimizer, before any schedule
  std::vector<EpochRow> history;
  int64_t restored_epoch = 0;                          // see TrainState
  std::optional<ValidationRow> restored_validation{};  // see TrainState
  bool lent_figures = false;                           // see TrainState
  int64_t epochs_done = 0;     ///< over the Learner's life; numbers the rows, seeds sample order
  int64_t saves = 0;           ///< checkpoints written, over the Learner's life
  bool checked_batch = false;  ///< the first batch's target was checked against the output
  /// Holds the labels of a target of the batch that was last moved to a device, read before the
  /// move. Valid for that tensor until a callback writes to it.
  struct SentLabels {
    std::optional<LabelRange> range{};
    const void* target = nullptr;  // its storage, which parts share
    int64_t version = 0, first = 0, elements = 0;
    std::vector<int64_t> labels{};  // in the order of the device's memory; empty: not known
  };
  std::vector<SentLabels> sent;
  bool checked_metrics = false;  ///< the metrics were checked against an output and its target
  /// Holds the dtype and the number of dimensions of a target of the validation split.
  struct TargetKind {
    c10::ScalarType type{};
    int64_t dims = 0;
    bool operator==(const TargetKind&) const = default;
  };
  /// The first batch of the fit checks the metrics for targets of these kinds; unset: there is
  /// nothing to check.
  std::optional<std::vector<TargetKind>> metrics_to_check{};
  bool checked_graph = false;  ///< the first loss was searched for tensors that are not trained
  /// Whether the model refuses to train on one sample, for data of that shape.
  struct SingleSample {
    std::vector<int64_t> shape{};
    bool refused = false;
  };
  std::optional<SingleSample> single_sample{};
  bool running = false;
  const char* running_call = "learner";  ///< the one under way
  CallbackPtr progress;                  ///< called last, so that it shows the columns others add
  FitLoop* loop = nullptr;               ///< the fit under way, for save() from a callback
  const SetAside* set_aside = nullptr;   ///< of the search under way
  std::optional<Unfinished> pending;  ///< stopped, or loaded from a checkpoint saved inside a fit
  std::optional<BundleManifest> origin;  ///< of the bundle that load_learner() opened
  /// The data of the last fit that took a step, for a bundle; unset: none since the weights came.
  std::optional<BundleData> trained_on;
  std::optional<c10::ScalarType> seen_input;  ///< of the batches of the present data
  std::string seen_name;                      ///< of their first input
  std::vector<BundleInput> seen_more;         ///< their inputs after the first
  std::optional<VaryingDimensions> varying;   ///< of the present data; unset: before the first fit
  std::optional<int64_t> seen_outputs;        ///< of the model: classes or values of a sample
  bool new_data = false;                      ///< set_data() was called
  adapt::SizeCache sizes;  ///< of the parts of batches, by phase and sample shape
  /// Whether optimizers count their steps in tensors, as they do on a card: set for a plan of a
  /// card.
  bool for_card = false;
  /// Takes the place of LearnerOptions::group in a plan, whose batches are the parts of a rank.
  std::shared_ptr<parallel::Group> planned_group{};
  /// Called before each forward, for a plan of a model on several cards; unset: no such plan.
  std::function<void()> before_forward{};
  /// Does to the trace of a plan for a card what compact() does to a card; unset: no such plan.
  std::function<void(const std::function<void()>& meanwhile)> planned_compaction{};
  /// Makes the graphs of a plan for a card; unset: no such plan.
  std::function<std::unique_ptr<memory::DeviceGraph>()> planned_graph{};
  bool pins = false;  ///< the device copies from pinned memory beside its computation
  /// Cuts batches into parts; for a plan, into the parts that the plan goes through.
  struct {
    Slicer train = slices_of, valid = slices_of;
  } slicers;
  /// Holds, for a plan, which goes through a few batches of the validation split, how many samples
  /// of it the rank with most of them has.
  std::optional<int64_t> planned_valid_samples;

  /// Returns the ranks that train together, or are planned; null: the process is alone.
  [[nodiscard]] parallel::Group* group() const {
    return planned_group ? planned_group.get() : options.group.get();
  }
  /// Whether the process trains alone, or is the rank that writes the files of the job.
  [[nodiscard]] bool is_first_rank() const { return !group() || group()->is_first(); }
  /// Returns the samples of the largest part of a batch that a rank works on.
  [[nodiscard]] int64_t own_batch() const;
  /// Adds to the options of a loader which part of each batch is this rank's.
  [[nodiscard]] LoaderOptions shared(LoaderOptions loader) const;
  /// Returns how many samples of a split of so many the rank with most of them validates.
  [[nodiscard]] int64_t most_samples(int64_t samples) const;
  /// Puts what all ranks have seen in the place of what this one has; `most`: see most_samples().
  void merge_over_ranks(std::vector<MetricState>& seen, int64_t most) const;
  /// Resolves the names in the options and brings the model to its device, or to those of stages,
  /// and type. Throws ConfigError.
  void set_up(c10::Device to, parallel::Stages over = {});
  /// Returns the devices of the model, each once, from input to output.
  [[nodiscard]] const std::vector<c10::Device>& devices() const { return devices_; }
  /// Returns the device of the outputs, where targets are and losses are computed.
  [[nodiscard]] c10::Device output_device() const {
    return stages.empty() ? device : stages.all().back().device;
  }
  /// Moves the model to its device or devices.
  void place();
  /// Copies outputs that another stage than the last has made to output_device().
  void gather(Outputs& outputs) const;
  /// Throws ConfigError, naming `call`, for what Learner::set_up() does not take.
  void check(const FitSetup& setup, const std::string& call) const;
  /// Throws ConfigError for two metrics of one name.
  void check_metric_names() const;
  /// Throws ConfigError for a precision that the device cannot compute in.
  void check_autocast() const;
  /// Warns of one that it has no instructions for.
  void warn_of_precision() const;
  /// Throws ConfigError for what set_recompute() does not take.
  void check_recompute(const std::vector<std::string>& modules) const;
  void set_recompute(const std::vector<std::string>& modules);
  void set_offload(const std::vector<std::string>& modules);
  /// Brings what is held as E4M3 in line with what is frozen, see LearnerOptions::frozen_weights.
  /// Weights on a card are converted on the host, by compact(): there a conversion would leave gaps
  /// that depend on what was there before.
  void hold_frozen();
  /// Freezes as Learner::freeze_to() does, but leaves an unfinished fit as it is.
  FreezeReport freeze_to(int64_t first, const FreezeOptions& freezing);
  /// Returns what Learner::ledger() returns.
  [[nodiscard]] Ledger ledger() const;
  /// Counts what frozen parameters take, where holding them is an option.
  void count_frozen(FreezeReport& report) const;
  [[nodiscard]] const DatasetPtr& split(Split which, const char* call) const;
  /// Throws ConfigError, naming `call`, for LearnerOptions::valid_every without a validation split.
  void check_valid_every(const char* call) const;
  /// Throws ConfigError or StateError, naming `call`, if the plan cannot be fitted.
  void check_fit(const FitPlan& plan, const std::string& call);
  /// Moves back what a compaction that was refused memory has left on the host. Throws
  /// c10::OutOfMemoryError; what is moved stays so.
  void return_to_device();
  /// Moves the weights and the optimizer's state through the host, so that they end up in segments
  /// of the device without gaps, whatever they were in. Calls `meanwhile`, if given, while they are
  /// on the host, and throws what it throws, with all back on the device. Gradients become
  /// undefined. Throws OutOfMemory where the device has no memory to take them back; then weights
  /// and state are whole on the host.
  void compact(const std::function<void()>& meanwhile = {});
  /// Returns the tensors of the optimizer's state that are on the device.
  [[nodiscard]] std::vector<at::Tensor> optimizer_state() const;
  /// Returns the tensors of optimizer_state() and of stored_state().
  [[nodiscard]] std::vector<at::Tensor> weights_and_state() const;
  /// Moves a host batch to the model's device, its input to the model's type, and notes it.
  void to_device(Batch& batch);
  /// Returns a copy of a host batch on the device, in new memory of the computation, made beside
  /// the computation: SideWork::join() comes before its use.
  [[nodiscard]] Batch copied(const Batch& on_host, memory::SideWork& side) const;
  /// Notes a batch that the computation is given: what its inputs are, and its labels for
  /// check_output().
  void note_batch(const Batch& on_host, const Batch& on_device);
  /// Whether inputs are converted on the host, to the model's type or memory format.
  [[nodiscard]] bool converts_inputs() const;
  void convert_inputs(Batch& batch) const;
  /// Returns a host batch with converted inputs, pinned where that lets copies run beside.
  [[nodiscard]] Batch ready_to_send(const Batch& on_host) const;
  Optimizer& ensure_optimizer();
  /// Returns what this rank keeps a part of; unset: it has the whole.
  [[nodiscard]] std::optional<parallel::Shard> shard() const;
  /// Whether each rank keeps the gradients of its own parameters alone, and their values.
  [[nodiscard]] bool shards_gradients() const;
  [[nodiscard]] bool shards_parameters() const;
  /// Gives this rank all parameters in a fit that shards them, as long as the result lives.
  [[nodiscard]] std::shared_ptr<void> whole_parameters() const;
  /// Puts together what each rank has a part of.
  [[nodiscard]] std::vector<NamedTensor> over_ranks(const std::vector<NamedTensor>& own) const;
  /// Returns what each rank of a planned group gives to over_ranks(), by the state of this one.
  [[nodiscard]] std::vector<std::vector<parallel::Group::Layout>> planned_over_ranks(
      const std::vector<NamedTensor>& own) const;
  /// Returns the parameter groups of the optimizer or, one after the other, of the optimizers.
  [[nodiscard]] std::vector<ParameterGroup> groups() const;
  [[nodiscard]] std::vector<std::string> optimizer_names() const;  ///< of several optimizers
  [[nodiscard]] std::vector<std::string> turn_names() const;       ///< the turns' optimizers
  /// Throws StateError, naming `call`, for a turn whose optimizer has no trainable parameter, and
  /// ConfigError for a fit to resume with other optimizers or turns, or in another order, and for a
  /// position that lies behind the turns of the task.
  void check_turns(const FitPlan& plan, const char* call);
  /// Returns the learning rate that the optimizer was made with.
  [[nodiscard]] double base_rate();
  /// Returns the parts of a batch for forward and backward.
  [[nodiscard]] std::vector<BatchPart> parts_of(const Batch& whole, int64_t size,
                                                const Slicer& slicer) const;
  /// Holds the existing gradients by parameter. The functions below move them out of the
  /// parameters, and add them again; neither changes the tensors themselves.
  using Gradients = std::vector<std::pair<at::Tensor, at::Tensor>>;
  [[nodiscard]] Gradients take_gradients() const;
  static void add_gradients(const Gradients& gradients);
  /// Returns the bytes of all gradients together.
  [[nodiscard]] int64_t gradient_bytes() const;
  /// Returns the sizes with which a phase begins; see MicroBatches.
  [[nodiscard]] MicroBatches::Settings micro_batches(const char* phase) const;
  /// Returns the settings of a validation. For `first` see
  /// FitOptions::first_validation_micro_batch.
  [[nodiscard]] MicroBatches::Settings validation_micro_batches(int64_t first) const;
  /// Returns the loss and metrics over a split. Calls `on_change` after a batch that was worked on
  /// in parts of a new size. With `predictions` it also collects what get_preds() returns for
  /// `wanted`.
  Evaluation evaluate(const DatasetPtr& set, const MicroBatches::Settings& settings,
                      const std::function<void(MicroBatchChange)>& on_change,
                      const PredictOptions& wanted = {}, Predictions* predictions = nullptr);
  /// Returns what Learner::get_preds() returns. Calls `on_change` as evaluate() does.
  Predictions get_preds(const DatasetPtr& set, const PredictOptions& wanted,
                        const std::function<void(MicroBatchChange)>& on_change);
  /// Notifies the Learner's own callbacks of a change outside a fit.
  void report(LearnerView& learner, MicroBatchChange change) const;
  /// Returns the micro-batches of a fit that starts now, before the optimizer's state is made.
  /// `first` is the size with which the fit starts, see FitOptions.
  [[nodiscard]] MicroBatches::Settings training_micro_batches(int64_t first) const;
  struct Seen {  // of a batch
    at::Tensor loss{};
    double counted = 0;
    std::vector<MetricState> metrics{};
    Collected predictions{};
  };
  /// Evaluates the model on a batch, and collects predictions in `wanted` unless it is nullptr.
  [[nodiscard]] Seen evaluate(const Batch& whole, int64_t size,
                              const std::vector<MetricState>& fresh, const PredictOptions* wanted);
  /// Throws StateError for losses that are asked for and not there.
  void check_predict(const PredictOptions& wanted, const char* call) const;
  /// Collects what get_preds() returns for the raw output of a part.
  void collect(const Batch& part, const Outputs& outputs, const PredictOptions& wanted,
               Collected& into);
  [[nodiscard]] Outputs predict(const Batch& batch);
  /// Does work in which all ranks take part; an error of this rank ends the others, which would
  /// wait for it.
  template <class Work>
  auto together(Work&& work) const {
    try {
      return work();
    } catch (...) {
      if (group()) group()->fail(std::current_exception());
      throw;
    }
  }
  /// Does work of a stage; what LibTorch refuses in it becomes a ComputeError.
  template <class Work>
  auto explained(ComputeError::Stage stage, const Batch* batch, Work&& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      explain(stage, batch, error);
    }
  }
  /// Does work of a loss or a metric likewise. `describe` returns the ComputeError::Operation,
  /// with the outputs and targets that it takes.
  template <class Describe, class Work>
  auto explained_score(ComputeError::Stage stage, Describe&& describe, Work&& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      explain(stage, nullptr, error, describe());
    }
  }
  /// Computes mean_loss(), explained.
  [[nodiscard]] at::Tensor explained_loss(const Outputs& outputs, const Batch& batch,
                                          double counted);
  /// Called in a handler. Throws ComputeError for errors of LibTorch and oneDNN; rethrows others
  /// and what is out of memory.
  [[noreturn]] void explain(ComputeError::Stage stage, const Batch* batch,
                            const std::exception& error, ComputeError::Operation operation = {});
  /// Warns, once, of trainable tensors that the loss depends on and the optimizer does not have.
  void check_graph(const at::Tensor& loss, const Batch& batch);
  /// Computes the model's outputs, and compute_task() a Task's step, in `precision`; the results
  /// are float32.
  [[nodiscard]] Outputs compute(const Batch& batch) const;
  [[nodiscard]] StepResult compute_task(const Batch& batch, const Turn* turn = nullptr);
  /// Returns the labels of a target, without waiting for the device; unset: unknown. Of a part on a
  /// device that is not one piece of memory, `counted` is -1.
  [[nodiscard]] std::optional<LabelRange> labels_of(const at::Tensor& target) const;
  /// Holds the labels of each target, as far as they are known.
  using Labels = c10::SmallVector<std::optional<LabelRange>, 1>;
  /// Checks what the loss would fail on: shapes and the number of outputs at the first batch, class
  /// labels at each. Throws as check_batch(). Waits for the device at the first batch only. Returns
  /// the labels that it saw.
  Labels check_outputs(const Outputs& outputs, const Batch& batch);
  /// Returns what the mean loss of a batch is over; `labels` are those of the batch, where they are
  /// known.
  [[nodiscard]] double counted(const Batch& batch, const Labels& labels = {}) const;
  /// Returns what the mean loss over one target is over.
  [[nodiscard]] double counted(const at::Tensor& target,
                               const std::optional<LabelRange>& labels) const;
  /// Returns the mean loss; 0, with gradients of 0, for a batch of which no label counts.
  [[nodiscard]] at::Tensor mean_loss(const Outputs& outputs, const Batch& batch,
                                     double counted) const;
  /// Throws ShapeError for a loss of a batch that is not a scalar. An undefined one passes.
  void check_scalar(const at::Tensor& value) const;
  /// Looks at the targets of the validation split, for check_metrics(), unless its metrics were
  /// checked before. Reads one sample.
  void expect_metrics();
  /// Checks the metrics against a training batch, where its targets are like those of the
  /// validation, so that an epoch is not trained for nothing. Without a task, whose outputs in
  /// training may be others, functions are called. Throws as MetricState::check(), and
  /// ComputeError.
  void check_metrics(const Outputs& outputs, const Batch& batch);
  /// Calls MetricState::check() and MetricState::update(), explained.
  void check_metric(const MetricState& metric, const at::Tensor& output, const at::Tensor& target);
  void update_metric(MetricState& metric, const at::Tensor& output, const at::Tensor& target);
  /// Makes a state for each metric and each target of the batch, with names of their own, for so
  /// many samples.
  void prepare_metrics(const Batch& batch, int64_t samples);
  /// Throws DeviceError for a batch that is not on the model's device.
  void check_devices(const Batch& batch) const;
  [[nodiscard]] TrainState train_state() const;
  /// Returns what decides which samples the steps of a fit get that starts now.
  [[nodiscard]] SampleOrder sample_order();
  /// Throws ConfigError, naming `call`, for group_by_length of data or options it does not fit.
  void check_group_by_length(const std::string& call) const;
  /// Throws ConfigError, naming `call`, where a batch norm of the model would get one sample in
  /// training, and no setting allows to skip it.
  void check_single_samples(const std::string& call);
  /// Returns LearnerOptions::drop_last, resolved.
  [[nodiscard]] bool drops_last();
  /// Whether the model has a batch norm that refuses to train on one sample.
  [[nodiscard]] bool refuses_single_sample();
  /// Returns the rest of what a checkpoint holds, all at the position of train_state(): inside a
  /// batch that has not been counted, buffers and random generators are as they were before the
  /// batch.
  [[nodiscard]] std::vector<NamedTensor> saved_model() const;
  [[nodiscard]] std::vector<NamedTensor> saved_rng() const;
  /// Returns the states of this rank's random generators among those of a checkpoint; none where it
  /// was saved by fewer ranks.
  [[nodiscard]] std::vector<NamedTensor> own_rng(const std::vector<NamedTensor>& saved) const;
  /// Returns the gradients of batches for which a callback skipped the step, which are added to the
  /// next one; only with a position.
  [[nodiscard]] std::vector<NamedTensor> saved_gradients() const;
  /// Copies, on the model's device, of the gradients in a checkpoint. Throws FormatError for one
  /// that fits no parameter.
  [[nodiscard]] Gradients loaded_gradients(const std::vector<NamedTensor>& extra,
                                           const std::string& path) const;
  /// Returns the optimizer's state, of all ranks where each keeps a part.
  [[nodiscard]] std::vector<NamedTensor> saved_optimizer() const;
  /// Returns what a checkpoint of this moment holds. Without `copy` it shares the tensors of the
  /// model, the optimizer and the callbacks.
  [[nodiscard]] checkpoint::Contents contents(const CopyTensors& copy = {}) const;
  /// Takes over the progress of a checkpoint; tensors and callbacks are not touched.
  void set_progress(TrainState state);
  /// Notes the present data as those that the model was last trained on.
  void note_trained();
  /// Describes the data that the model was last trained on, also inside a fit; unset: the weights
  /// took no step here.
  [[nodiscard]] std::optional<BundleData> described_data() const;
  /// Notes the data that the weights of a checkpoint were trained on, see TrainState::data.
  void note_loaded(const std::string& described);
  /// Throws ConfigError, naming `call`, for class names of which two are equal, or that are not as
  /// many as the model's outputs, where their number is known.
  void check_labels_fit(const BundleManifest& manifest, const std::vector<std::string>& labels,
                        const char* call) const;
  /// Throws StateError, naming `call`, for data that no bundle can describe.
  [[nodiscard]] BundleManifest manifest(const std::vector<std::string>& labels,
                                        const char* call) const;

 private:
  std::vector<c10::Device> devices_{c10::kCPU};
};

/// Adds "name float32 [16, 3]" to the operands; an undefined tensor is skipped.
void add_operand(ComputeError::Operation& to, const std::string& name, const at::Tensor& tensor);

/// Marks the Learner as running, so that calls that callbacks may not make throw StateError, has
/// refused allocations reported, and makes its device the current one: LibTorch chooses kernels by
/// the current card.
class RunningScope {
 public:
  RunningScope(LearnerState& state, const char* call)
      : state_(state),
        current_(state.device),
        kernels_(state.options.kernels),
        watch_({.batch = state.options.batch}) {
    state_.running = true;
    state_.running_call = call;
  }
  ~RunningScope() {
    state_.running = false;
    state_.loop = nullptr;
  }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;

 private:
  LearnerState& state_;
  c10::OptionalDeviceGuard current_;
  KernelScope kernels_;
  memory::OutOfMemoryWatch watch_;
};

}  // namespace tare
