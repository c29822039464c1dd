// Measures the rate of training.
#include "tare/callback/throughput.h"

#include <limits>

#include "tare/base/error.h"
#include "tare/callback/registry.h"
#include "tare/memory/backend.h"

namespace tare {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kTera = 1e12;

}  // namespace

Throughput::Throughput(ThroughputOptions options) : options_(options) {
  config::validate(options_, "throughput");
  if (options_.peak_tflops > 0 && !options_.flops)
    throw ConfigError("throughput", "peak_tflops", "has no effect without the count of operations",
                      "flops: true, or 0", std::to_string(options_.peak_tflops));
}

CallbackFacts Throughput::facts() const {
  CallbackFacts facts{.columns = {"samples_per_s"}};
  if (options_.flops) facts.columns.emplace_back("tflops_per_s");
  if (options_.peak_tflops > 0) facts.columns.emplace_back("mfu");
  return facts;
}

Action Throughput::before_fit(FitContext& context) {
  counted_.reset();
  rates_.reset();
  if (options_.flops) rates_ = peak_rates(memory::backend(context.learner.device()).name());
  return Action::proceed;
}

Action Throughput::before_epoch(FitContext&) {
  seconds_.before_epoch();
  return Action::proceed;
}

Action Throughput::before_batch(FitContext&) {
  if (!options_.flops || counted_) return Action::proceed;
  samples_ = 0;
  counting_ = FlopCount::begin();
  return Action::proceed;
}

Action Throughput::after_backward(FitContext& context) {
  if (counting_) samples_ = context.data.size();
  return Action::proceed;
}

Action Throughput::after_batch(FitContext&) {
  if (counting_ && samples_ > 0) counted_ = counting_->flops();
  counting_.reset();
  return Action::proceed;
}

Action Throughput::before_validate(FitContext& context) {
  seconds_.before_validate(context);
  return Action::proceed;
}

void Throughput::add_flops(EpochRow& row, double samples_per_s) const {
  const double batches_per_s = samples_per_s / static_cast<double>(samples_);
  const double tflops =
      counted_ ? static_cast<double>(counted_->total()) * batches_per_s / kTera : kNone;
  row.metrics.push_back({"tflops_per_s", tflops});
  if (options_.peak_tflops > 0) {
    row.metrics.push_back({"mfu", tflops / options_.peak_tflops});
  } else if (rates_) {
    const auto seconds = counted_ ? rates_->seconds(*counted_) : std::nullopt;
    row.metrics.push_back({"mfu", seconds ? *seconds * batches_per_s : kNone});
  }
}

Action Throughput::after_epoch(FitContext& context) {
  const double rate = seconds_.samples_per_s(context).value_or(kNone);
  context.row.metrics.push_back({"samples_per_s", rate});
  if (options_.flops) add_flops(context.row, rate);
  return Action::proceed;
}

Action Throughput::after_fit(FitContext&) {
  counting_.reset();
  return Action::proceed;
}

namespace callbacks {
void add_throughput(Registry& all) {
  all.add<ThroughputOptions>(
      "throughput", "adds the samples and operations by the second to the table of the epochs",
      [](const ThroughputOptions& o) { return std::make_shared<Throughput>(o); });
}
}  // namespace callbacks

}  // namespace tare
