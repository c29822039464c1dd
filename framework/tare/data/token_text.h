// A text as a data set for language models: windows of tokens, each with the tokens that follow.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tare/data/dataset.h"
#include "tare/data/splits.h"

namespace tare {

/// Holds a text as tokens, and what each token stands for.
struct TokenText {
  at::Tensor tokens{};                    ///< [length] on the host, uint8 or int32
  std::vector<std::string> vocabulary{};  ///< characters (UTF-8) by token; empty: tokens are bytes
};

/// Returns the bytes of a text, each a token.
[[nodiscard]] TokenText byte_tokens(std::string_view text);
/// Returns the characters of a text, whose tokens are numbered in the order of their code points.
/// Throws FormatError, naming `path` and the byte, for text that is not UTF-8.
[[nodiscard]] TokenText character_tokens(std::string_view text, const std::filesystem::path& path);

/// Returns the tokens of a text by byte-pair encoding on its characters: the vocabulary is
/// learnt_vocabulary() of the text. Throws FormatError as character_tokens().
[[nodiscard]] TokenText bpe_tokens(std::string_view text, int64_t vocabulary,
                                   const std::filesystem::path& path);

/// Returns the tokens of an array that NumPy has saved, whole numbers >= 0 in one dimension;
/// nothing says what they stand for. Throws IoError, FormatError.
[[nodiscard]] TokenText stored_tokens(const std::filesystem::path& path);

/// Sets how a text is cut into samples.
struct TokenWindowOptions {
  int64_t context = 128;  ///< tokens of a sample, >= 1
  /// Windows begin elsewhere in each epoch of a training: all are moved by one number of tokens
  /// below `context`, which depends on the seed of the epoch.
  bool move = false;
};

/// Returns the windows of a text: input "tokens" and target "next", int64 [context] each, where
/// `next` is one token ahead. Windows do not overlap; what is left at the end is no sample. The
/// labels are the vocabulary. Throws ConfigError for an option out of range and for a text that is
/// shorter than a window and its next token.
[[nodiscard]] DatasetPtr token_windows(const TokenText& text, const TokenWindowOptions& options);

/// Cuts a text into its beginning, which trains, and parts behind it for validation and test, so
/// that no sample of one split is in another. Sizes up to 1 are fractions of the tokens, others
/// numbers of samples. Throws ConfigError for parts that are together longer than the text.
[[nodiscard]] Splits split_text(const TokenText& text, int64_t context, const SplitSizes& sizes);

}  // namespace tare
