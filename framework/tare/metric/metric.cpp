// Metrics in recipes, and their states over batches.
#include "tare/metric/metric.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/metric/check.h"
#include "tare/metric/mean_metric.h"
#include "tare/metric/stored_text.h"

namespace tare {
namespace {

using at::Tensor;

/// A function whose value is the mean over what it counts.
class FunctionMetric final : public MeanMetric {
 public:
  FunctionMetric(const Metric& metric, std::string where)
      : function_(std::get<MetricFunction>(metric)),
        counts_(metric.counted),
        where_(std::move(where)) {}

  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    check_batch_size(where, output, target);
  }
  [[nodiscard]] bool checks_all() const override { return false; }

 protected:
  [[nodiscard]] Part part(const Tensor& output, const Tensor& target) const override {
    const double count = counts_ ? counts_(target) : static_cast<double>(output.size(0));
    const Tensor mean = count > 0 ? function_(output, target)  // else it may be NaN
                                  : at::zeros({}, output.options());
    if (mean.numel() != 1)
      throw ShapeError(where_, "a scalar from the metric function", describe(mean));
    return {.sum = mean.to(at::kDouble).mul(count).reshape({}), .count = count};
  }

 private:
  MetricFunction function_;
  CountFunction counts_;
  std::string where_;
};

/// Returns the choice without options that have their defaults.
config::Choice shortened(const config::Choice& choice) {
  const auto& all = metrics::registry();
  if (!all.contains(choice.name)) return choice;
  const config::Choice complete = all.complete(choice);
  return complete == all.complete({.name = choice.name}) ? config::Choice{.name = choice.name}
                                                         : complete;
}

/// Names what files of runs and sweeps have beside the metrics.
constexpr std::array<std::string_view, 12> kOtherFigures{
    "end_time",   "epoch", "loss",       "lr",         "peak_bytes", "seconds",
    "start_time", "step",  "total_time", "train_loss", "val_loss",   "valid_loss"};
constexpr size_t kMostLetters = 64;

/// Throws unless a metric may have this name of its column, which `as` can be.
void check_column(const std::string& column, const std::string& name) {
  if (column == name) return;
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  };
  const std::string where = "metric." + printable(name);
  if (column.size() > kMostLetters || !std::ranges::all_of(column, is_plain))
    throw ConfigError(where, "as", "is no name of a column",
                      "at most " + std::to_string(kMostLetters) + " letters, digits, _ and -",
                      printable(column));
  if (metrics::registry().contains(column) ||
      std::ranges::find(kOtherFigures, column) != kOtherFigures.end())
    throw ConfigError(where, "as", "is the name of another figure",
                      "another one, such as " + name + "_2", column);
}

}  // namespace

void from_node(const config::Node& node, Metric& value) {
  value = Metric(shortened(config::read<config::Choice>(node)));
}

config::Node to_node(const Metric& value) {
  const auto* name = std::get_if<std::string>(&value);
  if (!name) return {};
  return config::to_short_node(shortened({.name = *name, .options = value.options}));
}

std::string column_of(const Metric& metric) {
  const auto* name = std::get_if<std::string>(&metric);
  if (!name) return metric.label.empty() ? "metric" : metric.label;
  const config::Node* as = metric.options.find("as");
  return as == nullptr || as->text.empty() ? *name : as->text;
}

namespace metrics {

std::string text_of(const Metric& metric) {
  const auto* name = std::get_if<std::string>(&metric);
  if (!name) return "";
  return stored_text(registry(), {.name = *name, .options = metric.options});
}

Metric from_text(const std::string& text) {
  if (!text.starts_with('{')) return text;
  return config::read<Metric>(config::parse_text(text, "a metric of a bundle"));
}

}  // namespace metrics

MetricState::MetricState(const Metric& metric) : name_(column_of(metric)) {
  if (const auto* name = std::get_if<std::string>(&metric))
    use_name({.name = *name, .options = metric.options});
  else
    use(metric);
}

void MetricState::use_name(const config::Choice& choice) {
  const auto& all = metrics::registry();
  if (!all.contains(choice.name))
    throw config::unknown_entry("metric", "metric", choice.name, metric_names(), "metrics");
  const Metric named = all.make(choice);
  check_column(name_, choice.name);
  const auto* other = std::get_if<std::string>(&named);
  if (!other) return use(named);
  if (*other == choice.name)
    throw ConfigError("metric", "the entry '" + printable(choice.name) +
                                    "' returns its own name; return a function or an object");
  const std::string column = name_;
  *this = MetricState(named);  // another name for an entry
  name_ = column;
}

