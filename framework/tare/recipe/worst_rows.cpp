// Sorts samples by their loss.
#include "tare/recipe/worst_rows.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/argsort.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

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

namespace {

/// Returns the numbers of the samples, if each has one; else undefined.
at::Tensor numbers_of(const at::Tensor& values, int64_t samples) {
  if (!values.defined() || values.numel() != samples) return {};
  return values.flatten().to(at::kDouble);
}

double number_at(const at::Tensor& numbers, int64_t index) {
  return numbers.defined() ? numbers[index].item<double>()
                           : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::vector<report::WorstRow> worst_rows_of(const Predictions& predictions, const Dataset& data,
                                            Tokens tokens) {
  const at::Tensor& losses = predictions.losses;
  if (!losses.defined()) return {};
  const at::Tensor order = at::argsort(losses, /*stable=*/true, 0, /*descending=*/true);
  const at::Tensor predicted = numbers_of(predictions.outputs, losses.numel()),
                   wanted = numbers_of(predictions.targets, losses.numel());
  std::vector<report::WorstRow> worst;
  const auto count = std::min<int64_t>(order.size(0), kWorstSamples);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = order[i].item<int64_t>();
    SampleView view = view_of(data, index, tokens);
    worst.push_back({.name = view.name.empty() ? "sample " + std::to_string(index) : view.name,
                     .target = number_at(wanted, index),
                     .predicted = number_at(predicted, index),
                     .loss = losses[index].item<double>(),
                     .picture = std::move(view.picture),
                     .text = std::move(view.text)});
  }
  return worst;
}

}  // namespace tare
