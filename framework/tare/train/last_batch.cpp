// Finds batches of one sample, and models that refuse them.
#include "tare/train/last_batch.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/model/generators.h"
#include "tare/train/learner_state.h"
#include "tare/train/step_snapshot.h"

namespace tare {
namespace {

enum class Norms { none, of_images, of_vectors };

Norms batch_norms(const Model& model) {
  Norms found = Norms::none;
  for (const auto& module : model.module()->modules()) {
    if (dynamic_cast<const torch::nn::BatchNorm1dImpl*>(module.get())) return Norms::of_vectors;
    if (dynamic_cast<const torch::nn::BatchNorm2dImpl*>(module.get()) ||
        dynamic_cast<const torch::nn::BatchNorm3dImpl*>(module.get()))
      found = Norms::of_images;
  }
  return found;
}

/// Returns the samples in the smallest part of a batch; see slices_of() and LoaderOptions::ranks.
int64_t smallest_part(int64_t whole, const BatchSizes& sizes) {
  const int64_t batch = std::max<int64_t>(1, whole / sizes.ranks);
  const int64_t size = sizes.micro_batch.value_or(batch);
  return size >= batch ? batch : batch / ((batch - 1) / size + 1);
}

constexpr const char* kReason =
    ": batch norm gets one value per channel from it, which has no variance; ";

BatchSizes sizes_of(const DatasetPtr& train, const LearnerOptions& options) {
  return {.samples = train->size(),
          .batch = options.batch,
          .micro_batch = options.micro_batch,
          .drop_last = options.drop_last,
          .ranks = options.group ? options.group->size() : 1};
}

}  // namespace

SinglePart single_part(const BatchSizes& sizes) {
  if (smallest_part(sizes.batch, sizes) == 1) return SinglePart::every_batch;
  const int64_t rest = sizes.samples % sizes.batch;
  return rest > 0 && smallest_part(rest, sizes) == 1 ? SinglePart::last_batch : SinglePart::nowhere;
}

std::string last_batch_text(const BatchSizes& sizes) {
  const int64_t rest = sizes.samples % sizes.batch;
  return "the last batch of an epoch has " + std::to_string(rest) +
         (rest == 1 ? " sample" : " samples, in parts of which one is single") + " (" +
         std::to_string(sizes.samples) + " in batches of " + std::to_string(sizes.batch) + ")" +
         kReason;
}

void check_single_samples(const std::string& call, const BatchSizes& sizes,
                          const std::function<bool()>& refuses) {
  const SinglePart where = single_part(sizes);
  if (where == SinglePart::every_batch && refuses())
    throw ConfigError(
        call,
        (sizes.batch == 1 || !sizes.micro_batch
             ? "batch " + std::to_string(sizes.batch) +
                   (sizes.ranks > 1 ? " on " + std::to_string(sizes.ranks) + " ranks" : "")
             : "micro_batch " + std::to_string(*sizes.micro_batch)) +
            " makes single samples" + kReason + "raise it" +
            (sizes.micro_batch ? "" : " to " + std::to_string(2 * sizes.ranks) + " at least"));
  if (where == SinglePart::last_batch && !sizes.drop_last.value_or(true) && refuses())
    throw ConfigError(call,
                      last_batch_text(sizes) + "leave drop_last unset, or take another batch");
}

bool has_batch_norm_of_vectors(const Model& model) {
  return batch_norms(model) == Norms::of_vectors;
}

bool refuses_single_sample(Model& model, const std::vector<c10::Device>& devices,
                           const Batch& sample,
                           const std::function<Outputs(const Batch&)>& forward) {
  const Norms norms = batch_norms(model);
  if (norms == Norms::none) return false;
  const c10::AutoGradMode no_grad(false);
  const EvaluationScope modes(model);  // restores them
  StepSnapshot before;
  before.prepare(model, devices);
  before.take();
  model.train(true);
  bool refused = norms == Norms::of_vectors;
  Batch zeros = sample;
  for (NamedTensor& input : zeros.inputs)
    input.tensor = at::zeros(input.tensor.sizes(), input.tensor.options().device(devices.front()));
  try {
    (void)forward(zeros);
    refused = false;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {  // other errors prove nothing, such as one about a dtype
    const std::string problem = error.what_without_backtrace();
    refused |= problem.find("more than 1 value per channel") != std::string::npos;
  }
  before.restore();
  return refused;
}

bool LearnerState::refuses_single_sample() {
  if (options.task) return has_batch_norm_of_vectors(model);  // what it gives the model is unknown
  const std::vector<int64_t> shape = data.train->sample_shape();
  if (single_sample && single_sample->shape == shape) return single_sample->refused;
  if (batch_norms(model) == Norms::none) return false;
  Batch sample = data.train->first_sample();
  for (NamedTensor& input : sample.inputs)
    if (precision == Precision::bf16_true && input.tensor.is_floating_point())
      input.tensor = input.tensor.to(c10::kBFloat16);
  const bool refused = tare::refuses_single_sample(
      model, devices(), sample, [this](const Batch& batch) { return compute(batch); });
  single_sample = SingleSample{.shape = shape, .refused = refused};
  return refused;
}

bool LearnerState::drops_last() {
  if (options.drop_last) return *options.drop_last;
  const int64_t samples = data.train->size(), rest = samples % options.batch;
  return rest > 0 && rest < samples && smallest_part(rest, sizes_of(data.train, options)) == 1 &&
         refuses_single_sample();
}

void LearnerState::check_single_samples(const std::string& call) {
  const BatchSizes of = sizes_of(data.train, options);
  tare::check_single_samples(call, of, [this] { return refuses_single_sample(); });
  if (!options.drop_last && single_part(of) == SinglePart::last_batch && refuses_single_sample())
    log::info(last_batch_text(of) + "it is skipped");
}

}  // namespace tare
