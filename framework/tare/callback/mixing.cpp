// Mixes batches.
#include "tare/callback/mixing.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>
#include <string>
#include <utility>

#include "tare/base/error.h"
#include "tare/callback/registry.h"
#include "tare/transform/random.h"

namespace tare {
namespace {

/// Returns the samples in an order in which each stands where the next one was.
at::Tensor samples_before(const at::Tensor& all) {
  const int64_t last = all.size(0) - 1;
  at::Tensor result = at::empty_like(all);
  if (last > 0) result.narrow(0, 1, last).copy_(all.narrow(0, 0, last));
  result.narrow(0, 0, 1).copy_(all.narrow(0, last, 1));
  return result;
}

/// Adds up the samples and those before them, by their shares.
at::Tensor blend(const at::Tensor& all, double share) {
  return samples_before(all).mul_(1 - share).add_(all, share);
}

/// Draws the logarithm of a number of the gamma distribution of shape `alpha`: Marsaglia and Tsang
/// 2000, A simple method for generating gamma variables, section 6 for alpha < 1. The logarithm
/// does not become infinite where the number would be rounded to 0.
double log_gamma_variate(RandomBits& bits, double alpha) {
  const auto uniform = [&] { return 1 - static_cast<double>(bits.uniform()); };  // in (0, 1]
  const auto normal = [&] {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  };
  const double boost = alpha < 1 ? std::log(uniform()) / alpha : 0;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(uniform()) < x * x / 2 + d - d * v + d * std::log(v))
      return std::log(d * v) + boost;
  }
}

/// Draws a seed from LibTorch's default generator of the host.
uint64_t draw_seed() {
  auto* const generator = at::get_generator_or_default<at::CPUGeneratorImpl>(
      std::nullopt, at::detail::getDefaultCPUGenerator());
  const std::lock_guard lock(generator->mutex_);
  return generator->random64();
}

}  // namespace

BatchMixing::BatchMixing(const char* name, const MixingOptions& options, int64_t classes)
    : name_(name), options_(options), classes_(classes) {
  config::validate(options_, name_);
}

CallbackPtr BatchMixing::as_planned(std::shared_ptr<BatchMixing> planned) const {
  planned->is_planned_ = true;
  planned->classes_ = classes_;
  return planned;
}

Action BatchMixing::before_fit(FitContext& context) {
  checked_ = false;
  if (classes_ == 0) {
    const DatasetPtr data = context.learner.training_data();
    if (data) classes_ = static_cast<int64_t>(data->labels().size());
  }
  if (classes_ >= 2) return Action::proceed;
  throw ConfigError(name_, "needs the number of classes, at least 2, and the training data name " +
                               std::to_string(classes_) +
                               "; give data with the names of its classes, or the number to the "
                               "callback's constructor");
}

Action BatchMixing::before_batch(FitContext& context) {
  const c10::NoGradGuard no_grad;
  check_data(context.data);
  const at::Tensor input = context.data.input(), target = context.data.target();
  if (!is_planned_) check_labels(target);
  const Mix mix = is_planned_ ? Mix{.share = 0.5} : draw(draw_seed(), input);
  context.data.set_input(mixed(input, mix));
  context.data.set_target(blend(probabilities(target), mix.share));
  return Action::proceed;
}

void BatchMixing::check_data(const Batch& batch) const {
  const auto refuse = [&](const std::string& problem) { throw ConfigError(name_, problem); };
  if (batch.inputs.size() != 1 || batch.targets.size() != 1)
    refuse("mixes one input and one target, and the data have " +
           std::to_string(batch.inputs.size()) + " and " + std::to_string(batch.targets.size()) +
           "; remove the callback");
  const at::Tensor &input = batch.input(), &target = batch.target();
  if (!input.is_floating_point())
    refuse("mixes inputs that are floating, and these are " + input.toString() +
           "; give the data transforms, which make floats of pictures, or remove the callback");
  if (needs_pictures() && input.dim() != 4)
    refuse("mixes pictures [batch, channels, height, width], and the input is " +
           c10::str(input.sizes()) + "; take mixup");
  const bool labels = target.dim() == 1 && target.scalar_type() == c10::kLong;
  const bool shares = target.dim() == 2 && target.is_floating_point();
  if (!labels && !shares)
    refuse("mixes targets that are one class label for each sample, int64 [batch], and these are " +
           target.toString() + " " + c10::str(target.sizes()) + "; remove the callback");
}

