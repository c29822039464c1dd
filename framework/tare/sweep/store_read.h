// Reading the store of a sweep. Internal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/sweep/database.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

/// Every trial of a study that a sweep has made, in order of number.
[[nodiscard]] std::vector<Trial> trials_of(const Database& database, int64_t study);

}  // namespace tare::sweep
