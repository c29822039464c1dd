// One table of all devices: how busy they are and who holds their memory.
#pragma once

#include <iostream>
#include <string>

#include "tare/base/terminal.h"

namespace tare::memory {

/// Returns a line for each device that has a backend, the host first: name, load, what tensors, the
/// allocator and the whole process hold of its memory, what is available and the total. "-" where a
/// figure cannot be read. The load is that since the previous call on the host, a recent one on
/// cards. Other processes and cards that init() did not open are in `tare top`. Fitted to `width`
/// columns, see text_table().
[[nodiscard]] std::string device_table(size_t width = kAnyWidth);

/// Prints device_table(), within the terminal's width if `out` is std::cout on one.
void print_devices(std::ostream& out = std::cout);

}  // namespace tare::memory
