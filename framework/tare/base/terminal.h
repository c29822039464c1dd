// The terminal that a program prints to.
#pragma once

#include <cstddef>

namespace tare {

/// Columns of the terminal behind standard output; 80 where it is none or does not say.
[[nodiscard]] size_t terminal_width();

}  // namespace tare
