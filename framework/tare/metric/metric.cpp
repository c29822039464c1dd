#include "tare/metric/metric.h"

#include <c10/core/GradMode.h>

#include <array>
#include <cmath>
#include <limits>

#include "tare/base/error.h"
#include "tare/metric/check.h"

namespace tare {
namespace {

using at::Tensor;

Tensor count_right(const Tensor& output, const Tensor& target) {
  return output.argmax(1).eq(target).sum(at::kDouble);
}

Tensor count_in_top_5(const Tensor& output, const Tensor& target) {
  const Tensor best = std::get<1>(output.topk(5, /*dim=*/1, /*largest=*/true, /*sorted=*/false));
  return best.eq(target.unsqueeze(1)).sum(at::kDouble);
}

struct Kind {
  const char* name;
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
    {"accuracy", 1, count_right, same},
    {"error_rate", 1, count_right, rest},
    {"mae", 0, absolute, same},
    {"mse", 0, squared, same},
    {"rmse", 0, squared, root},
    {"top_5_accuracy", 5, count_in_top_5, same},
}};

const Kind& find(const std::string& name) {
  std::string all;
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return kind;
    all += (all.empty() ? "" : ", ") + std::string(kind.name);
  }
  const std::string near = nearest(name, metric_names());
  throw ConfigError("metric", "no metric is named '" + printable(name) + "'" +
                                  (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                  " Known: " + all);
}

}  // namespace

MetricState::MetricState(const Metric& metric) {
  if (const auto* function = std::get_if<MetricFunction>(&metric)) {
    if (!*function)
      throw ConfigError("metric", "the metric function is empty; give a name or a function");
    name_ = metric.label.empty() ? "metric" : metric.label;
    batch_sum_ = [f = *function, where = "metric." + name_](const Tensor& o, const Tensor& t,
                                                            int64_t& count) {
      check_batch_size(where, o, t);
      count = o.size(0);
      return f(o, t).to(at::kDouble).mul(count);
    };
    return;
  }
  const Kind& kind = find(std::get<std::string>(metric));
  name_ = kind.name;
  finish_ = kind.finish;
  batch_sum_ = [kind, where = "metric." + name_](const Tensor& o, const Tensor& t, int64_t& count) {
    if (kind.classes > 0) {
      check_classes(where, o, t, kind.classes);
    } else {
      check_same_shape(where, o, t);
    }
    count = t.numel();
    return kind.sum(o, t);
  };
}

void MetricState::reset() {
  sum_.reset();
  count_ = 0;
}

void MetricState::update(const at::Tensor& output, const at::Tensor& target) {
  const c10::NoGradGuard no_grad;
  int64_t count = 0;
  const Tensor batch = batch_sum_(output.detach(), target, count);
  if (batch.numel() != 1)
    throw ShapeError("metric." + name_, "a scalar from the metric function", describe(batch));
  add(batch.reshape({}), count);
}

void MetricState::merge(const MetricState& other) {
  if (other.count_ == 0) return;
  if (sum_.defined()) return add(other.sum_, other.count_);
  sum_ = other.sum_;
  count_ = other.count_;
}

void MetricState::add(const at::Tensor& sum, int64_t count) {
  const c10::NoGradGuard no_grad;
  if (sum_.defined()) {
    sum_.add_(sum);
  } else {
    sum_ = sum.clone();
  }
  count_ += count;
}

double MetricState::value() const {
  if (count_ == 0 || sum_.is_meta()) return std::numeric_limits<double>::quiet_NaN();
  const double mean = sum_.item<double>() / static_cast<double>(count_);
  return finish_ ? finish_(mean) : mean;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  names.reserve(std::size(kKinds));
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

}  // namespace tare
