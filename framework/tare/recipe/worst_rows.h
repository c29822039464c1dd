// The samples that a model of no classes predicts worst. Internal.
#pragma once

#include <vector>

#include "tare/data/dataset.h"
#include "tare/recipe/sample_view.h"
#include "tare/report/worst_rows.h"

namespace tare {

struct Predictions;

/// Whether the samples have names and one number as their only target, which a prediction is
/// compared with.
[[nodiscard]] bool has_numbers_of_rows(const Dataset& data);

/// Returns at most kWorstSamples samples of `data`, from the highest loss to the lowest; none where
/// there are no losses. A target and a prediction that are not one number are NaN. `predictions`:
/// of all of `data`, without outputs where only the losses are known.
[[nodiscard]] std::vector<report::WorstRow> worst_rows_of(const Predictions& predictions,
                                                          const Dataset& data, Tokens tokens);

}  // namespace tare
