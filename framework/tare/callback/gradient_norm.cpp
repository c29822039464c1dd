// Adds up the norms of gradients on the device.
#include "tare/callback/gradient_norm.h"

#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/callback/registry.h"

namespace tare {

Action GradientNorm::before_fit(FitContext& context) {
  if (context.step == 0) norms_ = {};
  const auto options = at::TensorOptions(c10::kDouble).device(context.learner.device());
  sum_ = at::zeros({}, options);
  largest_ = at::zeros({}, options);
  if (norms_.count == 0) return Action::proceed;
  sum_.fill_(norms_.sum);
  largest_.fill_(norms_.largest);
  return Action::proceed;
}

Action GradientNorm::after_backward(FitContext& context) {
  const c10::NoGradGuard no_grad;
  const at::Tensor norm = grad_norm(context.learner.optimizer().groups());
  if (!norm.defined())
    throw ConfigError("gradient_norm",
                      "needs the gradients of a whole step, which step_in_backward frees in the "
                      "backward; omit one of the two");
  norm_ = norm.to(c10::kDouble);
  if (norm_.device() != sum_.device()) norm_ = norm_.to(sum_.device());  // of a later stage
  next_largest_ = at::maximum(largest_, norm_);
  return Action::proceed;
}

Action GradientNorm::before_epoch(FitContext& context) {
  if (norms_.epoch == context.epoch) return Action::proceed;  // of which a part was trained
  norms_ = {.epoch = context.epoch};
  sum_.zero_();
  largest_.zero_();
  return Action::proceed;
}

Action GradientNorm::after_step(FitContext&) {
  const c10::NoGradGuard no_grad;
  sum_.add_(norm_);
  largest_ = std::exchange(next_largest_, {});
  norm_.reset();
  ++norms_.count;
  return Action::proceed;
}

GradientNorm::Norms GradientNorm::read() const {
  if (!reads_ || !sum_.defined()) return norms_;
  return {norms_.epoch, norms_.count, sum_.item<double>(), largest_.item<double>()};
}

Action GradientNorm::after_epoch(FitContext& context) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (!reads_) return Action::proceed;
  const Norms norms = read();
  const bool some = norms.count > 0;
  context.row.metrics.push_back(
      {"grad_norm_mean", some ? norms.sum / static_cast<double>(norms.count) : kNone});
  context.row.metrics.push_back({"grad_norm_max", some ? norms.largest : kNone});
  return Action::proceed;
}

Action GradientNorm::after_fit(FitContext&) {
  if (reads_) norms_ = read();
  purge();
  return Action::proceed;
}

void GradientNorm::purge() {
  sum_.reset();
  largest_.reset();
  norm_.reset();
  next_largest_.reset();
}

CallbackPtr GradientNorm::planned() const {
  auto planned = std::make_shared<GradientNorm>();
  planned->reads_ = false;
  return planned;
}

void GradientNorm::account(Ledger& ledger) const {
  for (const at::Tensor& tensor : {sum_, largest_, norm_, next_largest_})
    ledger.add(Category::other, "gradient_norm", tensor);
}

std::string GradientNorm::state() const {
  const Norms norms = read();
  return nlohmann::json{{"epoch", norms.epoch},
                        {"count", norms.count},
                        {"sum", norms.sum},
                        {"largest", norms.largest}}
      .dump();  // a norm that is not finite becomes null
}

void GradientNorm::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto at = [&](const char* key, bool is_count) {
    const bool there = value.is_object() && value.contains(key);
    if (!there || (is_count ? !value[key].is_number_integer()
                            : !value[key].is_number() && !value[key].is_null()))
      throw FormatError("callback.load_state", name(), key, "is not a number");
    return value[key];
  };
  const auto norm = [&](const char* key) {
    const auto found = at(key, false);
    return found.is_null() ? std::numeric_limits<double>::quiet_NaN() : found.get<double>();
  };
  const Norms norms{at("epoch", true).get<int64_t>(), at("count", true).get<int64_t>(), norm("sum"),
                    norm("largest")};
  purge();
  norms_ = norms;
}

namespace callbacks {
void add_gradient_norm(Registry& all) {
  all.add("gradient_norm", "adds mean and largest norm of the gradients to the table of the epochs",
          [] { return std::make_shared<GradientNorm>(); });
}
}  // namespace callbacks

}  // namespace tare
