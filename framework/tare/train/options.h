// Options and results of the Learner: plain values.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/config/field.h"
#include "tare/data/splits.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/model/kernels.h"
#include "tare/model/model.h"
#include "tare/optim/fit_schedules.h"
#include "tare/optim/optimizer.h"
#include "tare/optim/optimizer_set.h"
#include "tare/optim/schedule.h"
#include "tare/parallel/data_parallel_options.h"
#include "tare/train/duration.h"

namespace tare::parallel {
class Group;
}

namespace tare {

/// Holds the result of a Task's step: the loss to differentiate, and the outputs for the metrics.
struct StepResult {
  at::Tensor loss{};  ///< scalar, with its graph
  Outputs outputs{};  ///< of the model, for the metrics
};

/// Describes a step of one optimizer of several, on the batch that all turns of a task share.
struct Turn {
  std::string optimizer{};  ///< its name in LearnerOptions::optimizers
  /// The loss that this optimizer lowers. The parameters of the other optimizers want no gradients
  /// meanwhile.
  std::function<StepResult(Model&, const Batch&)> step{};
};

/// Replaces `loss(model(inputs), targets)` where training is more than a forward and a loss.
struct Task {
  std::function<StepResult(Model&, const Batch&)> step{};  ///< training and validation
  /// The forward of get_preds(); empty: the outputs of `step`.
  std::function<Outputs(Model&, const Batch&)> predict{};
  /// Adds the tensors that the functions hold to the Learner's ledger; may be empty.
  std::function<void(Ledger&)> account{};
  /// Returns the divisor of the mean loss of a batch, such as its number of tokens or the sum of
  /// their weights; means over parts and batches are weighted by it. Empty: the samples.
  std::function<double(const Batch&)> counted{};
  /// The turns that a training step of a Learner with several optimizers consists of, in this
  /// order, such as a discriminator's turn before a generator's; an optimizer may have several
  /// turns or none. `step` is then for validation alone. Each turn has gradients, parts of the
  /// batch, clipping and a retry after an out-of-memory of its own, and is kept when a later turn
  /// fails: resume() continues with that turn. Callbacks see after_forward to after_step in each
  /// turn, the other events once; the training loss of a batch is that of the last turn. Empty: all
  /// optimizers step together, by the gradients of `step` or of the loss.
  std::vector<Turn> turns{};
  /// Whether it has a step.
  explicit operator bool() const { return static_cast<bool>(step); }
};

/// Sets the samples per forward: a number, or `auto`, found by what memory allows.
struct MicroBatch {
  std::optional<int64_t> samples{};  ///< unset: auto
  bool operator==(const MicroBatch&) const = default;
};
void from_node(const config::Node& node, MicroBatch& value);
[[nodiscard]] config::Node to_node(const MicroBatch& value);

/// Names some blocks of the model, or `all`, `none`; for `recompute` also `auto`.
struct BlockNames {
  std::vector<std::string> modules{};  ///< see LearnerOptions::recompute
  bool operator==(const BlockNames&) const = default;
};
void from_node(const config::Node& node, BlockNames& value);
[[nodiscard]] config::Node to_node(const BlockNames& value);

/// Gives classes weights in the drawing of samples; in YAML `{cat: 3, dog: 0.5}`.
struct ClassSampling {
  /// Holds a weight >= 0 for labels of the data; a label that is missing has 1. Empty: none.
  std::map<std::string, double> weights{};
  bool operator==(const ClassSampling&) const = default;
};
void from_node(const config::Node& node, ClassSampling& value);
[[nodiscard]] config::Node to_node(const ClassSampling& value);

/// Sets how a Learner trains in every fit.
struct LearnerOptions {
  Loss loss = "cross_entropy";  ///< a name (see loss_names()) or a function of (output, target)
  /// Names (see metric_names()) or functions, computed in each validation, each of another name. In
  /// a fit with a validation split they are checked at the first batch. Of data with several
  /// targets each metric has a column for each target: "mae.age".
  std::vector<Metric> metrics{};
  std::string device = "auto";  ///< auto | cpu | cuda | cuda:N; auto: the first GPU, else the CPU
  int64_t batch = 64;           ///< samples per optimizer step, >= 1
  /// Samples per forward and backward, in [1, batch]; gradients add up over the batch. Unset: the
  /// whole batch, and parts of it when memory is out (docs/out-of-memory.md). Parts change what
  /// batch normalisation and dropout see.
  std::optional<int64_t> micro_batch{};
  /// Blocks of the model, or modules above them, whose activations are not kept for the backward
  /// but computed again in it (model/block.h); {"all"}: every block; {"auto"}: as few as the
  /// memory that there is asks for, by a plan. Saves memory, takes about a third more time;
  /// the result is the same, bit for bit.
  std::vector<std::string> recompute{};
  /// Blocks whose activations wait for the backward in the host's memory (memory/offload.h);
  /// {"all"}: every block. The result is the same, bit for bit. Without effect on the CPU. With
  /// `recompute` too, the block's inputs wait there.
  std::vector<std::string> offload{};
  /// fp32 | bf16 | fp16 | bf16-true, see Precision. fp16: with a GradScaler, and a step whose
  /// gradients overflow is skipped. Loss, metrics and what callbacks see stay float32.
  std::string precision = "fp32";
  KernelOptions kernels{};  ///< TF32, cuDNN, channels_last, deterministic; while the Learner works
  /// The optimizer steps each parameter inside the backward, as soon as its gradient is complete,
  /// and frees the gradient. The result is the same, bit for bit. Then batches are not cut into
  /// parts, an out-of-memory in a backward leaves some parameters stepped, callbacks see no
  /// gradient, and neither fp16 nor a torch::optim optimizer can be had.
  bool step_in_backward = false;
  /// Whether a card records the steps of a fit as CUDA graphs and queues each as a whole, which
  /// spares the calls that queue its kernels one by one. The first steps of each layout of a batch
  /// are done as without. Loss and weights are those without, but that the rates are rounded to
  /// float32. What a recorded step takes stays with it to the end of the fit. The model and the
  /// loss must not wait for the card. In a recorded step, callbacks are called when the whole step
  /// is queued, and may neither change the outputs or the loss nor skip anything; `outputs` are
  /// overwritten by the next step. With an optimizer other than adam, adamw and sgd, and where
  /// momentum, beta2 or weight decay change, the optimizer's step is not recorded.
  bool graph = false;
  /// as_is | fp8. fp8: the matrices and convolutions of the blocks of frozen layer groups are held
  /// as E4M3 with a scale for each row (model/coded_weight.h), and dequantised while their block
  /// computes, forward and backward. Rounds them, for good: unfreezing gives the rounded values.
  /// Needs a model with blocks; what lies outside of them stays as it is.
  std::string frozen_weights = "as_is";
  OptimizerOptions optimizer{};  ///< one of optimizer_kinds(), with its options
  /// Bounds on the gradients of each step, after those of its micro-batches have been added up and
  /// unscaled. Not allowed with step_in_backward, which never has all gradients.
  ClipOptions clip{};
  /// Any other optimizer, e.g. torch_optimizer<torch::optim::RMSprop>(); empty: `optimizer`, which
  /// must be unset beside it: the factory gets its own options.
  OptimizerFactory optimizer_factory{};
  /// Several optimizers, each for parameters of its own, in place of `optimizer` and
  /// `optimizer_factory`; see Task::turns. Every trainable parameter belongs to one of them. A
  /// rate that a fit is given is that of the first; the others keep their ratio to it. Not with
  /// step_in_backward. Empty: one optimizer.
  std::vector<NamedOptimizer> optimizers{};
  uint64_t seed = 42;   ///< of sample order and augmentation, not of the model's weights
  int64_t workers = 1;  ///< loader threads; 0: batches are made between the steps
  bool shuffle = true;  ///< a new order of the training split in each epoch
  /// each | balanced. each: an epoch has every sample of the training split once. balanced: an
  /// epoch has as many samples, drawn so that every class comes equally often; needs class labels.
  std::string sampling = "each";
  /// In place of `sampling`: an epoch has as many samples, drawn so that one of a class comes as
  /// often as the weight of the class says; needs class labels with names.
  ClassSampling class_sampling{};
  /// Whether batches are made of samples of similar length, so that little of them is padding, see
  /// grouped_by_length(). Needs `shuffle`, and samples of different lengths. The order of the
  /// validation stays that of its split.
  bool group_by_length = false;
  /// Optimizer steps between two validations inside an epoch, counted over the fit; 0: none. Such a
  /// validation changes nothing of the training, and callbacks see it as that at the end of the
  /// epoch, which follows as always, unless nothing was trained since. Needs a validation split.
  int64_t valid_every = 0;
  /// Whether checkpoints that callbacks save in a fit are written by a thread while training goes
  /// on. The step waits only until the state is copied. The copies take as much memory of the host
  /// as the checkpoint has tensors, from the beginning of the fit to its end. One is written at a
  /// time: the next save waits for it, as the end of the fit does.
  bool save_in_background = false;
  /// A weight >= 0 for each sample of the training split: an epoch has as many samples, each as
  /// often as its weight says, see weighted_indices(). Empty: the classes or `sampling` decide.
  std::vector<double> sample_weights{};
  /// Whether an epoch skips a last batch that is not full. Unset: it skips one only where a part of
  /// it would be a single sample that a batch norm of the model cannot train on, because one value
  /// per channel has no variance.
  std::optional<bool> drop_last{};
  /// A fit throws DivergedError at the first loss that is NaN or infinite, before the step changes
  /// the weights, and for an epoch's mean losses. On the host it reads each loss, on a device every
  /// 16th, so that it does not wait at each step. A StopOnNan of your own is asked first.
  bool stop_on_nan = true;
  std::filesystem::path folder = "runs";  ///< for checkpoints and logs; created when first needed
  std::vector<CallbackPtr> callbacks{};   ///< of every fit
  Task task{};                            ///< empty: loss(model(inputs), targets)
  bool progress = true;                   ///< print the epochs table to standard output
  /// The ranks that train together, each in a process of its own: `batch` is that of all of them,
  /// each works on its part of it, and the gradients are averaged. Null: the process is alone. See
  /// docs/distributed.md for what is then done together.
  std::shared_ptr<parallel::Group> group{};
  parallel::DataParallelOptions data_parallel{};  ///< how the ranks exchange gradients
  /// The devices of the parts into which the model is divided by its layer groups, from input to
  /// output, such as {"cuda:0", "cuda:1"}; see parallel/stages.h. Empty: the model is on `device`.
  std::vector<std::string> stages{};
};

/// Lists the options that a file can give, with their rules. Functions and values of single samples
/// have no form in a file: `optimizer_factory`, `optimizers`, `callbacks`, `task` and
/// `sample_weights` are not in the list.
void visit_fields(config::Visitor& visit, LearnerOptions& options);

/// Changes a Learner between two fits, see Learner::set_up(). An unset member changes nothing.
struct FitSetup {
  std::optional<Splits> data{};                         ///< the old data is released
  std::optional<int64_t> batch{};                       ///< see LearnerOptions::batch
  std::optional<MicroBatch> micro_batch{};              ///< see LearnerOptions::micro_batch
  std::optional<std::vector<std::string>> recompute{};  ///< see LearnerOptions::recompute
  std::optional<std::vector<std::string>> offload{};    ///< see LearnerOptions::offload
};

/// Configures one call of fit().
struct FitOptions {
  /// One rate, or lr_range(first, last) over the layer groups; LrFindOptions: the rate that a
  /// search at the begin of the fit suggests, for all layer groups; unset: the optimizer's own.
  std::optional<LearningRate> lr{};
  Schedule schedule{};                   ///< of rate and momentum over the fit; constant by default
  HyperSchedules schedules{};            ///< of momentum, beta2 and weight decay
  std::vector<CallbackPtr> callbacks{};  ///< of this call only, after the Learner's
  /// The micro-batch to start with where none is set or was found before, such as
  /// MemoryPlan::largest_micro_batch; 0: the whole batch.
  int64_t first_micro_batch = 0;
  /// The first micro-batch of the validation after each epoch, such as
  /// MemoryPlan::largest_validation_micro_batch.
  int64_t first_validation_micro_batch = 0;
};

/// Whether LearnerOptions::recompute is left to a plan.
[[nodiscard]] bool is_auto(const std::vector<std::string>& recompute);

/// Configures one call of fit_one_cycle(). The curve is fastai's (see schedule.h).
struct OneCycleOptions {
  LearningRate max_lr = 1e-3;            ///< peak; as FitOptions::lr
  OneCycle shape{};                      ///< of the curve
  std::vector<CallbackPtr> callbacks{};  ///< of this call only, after the Learner's
};

/// Configures one call of fine_tune().
struct FineTuneOptions {
  int64_t frozen_epochs = 1;             ///< of the last layer group alone, >= 1
  double lr = 2e-3;                      ///< peak rate of the last layer group while it is alone
  std::vector<CallbackPtr> callbacks{};  ///< of both fits, after the Learner's
};

/// Reports the result of one call of fit(), fit_one_cycle() or resume().
struct FitResult {
  std::vector<EpochRow> epochs{};            ///< whole epochs; after resume() also those before it
  std::vector<ValidationRow> validations{};  ///< inside of epochs, as LearnerOptions::valid_every
  StopReason reason = StopReason::finished;  ///< why it ended
  int64_t steps = 0;                         ///< optimizer steps taken by this call
  /// EpochRow::epoch of the weights, where a callback restored those of an earlier epoch; 0: the
  /// weights are those after the last epoch.
  int64_t restored_epoch = 0;
  /// ValidationRow::step of the weights, where a callback restored those of a validation inside the
  /// epoch `restored_epoch`; 0: they are not of such a one.
  int64_t restored_step = 0;
  /// Steps skipped for gradients that are not finite (fp16); after resume() also those before it.
  int64_t overflows = 0;
  double seconds = 0;                          ///< wall time of this call
  std::optional<LrFindResult> lr_find{};       ///< of a fit whose rate was searched for
  [[nodiscard]] double samples_per_s() const;  ///< trained samples over the wall time of the epochs
};

/// Reports the two fits of fine_tune(). The second has trained no epoch where an interrupt or a
/// callback ended the first.
struct FineTuneResult {
  FitResult frozen{};  ///< of the last layer group alone
  FitResult all{};     ///< of all layer groups
};

/// Reports figures over a whole split.
struct Evaluation {
  /// The mean over all samples, or over all labels that are not ignored; NaN without any.
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::vector<MetricValue> metrics{};  ///< in the order of the options
  int64_t samples = 0;                 ///< of the split
  /// Holds the divisor of `loss`: samples, elements or labels, or the sum of their class weights.
  double counted = 0;
};

/// Selects one of the Learner's Splits for a call.
enum class Split { train, valid, test };
[[nodiscard]] const char* to_string(Split split);  ///< returns the enumerator's name; static

/// Sets how get_preds() predicts.
struct PredictOptions {
  bool activation = true;  ///< apply the loss's activation (cross_entropy: softmax)
  bool losses = false;     ///< also the loss of each sample
  bool outputs = true;     ///< false: no outputs and targets, of a pass for figures and losses
  /// Samples per forward with which the search begins, such as a plan found; 0: a batch.
  int64_t first_micro_batch = 0;
};

/// Holds the predictions of a whole split, in the order of the data set, on the host.
struct Predictions {
  at::Tensor outputs{};  ///< the first output, [samples, ...] float32
  at::Tensor targets{};  ///< the first target, [samples, ...]; undefined where the data has none
  at::Tensor losses{};   ///< [samples] float32 from the raw outputs; undefined unless asked for
  std::vector<at::Tensor> more_outputs{};  ///< those after the first, [samples, ...] float32
  std::vector<at::Tensor> more_targets{};  ///< those after the first, [samples, ...]
};

/// Holds the figures of validate() and the predictions of get_preds() for one pass over a split.
struct EvaluatedPredictions {
  Evaluation figures{};       ///< as validate() returns them
  Predictions predictions{};  ///< as get_preds() returns them
};

/// Sets which layers freeze() leaves trainable.
struct FreezeOptions {
  /// Normalisation layers of frozen groups stay trainable, as in fastai; their running statistics
  /// move either way.
  bool norms = true;
};

/// Reports how freezing or unfreezing changed the parameters and the optimizer's state.
struct FreezeReport {
  int64_t trainable = 0, frozen = 0;            ///< elements of parameters
  int64_t state_kept = 0, state_fresh = 0;      ///< parameter tensors with state kept, without yet
  int64_t gradient_bytes = 0, state_bytes = 0;  ///< freed
  /// Counts the bytes of the frozen parameters that LearnerOptions::frozen_weights holds as E4M3,
  /// with their scales; unset: they stay as they are.
  std::optional<int64_t> held_bytes{};
  int64_t other_bytes = 0;                ///< bytes of the other frozen parameters
  [[nodiscard]] std::string str() const;  ///< returns one line
};

/// Selects the parts of a checkpoint that load() takes.
struct LoadOptions {
  /// Whether to load optimizer state, progress and random generators too; false: weights only, and
  /// the present optimizer state is freed.
  bool with_opt = true;
  bool purge = true;  ///< purge first, so that old state and new weights never coexist
  /// Every tensor must fit; false: what fits is loaded, the rest reported. The optimizer's state of
  /// parameters that have another shape starts from zeros.
  bool strict = true;
};

/// Reports what load() took from a checkpoint. `fresh` and `ignored` are empty when it was strict.
struct LoadReport {
  std::vector<std::string> fresh{};            ///< parameters and buffers that kept their values
  std::vector<std::string> ignored{};          ///< tensors of the file that were not used
  bool optimizer_loaded = false;               ///< optimizer state was loaded
  std::vector<std::string> optimizer_fresh{};  ///< trainable parameters without optimizer state
  PurgeReport purged{};                        ///< what LoadOptions::purge freed
  bool resumable = false;                      ///< saved inside a fit: resume() continues it
  [[nodiscard]] std::string str() const;       ///< returns one line
};

/// Sets how export_to() writes a bundle, or a file for other programs.
struct ExportOptions {
  bool destroy = false;  ///< destroy the Learner once the file is safe
  /// Class names, a different one for each output of the model; empty: those of the data.
  std::vector<std::string> labels{};
  /// See BundleManifest::targets; they are stored for a model without labels and without rows.
  std::vector<std::string> targets{};
  /// as_is | fp32 | bf16 | fp16 | fp8 | int8, see state_for(): as they are trained, 16-bit ones as
  /// float32, or matrices in half or a quarter of the bytes. For other programs: as_is, or one of
  /// FileFormat::weights of the format.
  std::string weights = "as_is";
  /// The share by which the loss over the validation split may rise because the weights of a bundle
  /// are rounded, >= 0; 0.01 is one per cent. More is refused. Unset: no bound.
  std::optional<double> tolerance{};
  /// `tare`: a bundle. Other programs read the formats of interchange::file_formats(): `gguf`,
  /// `onnx`, `pt2` and `safetensors`.
  std::string format = "tare";
  /// Whether batch norms become part of the layers in front of them, in the formats `onnx` and
  /// `pt2`; see interchange::fold_norms().
  bool fold_norms = false;
  int64_t opset = 18;  ///< of onnx: 18, or 23, which has attention as one operator
};

/// Sets the properties of the Learner that load_learner() does not take from the bundle.
struct LearnerLoadOptions {
  /// Data for get_preds(Split::test) and validate(Split::test). The bundle's transforms are applied
  /// to them; a data set that has them is taken as it is, one that has other ones is refused.
  DatasetPtr test{};
  /// The loss; unset: the bundle's, which names none if it was a function. A function without an
  /// activation gets the bundle's.
  std::optional<Loss> loss{};
  std::string device = "auto";  ///< as in LearnerOptions
  int64_t batch = 64;           ///< samples per forward, >= 1
  Task task{};                  ///< as in LearnerOptions
};

}  // namespace tare
