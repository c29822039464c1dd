// Texts as tokens and back, for language models.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Returns the tokens of a text: each character (UTF-8) is the token whose label it is; without
/// labels each byte is a token. Throws ConfigError, naming `where`, for a character that is not a
/// label.
[[nodiscard]] std::vector<int64_t> tokens_of(std::string_view text,
                                             const std::vector<std::string>& labels,
                                             const std::string& where);
/// Returns the text of tokens. A token without a label is its byte, or "?" above 255.
[[nodiscard]] std::string text_of(const std::vector<int64_t>& tokens,
                                  const std::vector<std::string>& labels);

}  // namespace tare
