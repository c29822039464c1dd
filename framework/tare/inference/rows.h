// Samples from lines of text: numbers, tokens, and text that is made of tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "tare/inference/bundle.h"

namespace tare {

/// Locates a line of a file, for messages.
struct LinePlace {
  std::string path{};  ///< of the file; "-": standard input
  int64_t number = 1;  ///< from 1
};

/// Reads one sample, [1, ...] in shape and dtype of the bundle's input, from numbers separated by
/// commas, semicolons, blanks or tabs; of tokens there may be any number. Throws FormatError,
/// naming path and line, for another count, and for what is not a number or is out of the dtype's
/// range.
[[nodiscard]] at::Tensor parse_numbers(std::string_view line, const BundleManifest& manifest,
                                       const LinePlace& place);
/// Throws ConfigError for a model that takes no text because its input is no tokens.
void check_takes_text(const BundleManifest& manifest);
/// Reads one sample of tokens, int64 [1, length], from text. Each character (UTF-8) is the token
/// whose label it is; without labels, and for a model of the registry whose labels are classes of
/// texts, each byte is a token. Throws FormatError for an empty line and
/// for a character that is not a label; ConfigError as check_takes_text().
[[nodiscard]] at::Tensor parse_text(std::string_view line, const BundleManifest& manifest,
                                    const LinePlace& place);
/// Whether no field of the line is a number, as in the first line of a CSV file that names its
/// columns. False for a line without a field.
[[nodiscard]] bool is_header(std::string_view line);

}  // namespace tare
