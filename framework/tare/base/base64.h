// Base64 (RFC 4648, section 4), for bytes in texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tare {

/// Returns letters, digits, '+' and '/', padded with '='.
[[nodiscard]] std::string base64(std::string_view bytes);

/// Whether base64() may have written the text: its letters, its length and its padding.
[[nodiscard]] bool is_base64(std::string_view text);

/// Returns the bytes that base64() has written; unset: it has not written the text.
[[nodiscard]] std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace tare
