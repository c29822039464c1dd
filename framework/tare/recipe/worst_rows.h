// The rows of a table, or the pictures of a list, whose number a model predicts worst. Internal.
#pragma once

#include <vector>

#include "tare/data/dataset.h"
#include "tare/report/worst_rows.h"

namespace tare {

struct Predictions;

/// Whether the samples are rows of a table, or named pictures, whose only target is one number.
[[nodiscard]] bool has_numbers_of_rows(const Dataset& data);

/// Returns at most kWorstSamples rows of `data`, from the highest loss to the lowest; none where
/// there are no losses, or several targets. `predictions`: of all of `data`.
[[nodiscard]] std::vector<report::WorstRow> worst_rows_of(const Predictions& predictions,
                                                          const Dataset& data);

}  // namespace tare
