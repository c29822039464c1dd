// Writes bytes as Base64.
#include "tare/base/base64.h"

#include <algorithm>
#include <cstdint>

namespace tare {
namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

}  // namespace tare