void BatchMixing::check_labels(const at::Tensor& target) {
  if (target.scalar_type() != c10::kLong || (checked_ && !target.device().is_cpu())) return;
  checked_ = true;
  const at::Tensor labels = target.cpu().contiguous();
  const int64_t* first = labels.const_data_ptr<int64_t>();
  for (const int64_t* label = first; label != first + labels.numel(); ++label)
    if (*label < 0 || *label >= classes_)
      throw ConfigError(name_, "mixes class labels from 0 to " + std::to_string(classes_ - 1) +
                                   ", and the data have " + std::to_string(*label) +
                                   "; give every sample a class, or remove the callback");
}

at::Tensor BatchMixing::probabilities(const at::Tensor& target) const {
  if (target.is_floating_point()) return target;  // mixed already
  const at::Tensor classes = at::arange(classes_, target.options());
  return target.unsqueeze(1).eq(classes).to(c10::kFloat);
}

double BatchMixing::draw_share(uint64_t seed) const {
  RandomBits bits(seed);
  if (bits.uniform() >= options_.probability) return 1;
  const double own = log_gamma_variate(bits, options_.alpha);
  const double other = log_gamma_variate(bits, options_.alpha);
  return 1 / (1 + std::exp(other - own));
}

Mix Mixup::draw(uint64_t seed, const at::Tensor&) const { return {.share = draw_share(seed)}; }

at::Tensor Mixup::mixed(const at::Tensor& input, const Mix& mix) const {
  return blend(input, mix.share);
}

Mix Cutmix::draw(uint64_t seed, const at::Tensor& input) const {
  const double share = draw_share(seed);
  if (share == 1) return {};
  RandomBits bits(derive_seed(seed, 1));
  const int64_t height = input.size(2), width = input.size(3);
  const auto x = static_cast<int64_t>(bits.below(static_cast<uint64_t>(width)));
  const auto y = static_cast<int64_t>(bits.below(static_cast<uint64_t>(height)));
  const double side = 0.5 * std::sqrt(1 - share);
  const auto half_width = static_cast<int64_t>(side * static_cast<double>(width));
  const auto half_height = static_cast<int64_t>(side * static_cast<double>(height));
  Mix mix{.top = std::max<int64_t>(y - half_height, 0),
          .left = std::max<int64_t>(x - half_width, 0),
          .bottom = std::min(y + half_height, height),
          .right = std::min(x + half_width, width)};
  const auto area = static_cast<double>((mix.bottom - mix.top) * (mix.right - mix.left));
  mix.share = 1 - area / static_cast<double>(height * width);
  return mix;
}

at::Tensor Cutmix::mixed(const at::Tensor& input, const Mix& mix) const {
  at::Tensor result = at::empty_like(input).copy_(input);
  const int64_t last = input.size(0) - 1;
  const auto box = [&](const at::Tensor& all, int64_t start, int64_t length) {
    return all.narrow(0, start, length)
        .narrow(2, mix.top, mix.bottom - mix.top)
        .narrow(3, mix.left, mix.right - mix.left);
  };
  if (last > 0) box(result, 1, last).copy_(box(input, 0, last));
  box(result, 0, 1).copy_(box(input, last, 1));
  return result;
}

namespace callbacks {
namespace {

/// Has the options of mixup with a default of their own.
struct MixupOptions : MixingOptions {
  MixupOptions() : MixingOptions{.alpha = 0.2} {}
};

}  // namespace

void add_mixing(Registry& all) {
  all.add<MixupOptions>("mixup", "adds up samples of a training batch, and their labels",
                        [](const MixupOptions& o) { return std::make_shared<Mixup>(o); });
  all.add<MixingOptions>("cutmix", "puts boxes of pictures of a training batch into each other",
                         [](const MixingOptions& o) { return std::make_shared<Cutmix>(o); });
}

}  // namespace callbacks
}  // namespace tare
