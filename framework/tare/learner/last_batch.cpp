// Batches of one sample, which a batch norm cannot train on: found before the fit, and a last one
// skipped.
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/learner/parts.h"
#include "tare/model/generators.h"

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

/// Samples in the smallest part of a batch; see slices_of().
int64_t smallest_part(int64_t batch, const LearnerOptions& options) {
  const int64_t size = options.micro_batch.value_or(batch);
  return size >= batch ? batch : batch / ((batch - 1) / size + 1);
}

constexpr const char* kReason =
    ": batch norm gets one value per channel from it, which has no variance; ";

}  // namespace

bool Learner::Parts::refuses_single_sample() {
  const Norms norms = batch_norms(model);
  if (norms == Norms::none) return false;
  // What a Task gives the model is unknown; images have more than one value per channel.
  if (options.task) return norms == Norms::of_vectors;
  std::vector<int64_t> shape = data.train->sample_shape();
  if (single_sample && single_sample->shape == shape) return single_sample->refused;
  const c10::AutoGradMode no_grad(false);
  const EvaluationScope modes(model);  // restores them
  StepSnapshot before;
  before.prepare(model, model.device());
  before.take();
  model.train(true);
  SingleSample found{.shape = shape, .refused = norms == Norms::of_vectors};
  shape.insert(shape.begin(), 1);
  const auto dtype = precision == Precision::bf16_true ? c10::kBFloat16 : c10::kFloat;
  try {
    (void)compute(at::zeros(shape, at::TensorOptions(dtype).device(model.device())));
    found.refused = false;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {  // anything else says nothing, such as whole numbers wanted
    const std::string problem = error.what_without_backtrace();
    found.refused |= problem.find("more than 1 value per channel") != std::string::npos;
  }
  before.restore();
  return (single_sample = found)->refused;
}

bool Learner::Parts::drops_last() {
  if (options.drop_last) return *options.drop_last;
  const int64_t rest = data.train->size() % options.batch;
  return rest > 0 && rest < data.train->size() && smallest_part(rest, options) == 1 &&
         refuses_single_sample();
}

void Learner::Parts::check_single_samples(const std::string& call) {
  if (stand_in) return;  // a plan meets what the model refuses
  const int64_t samples = data.train->size(), rest = samples % options.batch;
  if (smallest_part(options.batch, options) == 1 && refuses_single_sample())
    throw ConfigError(call,
                      (options.batch == 1 ? std::string("batch 1")
                                          : "micro_batch " + std::to_string(*options.micro_batch)) +
                          " makes single samples" + kReason + "raise it");
  if (rest == 0 || options.drop_last.value_or(false) || smallest_part(rest, options) != 1 ||
      !refuses_single_sample())
    return;
  const std::string last = "the last batch of an epoch has " + std::to_string(rest) +
                           (rest == 1 ? " sample" : " samples, in parts of which one is single") +
                           " (" + std::to_string(samples) + " in batches of " +
                           std::to_string(options.batch) + ")";
  if (!options.drop_last)
    log::info(last + kReason + "it is skipped");
  else if (!*options.drop_last)
    throw ConfigError(call, last + kReason + "leave drop_last unset, or take another batch");
}

}  // namespace tare
