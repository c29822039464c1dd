// Sorts the rows of a table by their loss.
#include "tare/recipe/worst_rows.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/argsort.h>

#include <algorithm>

#include "tare/data/row_source.h"
#include "tare/recipe/classification.h"
#include "tare/train/options.h"
#include "tare/transform/row_coding.h"

namespace tare {

bool has_numbers_of_rows(const Dataset& data) {
  if (const RowCoding* rows = row_coding_of(data)) {
    return rows->target_deviation > 0 || rows->target_means.size() == 1;
  }
  if (!data.labels().empty() || data.sample_shape().size() != 3 || data.sample_name(0).empty())
    return false;
  const Batch sample = data.first_sample();
  return sample.targets.size() == 1 && sample.target().is_floating_point() &&
         sample.target().numel() == 1;
}

std::vector<report::WorstRow> worst_rows_of(const Predictions& predictions, const Dataset& data) {
  const at::Tensor &outputs = predictions.outputs, &targets = predictions.targets,
                   &losses = predictions.losses;
  if (!losses.defined() || !outputs.defined() || !targets.defined() ||
      outputs.numel() != losses.numel() || targets.numel() != losses.numel())
    return {};
  const at::Tensor order = at::argsort(losses, /*stable=*/true, 0, /*descending=*/true);
  const at::Tensor predicted = outputs.flatten(), wanted = targets.flatten();
  std::vector<report::WorstRow> worst;
  const auto count = std::min<int64_t>(order.size(0), kWorstSamples);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = order[i].item<int64_t>();
    worst.push_back({.name = data.sample_name(index),
                     .target = wanted[index].item<double>(),
                     .predicted = predicted[index].item<double>(),
                     .loss = losses[index].item<double>()});
  }
  return worst;
}

}  // namespace tare
