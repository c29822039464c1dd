// The part of a run's page on its test: what was confused, and the worst samples. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/report/run_files.h"
#include "tare/report/worst_rows.h"

namespace tare::report {

/// Returns as HTML the counts by label and prediction as a table whose cells are shaded, where
/// there are at most 30 labels, else the pairs that are confused most; then the samples of the
/// highest loss.
[[nodiscard]] std::string test_section(const Classification& confusion);

/// Returns as HTML the rows of the highest loss, whose targets are numbers.
[[nodiscard]] std::string worst_rows_section(const std::vector<WorstRow>& rows);

}  // namespace tare::report
