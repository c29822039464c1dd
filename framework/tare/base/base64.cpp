// Writes bytes as Base64.
#include "tare/base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tare {
namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the six bits of a letter; 0 for the padding.
uint32_t value_of(char letter) {
  static const auto kValues = [] {
    std::array<uint8_t, 256> values{};
    for (size_t i = 0; i < kLetters.size(); ++i)
      values[static_cast<unsigned char>(kLetters[i])] = static_cast<uint8_t>(i);
    return values;
  }();
  return kValues[static_cast<unsigned char>(letter)];
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) {
      const char byte = i + j < bytes.size() ? bytes[i + j] : '\0';
      three = three << 8 | static_cast<unsigned char>(byte);
    }
    for (size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? kLetters[three >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

bool is_base64(std::string_view text) {
  if (text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  return std::ranges::all_of(text,
                             [](char c) { return kLetters.find(c) != std::string_view::npos; });
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  if (!is_base64(text)) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t three = 0;
    for (const char letter : text.substr(i, 4)) three = three << 6 | value_of(letter);
    for (size_t j = 0; j < 3; ++j)
      if (text[i + j + 1] != '=') bytes += static_cast<char>(three >> (16 - 8 * j) & 255);
  }
  return bytes;
}

}  // namespace tare
