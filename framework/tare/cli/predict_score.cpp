// Gives predictions to metrics, some at a time.
#include "tare/cli/predict_score.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/inference/one_score.h"
#include "tare/metric/column_metrics.h"

namespace tare::cli {
namespace {

constexpr size_t kAtOnce = 1024;  // samples that are kept until they are counted
constexpr double kThreshold = 0.5;

std::vector<Metric> metrics_for(const BundleManifest& manifest) {
  if (!gives_classes(manifest)) {
    std::vector<std::string> targets = target_names(manifest);
    if (targets.size() < 2) targets.clear();
    return with_columns({"mae", "rmse", "r2"}, targets);
  }
  config::Node options = config::Node::map();
  // The F1 of one score is that of class 1, as in training.
  if (has_several_labels(manifest) || has_one_score(manifest))
    options.set("threshold", config::to_node(kThreshold));
  return {config::Choice{.name = "accuracy", .options = options},
          config::Choice{.name = "f1", .options = options}};
}

}  // namespace

Score::Score(const BundleManifest& manifest) : manifest_(manifest) {
  for (const Metric& metric : metrics_for(manifest)) metrics_.emplace_back(metric);
}

void Score::add(const Outputs& predictions, const Truth& truth) {
  if (truth.index == kIgnoredLabel) return;  // as losses and metrics ignore it
  const auto refuse = [] {
    throw ConfigError("predict",
                      "--score is for one output [samples, classes] or [samples, numbers], and the "
                      "model has others: omit it");
  };
  if (predictions.size() != 1) refuse();
  at::Tensor output = predictions.front().to(at::kFloat);
  at::Tensor target;
  if (truth.index >= 0) {
    if (output.dim() != 2) refuse();
    target = at::scalar_tensor(truth.index, at::kLong).view({1});
    if (has_one_score(manifest_)) {
      output = output.sub(kThreshold);  // the metrics take logits, whose sign decides
      target = target.to(at::kFloat).view({1, 1});
    }
  } else {
    output = output.flatten(1);
    target = at::tensor(truth.numbers, at::kFloat).view({1, -1});
    if (output.sizes() != target.sizes()) refuse();
    // The threshold is of probabilities, and the metrics take logits, whose sign decides.
    if (has_several_labels(manifest_)) output = output.sub(kThreshold);
  }
  outputs_.push_back(std::move(output));
  targets_.push_back(std::move(target));
  ++samples_;
  if (outputs_.size() == kAtOnce) compute();
}

void Score::compute() {
  if (outputs_.empty()) return;
  const at::Tensor outputs = at::cat(outputs_), targets = at::cat(targets_);
  outputs_.clear();
  targets_.clear();
  for (MetricState& metric : metrics_) metric.update(outputs, targets);
}

std::string Score::str() {
  compute();
  std::ostringstream text;
  text << format_count(samples_) << (samples_ == 1 ? " sample" : " samples");
  const char* separator = ": ";
  for (const MetricState& metric : metrics_) {
    if (samples_ == 0) break;
    text << std::exchange(separator, ", ") << metric.name() << ' ' << metric.value();
  }
  return text.str();
}

std::string Score::json(int64_t failed) {
  compute();
  nlohmann::ordered_json figures = nlohmann::ordered_json::object();
  for (const MetricState& metric : metrics_) {
    const double value = samples_ > 0 ? metric.value() : std::nan("");
    figures[metric.name()] =
        std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  }
  return nlohmann::ordered_json{{"samples", samples_}, {"failed", failed}, {"metrics", figures}}
      .dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tare::cli
