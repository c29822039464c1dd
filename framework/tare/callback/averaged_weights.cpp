// Averages weights, and puts the averages into the model and back.
#include "tare/callback/averaged_weights.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/callback/registry.h"
#include "tare/config/scalar.h"

namespace tare {
namespace {

/// A 16-bit average would lose updates that are smaller than its last bit.
c10::ScalarType average_type(const at::Tensor& parameter) {
  return parameter.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
}

bool is_averaged(const Parameter& parameter) {
  return parameter.tensor.requires_grad() && c10::isFloatingType(parameter.tensor.scalar_type());
}

/// Returns the first epoch, from 0, whose weights are averaged.
int64_t first_epoch(const SwaOptions& options, const FitContext& context) {
  return static_cast<int64_t>(std::floor(options.start * static_cast<double>(context.epochs)));
}

/// Returns the decay of the update after step `step`, counted from 1.
double decay_of(const EmaOptions& options, int64_t step) {
  if (step > options.warmup) return options.decay;
  return options.decay * static_cast<double>(step - 1) / static_cast<double>(options.warmup);
}

bool is_like(const at::Tensor& one, const at::Tensor& other) {
  return one.dtype() == other.dtype() && one.device() == other.device();
}

}  // namespace

Action AveragedWeights::before_fit(FitContext& context) {
  if (context.step == 0) {  // a resumed fit continues
    updates_ = epochs_ = 0;
    purge();
  }
  restored_ = false;
  begin(context.learner.model());
  return Action::proceed;
}

void AveragedWeights::begin(const Model& model) {
  if (!averages_.empty()) return;  // of the fit that this process continues
  const c10::NoGradGuard no_grad;
  if (loaded_.empty()) updates_ = 0;  // such as after a purge: the weights begin a new average
  names_.clear();
  std::vector<Average> averages;
  const auto& parameters = model.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!is_averaged(parameters[i])) continue;
    const at::Tensor weights = parameters[i].tensor.detach();
    const at::Tensor from = loaded_.empty() ? weights : loaded(parameters[i]);
    averages.push_back(
        {i, from.to(at::TensorOptions(average_type(weights)).device(weights.device()),
                    /*non_blocking=*/false, /*copy=*/true)});
    names_.push_back(parameters[i].name);
  }
  decays_.clear();
  for (const Average& one : averages) {
    const auto options = one.tensor.options();
    const auto fits = [&](const at::Tensor& decay) { return is_like(decay, one.tensor); };
    if (std::ranges::none_of(decays_, fits)) decays_.push_back(at::zeros({}, options));
  }
  averages_ = std::move(averages);
  loaded_.clear();
}

at::Tensor AveragedWeights::loaded(const Parameter& parameter) const {
  const auto found = std::ranges::find(loaded_, parameter.name, &NamedTensor::name);
  if (found == loaded_.end() || found->tensor.sizes() != parameter.tensor.sizes())
    throw FormatError(name() + ".load", "the checkpoint's averages", parameter.name,
                      "is missing or has another shape");
  return found->tensor;
}

void AveragedWeights::update(const Model& model, double decay) {
  const c10::NoGradGuard no_grad;
  for (const at::Tensor& scale : decays_) scale.fill_(decay);
  for (const auto& [index, average] : averages_) {
    const auto fits = [&of = average](const at::Tensor& one) { return is_like(one, of); };
    average.mul_(*std::ranges::find_if(decays_, fits))
        .add_(model.parameters()[index].tensor.detach(), 1 - decay);
  }
  ++updates_;
}

Action AveragedWeights::after_fit(FitContext& context) {
  loaded_state_ = false;
  if (!restore_ || context.error || context.interrupted) return Action::proceed;
  if (is_ready() && !restored_) give_to(context.learner.model());
  purge();
  return Action::proceed;
}

void AveragedWeights::give_to(Model& model) {
  const c10::NoGradGuard no_grad;
  for (const auto& [index, average] : averages_)
    model.parameters()[index].tensor.detach().copy_(average);
}

bool AveragedWeights::lend_weights(Model& model) {
  if (!is_ready()) return false;
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> lent, originals;
  for (const auto& [index, average] : averages_) {
    const at::Tensor& weights = model.parameters()[index].tensor;
    originals.push_back(weights.detach());
    lent.push_back(average.to(weights.scalar_type()));  // itself, of equal types
  }
  originals_ = std::move(originals);
  for (size_t i = 0; i < averages_.size(); ++i)
    at::Tensor(model.parameters()[averages_[i].parameter].tensor).set_data(lent[i]);
  return true;
}

void AveragedWeights::return_weights(Model& model) noexcept {
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < originals_.size(); ++i)
    at::Tensor(model.parameters()[averages_[i].parameter].tensor).set_data(originals_[i]);
  originals_.clear();
}

void AveragedWeights::after_restore(Model& model, const std::vector<NamedTensor>& tensors) {
  if (!restore_) return;
  const c10::NoGradGuard no_grad;
  for (const Parameter& parameter : model.parameters()) {
    const auto found = std::ranges::find(tensors, parameter.name, &NamedTensor::name);
    if (found != tensors.end() && found->tensor.sizes() == parameter.tensor.sizes())
      parameter.tensor.detach().copy_(found->tensor);
  }
  restored_ = true;
}

void AveragedWeights::purge() {
  averages_.clear();
  decays_.clear();
  loaded_.clear();
  names_.clear();
}

