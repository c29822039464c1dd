// Computes a metric of values over one column of outputs and targets.
#include "tare/metric/column_metrics.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tare/base/error.h"
#include "tare/metric/check.h"
#include "tare/metric/named.h"

namespace tare {
namespace {

using at::Tensor;

constexpr std::array<std::string_view, 4> kByColumn{"mae", "mse", "rmse", "r2"};

/// Gives one column of outputs and targets to another metric.
class ColumnMetric final : public NamedMetric {
 public:
  ColumnMetric(MetricObject of, int64_t column, int64_t columns)
      : of_(std::move(of)), column_(column), columns_(columns) {}

  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    of_->check(where, output, target);
    if (target.dim() != 2 || target.size(1) != columns_)
      throw ShapeError(where, "targets [batch, " + std::to_string(columns_) + "]",
                       describe(target));
  }
  void update(const Tensor& output, const Tensor& target) override {
    of_->update(output.select(1, column_), target.select(1, column_));
  }
  void merge(const StatefulMetric& other) override {
    of_->merge(*static_cast<const ColumnMetric&>(other).of_);
  }
  [[nodiscard]] double value() const override { return of_->value(); }
  [[nodiscard]] std::vector<Tensor*> state() override { return of_->state(); }
  [[nodiscard]] std::vector<std::variant<double*, int64_t*>> counts() override {
    return of_->counts();
  }
  [[nodiscard]] bool lower_is_better() const override { return of_->lower_is_better(); }

 private:
  MetricObject of_;
  int64_t column_, columns_;
};

}  // namespace

std::vector<Metric> with_columns(const std::vector<Metric>& metrics,
                                 const std::vector<std::string>& columns) {
  std::vector<Metric> all = metrics;
  const auto count = static_cast<int64_t>(columns.size());
  for (const Metric& metric : metrics) {
    const auto* name = std::get_if<std::string>(&metric);
    if (!name || std::ranges::find(kByColumn, *name) == kByColumn.end()) continue;
    const MetricObject of = metrics::registry().make(*name).stateful;
    for (int64_t i = 0; i < count; ++i)
      all.emplace_back(*name + "." + printable(columns[static_cast<size_t>(i)]),
                       ColumnMetric(of, i, count));
  }
  return all;
}

}  // namespace tare