void MetricState::use(const Metric& metric) {
  where_ = "metric." + name_;
  is_function_ = !metric.stateful;
  if (is_function_ && !std::get<MetricFunction>(metric))
    throw ConfigError("metric", "the metric function is empty; give a name or a function");
  start_ = is_function_ ? MetricObject(FunctionMetric(metric, where_)) : metric.stateful;
  now_ = start_;
}

std::optional<bool> MetricState::lower_is_better() const {
  if (is_function_) return std::nullopt;
  return now_->lower_is_better();
}

void MetricState::reset() {
  now_ = start_;
  updated_ = false;
}

void MetricState::check(const at::Tensor& output, const at::Tensor& target, bool try_update) const {
  now_->check(where_, output, target);
  if (!try_update || now_->checks_all()) return;
  const c10::NoGradGuard no_grad;
  MetricObject tried = start_;
  tried->expect(output.size(0));
  tried->update(output.detach(), target);
}

void MetricState::update(const at::Tensor& output, const at::Tensor& target) {
  const c10::NoGradGuard no_grad;
  now_->check(where_, output, target);
  now_->update(output.detach(), target);
  updated_ = true;
}

void MetricState::merge(const MetricState& other) {
  if (!other.updated_) return;
  const c10::NoGradGuard no_grad;
  now_->merge(*other.now_);
  updated_ = true;
}

namespace {

double number_of(const std::variant<double*, int64_t*>& count) {
  return std::visit([](const auto* value) { return static_cast<double>(*value); }, count);
}

void set_number(const std::variant<double*, int64_t*>& count, double number) {
  std::visit(
      [&](auto* value) { *value = static_cast<std::remove_pointer_t<decltype(value)>>(number); },
      count);
}

}  // namespace

std::vector<at::Tensor> MetricState::state() const {
  MetricObject now = now_;  // state() and counts() are not const
  const auto counts = now->counts();
  at::Tensor numbers = at::zeros({std::ssize(counts) + 1}, at::TensorOptions(at::kDouble));
  if (!numbers.is_meta()) {  // as it is in a plan
    auto* number = numbers.mutable_data_ptr<double>();
    *number = updated_ ? 1 : 0;
    for (const auto& count : counts) *++number = number_of(count);
  }
  std::vector<at::Tensor> all{numbers};
  for (const at::Tensor* tensor : now->tensors())
    all.push_back(tensor->defined() && !tensor->is_meta() ? tensor->cpu() : *tensor);
  if (numbers.is_meta()) return all;
  const bool is_own = dynamic_cast<const NamedMetric*>(&*now_) != nullptr;  // it has all
  if (is_own || is_function_ || !updated_) return all;
  const double here = value(), there = with_state(all).value();
  if (here == there || (std::isnan(here) && std::isnan(there))) return all;
  throw ConfigError(where_, "the value of the metric is " + std::to_string(here) + ", and " +
                                std::to_string(there) +
                                " with its state() and counts() alone: return in counts() the "
                                "numbers that update() changes");
}

MetricState MetricState::with_state(const std::vector<at::Tensor>& state) const {
  MetricState other = *this;
  other.now_ = start_;
  const auto tensors = other.now_->state();
  for (size_t i = 0; i < tensors.size(); ++i) *tensors[i] = state.at(i + 1);
  other.updated_ = updated_;
  const auto counts = other.now_->counts();
  if (state.front().is_meta()) {  // in a plan each rank has what this one has
    MetricObject now = now_;      // counts() is not const
    const auto own = now->counts();
    for (size_t i = 0; i < counts.size(); ++i) set_number(counts[i], number_of(own[i]));
    return other;
  }
  const double* number = state.front().const_data_ptr<double>();
  other.updated_ = *number != 0;
  for (const auto& count : counts) set_number(count, *++number);
  return other;
}

double MetricState::value() const {
  const auto is_meta = [](const at::Tensor* tensor) {
    return tensor->defined() && tensor->is_meta();
  };
  if (!updated_ || std::ranges::any_of(now_->tensors(), is_meta))
    return std::numeric_limits<double>::quiet_NaN();
  const c10::NoGradGuard no_grad;
  return now_->value();
}

void MetricState::account(Ledger& all) const {
  for (const at::Tensor* tensor : now_->tensors()) all.add(Category::other, name_, *tensor);
}

std::vector<std::string> metric_names() { return metrics::registry().names(); }

}  // namespace tare
