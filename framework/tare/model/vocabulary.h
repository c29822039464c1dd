// Texts as tokens and back, for language models.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Is called with a character that is not a label, or with a byte that is no character of UTF-8.
/// It throws.
using RefuseCharacter = std::function<void(std::string_view character)>;

/// Returns the tokens of a text: each character (UTF-8) is the token whose label it is, and
/// characters whose join is a label are that token, see TokenMerger; without labels each byte is a
/// token. Throws what `refuse` throws.
[[nodiscard]] std::vector<int64_t> tokens_of(std::string_view text,
                                             const std::vector<std::string>& labels,
                                             const RefuseCharacter& refuse);
/// Returns the tokens of a text, as above. Throws ConfigError, naming `where` and the vocabulary,
/// for a character that is not a label.
[[nodiscard]] std::vector<int64_t> tokens_of(std::string_view text,
                                             const std::vector<std::string>& labels,
                                             const std::string& where);
/// Returns the text of tokens. A token without a label is its byte, or "?" above 255.
[[nodiscard]] std::string text_of(const std::vector<int64_t>& tokens,
                                  const std::vector<std::string>& labels);

}  // namespace tare
