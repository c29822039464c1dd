// The metrics that have a name, and their sums over batches.
#include "tare/metric/metric.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tare/base/error.h"
#include "tare/metric/check.h"

namespace tare {
namespace {

using at::Tensor;

// Labels of -100 equal no index.
Tensor count_right(const Tensor& output, const Tensor& target) {
  return output.argmax(1).eq(target).sum(at::kDouble);
}

Tensor count_in_top_5(const Tensor& output, const Tensor& target) {
  const Tensor best = std::get<1>(output.topk(5, /*dim=*/1, /*largest=*/true, /*sorted=*/false));
  return best.eq(target.unsqueeze(1)).sum(at::kDouble);
}

struct Kind {
  const char* name;
  const char* summary;
  int64_t classes;  // at least; 0: output and target are values of the same shape
  Tensor (*sum)(const Tensor& output, const Tensor& target);
  double (*finish)(double mean);
};

double same(double mean) { return mean; }
double rest(double mean) { return 1 - mean; }
double root(double mean) { return std::sqrt(mean); }

Tensor absolute(const Tensor& o, const Tensor& t) { return o.to(at::kDouble).sub(t).abs().sum(); }
Tensor squared(const Tensor& o, const Tensor& t) { return o.to(at::kDouble).sub(t).square().sum(); }

// Sorted by name.
constexpr std::array<Kind, 6> kKinds{{
    {"accuracy", "computes the share of samples whose highest score is that of their class", 1,
     count_right, same},
    {"error_rate", "computes 1 less the accuracy", 1, count_right, rest},
    {"mae", "computes the mean absolute error", 0, absolute, same},
    {"mse", "computes the mean squared error", 0, squared, same},
    {"rmse", "computes the root of the mean squared error", 0, squared, root},
    {"top_5_accuracy", "computes the share of samples whose class is among the five highest scores",
     5, count_in_top_5, same},
}};

}  // namespace

void from_node(const config::Node& node, Metric& value) {
  auto read = config::read<config::Choice>(node);
  const auto& all = metrics::registry();
  if (all.contains(read.name)) read = all.complete(read);
  value = Metric(std::move(read));
}

config::Node to_node(const Metric& value) {
  const auto* name = std::get_if<std::string>(&value);
  return name ? config::to_short_node({.name = *name, .options = value.options}) : config::Node();
}

namespace metrics {

Registry& registry() {
  static Registry all("metric", [](Registry& entries) {
    for (const Kind& kind : kKinds)
      entries.add(kind.name, kind.summary,
                  [name = std::string(kind.name)] { return Metric(name); });
  });
  return all;
}

}  // namespace metrics

MetricState::MetricState(const Metric& metric) {
  const auto* name = std::get_if<std::string>(&metric);
  if (name != nullptr) {
    use_name({.name = *name, .options = metric.options});
  } else {
    use_function(metric);
  }
}

void MetricState::use_name(const config::Choice& choice) {
  if (!metrics::registry().contains(choice.name))
    throw config::unknown_entry("metric", "metric", choice.name, metric_names(), "metrics");
  const Metric named = metrics::registry().make(choice);
  if (const auto* own = std::get_if<std::string>(&named)) return use_kind(*own);
  use_function(named);
  name_ = choice.name;
}

void MetricState::use_function(const Metric& metric) {
  const auto& function = std::get<MetricFunction>(metric);
  if (!function)
    throw ConfigError("metric", "the metric function is empty; give a name or a function");
  name_ = metric.label.empty() ? "metric" : metric.label;
  is_function_ = true;
  check_ = [where = "metric." + name_](const Tensor& o, const Tensor& t) {
    check_batch_size(where, o, t);
  };
  batch_sums_ = [f = function, counted = metric.counted, where = "metric." + name_](
                    const Tensor& o, const Tensor& t) -> Sums {
    const double count = counted ? counted(t) : static_cast<double>(o.size(0));
    const Tensor mean = count > 0 ? f(o, t) : at::zeros({}, o.options());  // else it may be NaN
    if (mean.numel() != 1)
      throw ShapeError(where, "a scalar from the metric function", describe(mean));
    return {.sum = mean.to(at::kDouble).mul(count), .counted = {}, .count = count};
  };
}

void MetricState::use_kind(const std::string& name) {
  const Kind& kind = *std::find_if(kKinds.begin(), kKinds.end(),
                                   [&](const Kind& each) { return name == each.name; });
  name_ = kind.name;
  finish_ = kind.finish;
  check_ = [kind, where = "metric." + name_](const Tensor& o, const Tensor& t) {
    kind.classes > 0 ? check_classes(where, o, t, kind.classes) : check_same_shape(where, o, t);
  };
  batch_sums_ = [kind](const Tensor& o, const Tensor& t) -> Sums {
    if (kind.classes > 0)
      return {.sum = kind.sum(o, t), .counted = t.ne(kIgnoredLabel).sum(at::kDouble)};
    return {.sum = kind.sum(o, t), .counted = {}, .count = static_cast<double>(t.numel())};
  };
}

void MetricState::reset() { sums_ = {}; }

void MetricState::check(const at::Tensor& output, const at::Tensor& target,
                        bool try_function) const {
  check_(output, target);
  if (!is_function_ || !try_function) return;
  const c10::NoGradGuard no_grad;
  (void)sums_of(output, target);
}

MetricState::Sums MetricState::sums_of(const at::Tensor& output, const at::Tensor& target) const {
  Sums batch = batch_sums_(output.detach(), target);
  batch.sum = batch.sum.reshape({});
  return batch;
}

void MetricState::update(const at::Tensor& output, const at::Tensor& target) {
  const c10::NoGradGuard no_grad;
  check_(output, target);
  Sums batch = sums_of(output, target);
  if (!sums_.sum.defined()) batch.sum = batch.sum.clone();
  add(batch);
}

void MetricState::merge(const MetricState& other) {
  if (other.sums_.sum.defined()) add(other.sums_);
}

void MetricState::add(const Sums& other) {
  const c10::NoGradGuard no_grad;
  if (!sums_.sum.defined()) {
    sums_ = other;
    return;
  }
  sums_.sum.add_(other.sum);
  if (other.counted.defined()) sums_.counted.add_(other.counted);
  sums_.count += other.count;
}

double MetricState::count() const {
  if (!sums_.counted.defined() || sums_.counted.is_meta()) return sums_.count;
  return sums_.counted.item<double>();
}

double MetricState::value() const {
  if (!sums_.sum.defined() || sums_.sum.is_meta()) return std::numeric_limits<double>::quiet_NaN();
  const double counted = count();
  if (counted == 0) return std::numeric_limits<double>::quiet_NaN();
  const double mean = sums_.sum.item<double>() / counted;
  return finish_ ? finish_(mean) : mean;
}

std::vector<std::string> metric_names() { return metrics::registry().names(); }

}  // namespace tare
