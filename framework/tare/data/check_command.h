// The command that lists everything that is wrong with the file of a data set. Internal.
#pragma once

#include <cstdint>
#include <string>

namespace tare {

struct DataOptions;

/// Returns "; 2 more problems: `tare data check bad.csv name=csv target=price` lists them" with the
/// options of the data set, as a shell takes them. Options too long for a message are those of a
/// recipe: "`tare data check RECIPE`". `more`: problems beyond the first; below 1: the result
/// is empty.
[[nodiscard]] std::string more_problems(int64_t more, const DataOptions& options);

}  // namespace tare
