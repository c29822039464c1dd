// Metrics of each column of the targets, beside those of all columns together.
#pragma once

#include <string>
#include <vector>

#include "tare/metric/metric.h"

namespace tare {

/// Returns the metrics and, behind them, each of mae, mse, rmse and r2 for each column alone of
/// targets [batch, columns], such as `mae.price`. `columns`: their names, in their order; empty:
/// there are none.
[[nodiscard]] std::vector<Metric> with_columns(const std::vector<Metric>& metrics,
                                               const std::vector<std::string>& columns);

}  // namespace tare
