// Keeps batch norms in evaluation mode.
#include "tare/callback/freeze_batch_norm.h"

#include <torch/nn/modules/batchnorm.h>

#include <algorithm>

#include "tare/base/log.h"
#include "tare/callback/registry.h"

namespace tare {
namespace {

bool is_batch_norm(const torch::nn::Module& module) {
  return dynamic_cast<const torch::nn::BatchNorm1dImpl*>(&module) ||
         dynamic_cast<const torch::nn::BatchNorm2dImpl*>(&module) ||
         dynamic_cast<const torch::nn::BatchNorm3dImpl*>(&module);
}

bool trains(const torch::nn::Module& module) {
  return std::ranges::any_of(module.parameters(/*recurse=*/false),
                             [](const at::Tensor& one) { return one.requires_grad(); });
}

}  // namespace

Action FreezeBatchNorm::before_epoch(FitContext& context) {
  bool found = false;
  for (const auto& module : context.learner.model().module()->modules()) {
    if (!is_batch_norm(*module)) continue;
    found = true;
    if (!options_.frozen_only || !trains(*module)) module->train(false);
  }
  if (!found) log::warning_once("freeze_batch_norm has no effect: the model has no batch norm");
  return Action::proceed;
}

CallbackPtr FreezeBatchNorm::planned() const { return std::make_shared<FreezeBatchNorm>(options_); }

namespace callbacks {
void add_freeze_batch_norm(Registry& all) {
  all.add<FreezeBatchNormOptions>(
      "freeze_batch_norm", "keeps the statistics of batch norms as they are",
      [](const FreezeBatchNormOptions& o) { return std::make_shared<FreezeBatchNorm>(o); });
}
}  // namespace callbacks

}  // namespace tare
