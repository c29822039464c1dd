// The characters of UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace tare {

/// Returns the bytes of the character at the beginning of `text`, 1 to 4; 0 where there is none:
/// for an empty text, malformed bytes, an overlong form, a surrogate and a number above U+10FFFF.
[[nodiscard]] size_t utf8_length(std::string_view text);

}  // namespace tare
