// Words the reason for which a checkpoint of a callback was not written. Internal.
#pragma once

#include <exception>
#include <string>

namespace tare {

/// Returns the message of an error, which is not null, as one line of printable text, without a
/// stack. Rethrows what is no exception of C++'s or LibTorch's library.
[[nodiscard]] std::string failure_text(const std::exception_ptr& error);

}  // namespace tare
