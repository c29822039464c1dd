// Options and results of the Learner: plain values.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/config/field.h"
#include "tare/data/splits.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/model/model.h"
#include "tare/optim/optimizer.h"
#include "tare/optim/schedule.h"

namespace tare {

/// What one training step computes: the loss to go backward from (scalar) and the output the
/// metrics see.
struct StepResult {
  at::Tensor loss{};
  at::Tensor output{};
};

/// Replaces `loss(model(input), target)` for models that are not one tensor in, one tensor out.
struct Task {
  std::function<StepResult(Model&, const Batch&)> step{};  ///< training and validation
  std::function<at::Tensor(Model&, const at::Tensor& input)>
      predict{};  ///< get_preds; empty: the output of `step`
  explicit operator bool() const { return static_cast<bool>(step); }
};

struct LearnerOptions {
  Loss loss = "cross_entropy";  ///< a name (see loss_names()) or a function of (output, target)
  std::vector<Metric>
      metrics{};  ///< names (see metric_names()) or functions, computed in validation
  std::string device =
      "auto";          ///< auto | cpu | cuda | cuda:N; auto: the first GPU where there is one
  int64_t batch = 64;  ///< samples per optimizer step, >= 1
  OptimizerOptions optimizer{};  ///< ours, on fused kernels
  OptimizerFactory
      optimizer_factory{};  ///< another one, e.g. torch_optimizer<torch::optim::Adam>(); empty:
                            ///< `optimizer`
  uint64_t seed = 42;   ///< of the order of samples and of augmentation; not of the model's weights
  int64_t workers = 1;  ///< loader threads; 0: batches are made between the steps
  bool drop_last = false;  ///< leave out a last batch that is not full
  std::filesystem::path folder =
      "runs";  ///< where save(name) and logs go; made when first written to
  std::vector<CallbackPtr> callbacks{};  ///< for every fit
  Task task{};                           ///< empty: loss(model(input), target)
  bool progress = true;                  ///< the epochs table on standard output
};

/// One call of fit(). The callbacks are for this call only.
struct FitOptions {
  std::optional<LearningRate>
      lr{};  ///< one rate, or lr_range(first, last) over the layer groups; unset: the optimizer's
  Schedule schedule{};  ///< the course of rate and momentum over the fit; constant by default
  std::vector<CallbackPtr> callbacks{};
};

/// One call of fit_one_cycle(). The curve is fastai's (see schedule.h).
struct OneCycleOptions {
  LearningRate max_lr = 1e-3;
  OneCycle shape{};
  std::vector<CallbackPtr> callbacks{};
};

enum class StopReason { finished, callback, interrupted };

struct FitResult {
  std::vector<EpochRow> epochs{};
  StopReason reason = StopReason::finished;
  int64_t steps = 0;  ///< optimizer steps taken by this call
  double seconds = 0;
  [[nodiscard]] double samples_per_s() const;  ///< trained samples over the wall time of the epochs
};

struct Evaluation {
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::vector<MetricValue> metrics{};
  int64_t samples = 0;
};

enum class Split { train, valid, test };
[[nodiscard]] const char* to_string(Split split);

struct PredictOptions {
  bool activation = true;  ///< apply the loss's activation (cross_entropy: softmax)
  bool losses = false;     ///< also the loss of each sample
};

/// Predictions of a whole split, in the order of the data set, on the host.
struct Predictions {
  at::Tensor outputs{};  ///< [samples, ...] float32
  at::Tensor targets{};  ///< [samples, ...]; undefined where the data has none
  at::Tensor losses{};   ///< [samples] float32 from the raw outputs; undefined unless asked for
};

struct FreezeOptions {
  bool norms = true;  ///< normalisation layers of frozen groups stay trainable, as in fastai (their
                      ///< statistics move anyway)
};

/// What freezing or unfreezing did to the optimizer's state.
struct FreezeReport {
  int64_t trainable = 0, frozen = 0;  ///< parameters (elements)
  int64_t state_kept = 0,
          state_fresh = 0;  ///< parameter tensors whose state stayed, or starts anew
  int64_t gradient_bytes = 0, state_bytes = 0;  ///< freed
  [[nodiscard]] std::string str() const;
};

struct LoadOptions {
  bool with_opt = true;  ///< take the optimizer's state too; false drops the present one
  bool purge = true;   ///< purge before the weights come in, so that the two never lie side by side
  bool strict = true;  ///< every tensor must fit; false: what fits is taken, the rest is reported
};

struct LoadReport {
  std::vector<std::string>
      fresh{};  ///< parameters and buffers that the file did not give (strict = false)
  std::vector<std::string> ignored{};  ///< tensors of the file that nothing took (strict = false)
  bool optimizer_loaded = false;
  std::vector<std::string>
      optimizer_fresh{};  ///< trainable parameters that start without optimizer state
  PurgeReport purged{};
  bool resumable = false;  ///< saved inside a fit: resume() goes on from there
  [[nodiscard]] std::string str() const;
};

struct ExportOptions {
  bool destroy = false;               ///< destroy the Learner once the file is safe
  std::vector<std::string> labels{};  ///< class names; empty: the data set's
};

struct LearnerLoadOptions {
  DatasetPtr test{};           ///< data for get_preds(Split::test) and validate(Split::test)
  std::optional<Loss> loss{};  ///< unset: the bundle's; one trained with a function names none
  std::string device = "auto";
  int64_t batch = 64;
};

}  // namespace tare