void AveragedWeights::account(Ledger& ledger) const {
  for (size_t i = 0; i < averages_.size(); ++i)
    ledger.add(Category::other, name() + '/' + names_[i], averages_[i].tensor);
  for (const at::Tensor& decay : decays_) ledger.add(Category::other, name(), decay);
  for (size_t i = 0; i < originals_.size(); ++i)
    ledger.add(Category::parameters, names_[i], originals_[i]);
  for (const auto& [parameter, tensor] : loaded_)
    ledger.add(Category::mapped, name() + '/' + parameter, tensor);
}

std::string AveragedWeights::state() const {
  return nlohmann::json{{"updates", updates_}, {"epochs", epochs_}}.dump();
}

void AveragedWeights::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  for (const char* key : {"updates", "epochs"})
    if (!value.is_object() || !value.contains(key) || !value[key].is_number_integer() ||
        value[key] < 0)
      throw FormatError("callback.load_state", name(), key, "is not a count");
  updates_ = value["updates"].get<int64_t>();
  epochs_ = value["epochs"].get<int64_t>();
  loaded_state_ = true;
}

std::vector<NamedTensor> AveragedWeights::tensors() const {
  if (!is_ready()) return {};  // a resumed fit begins anew
  return averages_.empty() ? loaded_ : averages();
}

std::vector<NamedTensor> AveragedWeights::averages() const {
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < averages_.size(); ++i) all.push_back({names_[i], averages_[i].tensor});
  return all;
}

void AveragedWeights::load_tensors(const std::vector<NamedTensor>& tensors) {
  const bool are_kept =
      !tensors.empty() && tensors.size() == averages_.size() &&
      std::ranges::equal(tensors, averages_, [](const NamedTensor& one, const Average& kept) {
        return one.tensor.is_alias_of(kept.tensor);
      });
  if (are_kept) return;
  purge();
  loaded_ = tensors;
}

Ema::Ema(EmaOptions options) : AveragedWeights(options.restore), options_(options) {
  config::validate(options_, "ema");
}

Action Ema::after_step(FitContext& context) {
  if (context.turn + 1 < context.turns) return Action::proceed;
  if (context.step % options_.every == 0)
    update(context.learner.model(), decay_of(options_, context.step));
  return Action::proceed;
}

Action Ema::after_fit(FitContext& context) {
  const bool ended = !context.error && !context.interrupted && !is_planned_;
  double share = 1;
  for (int64_t update = 1; update <= updates_ && share > 0.5; ++update)
    share *= decay_of(options_, update * options_.every);
  if (ended && share > 0.5)
    log::warning_once("ema: the average has " + config::number_text(std::round(100 * share)) +
                      " % of the weights from before the fit, because the fit is short; choose a "
                      "lower decay, a lower every, or warmup");
  return AveragedWeights::after_fit(context);
}

CallbackPtr Ema::planned() const {
  auto planned = std::make_shared<Ema>(options_);
  planned->is_planned_ = true;
  return planned;
}

Swa::Swa(SwaOptions options) : AveragedWeights(options.restore), options_(options) {
  config::validate(options_, "swa");
}

Action Swa::before_fit(FitContext& context) {
  if (options_.start > 0 && context.epochs >= kMostEpochs)
    throw ConfigError(
        "swa", "start",
        "is a share of epochs that nobody knows, because the clock alone ends the fit", "0",
        config::number_text(options_.start));
  const bool continues = loaded_state_;
  const Action action = AveragedWeights::before_fit(context);
  // A checkpoint of a callback that saved after an epoch, before this one was called, lacks that
  // epoch; its weights are those of the epoch's end.
  if (context.step > 0 && continues) look_at(context.epoch - 1, context);
  if (context.step > 0) epochs_ = std::max(epochs_, context.epoch);
  return action;
}

Action Swa::before_validate(FitContext& context) {
  if (!context.inside_epoch) look_at(context.epoch, context);
  return Action::proceed;
}

Action Swa::after_epoch(FitContext& context) {
  look_at(context.epoch, context);
  return Action::proceed;
}

Action Swa::after_fit(FitContext& context) {
  const bool ended = !context.error && !context.interrupted && !is_planned_;
  if (ended && updates_ == 0 && epochs_ > 0)
    log::warning_once("swa has averaged no weights: start: " + config::number_text(options_.start) +
                      " begins with epoch " + format_count(first_epoch(options_, context) + 1) +
                      ", and the fit ended after " + format_count(epochs_) +
                      (epochs_ == 1 ? " epoch" : " epochs") + "; choose a lower start");
  return AveragedWeights::after_fit(context);
}

void Swa::look_at(int64_t epoch, const FitContext& context) {
  if (epoch < epochs_) return;
  epochs_ = epoch + 1;
  if (epoch < first_epoch(options_, context)) return;
  const auto count = static_cast<double>(updates_);
  update(context.learner.model(), count / (count + 1));
}

CallbackPtr Swa::planned() const {
  auto planned = std::make_shared<Swa>(options_);
  planned->is_planned_ = true;
  return planned;
}

namespace callbacks {
void add_averaged_weights(Registry& all) {
  all.add<EmaOptions>("ema", "averages the weights exponentially, validates and ends with them",
                      [](const EmaOptions& o) { return std::make_shared<Ema>(o); });
  all.add<SwaOptions>("swa", "averages the weights of the last epochs, and ends with them",
                      [](const SwaOptions& o) { return std::make_shared<Swa>(o); });
}
}  // namespace callbacks

}  // namespace tare
