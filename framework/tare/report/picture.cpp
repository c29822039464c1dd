// Measures and cuts the texts of a picture.
#include "tare/report/picture.h"

#include "tare/base/error.h"

namespace tare::report {
namespace {

bool continues_letter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Returns the width of a letter of size 1, in the wider ones of usual fonts.
double letter_width(char c) {
  constexpr std::string_view kNarrow = "fijlrtI.,:;!'|()[]-/ ", kWide = "mwMW@%";
  if (continues_letter(c)) return 0;
  if (static_cast<unsigned char>(c) >= 0x80 || kWide.find(c) != kWide.npos) return 1.1;
  return kNarrow.find(c) != kNarrow.npos ? 0.5 : 0.74;
}

/// Returns the length of the noncharacter (Unicode, section 23.7) at `i` of UTF-8, or 0.
size_t noncharacter(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0;
  };
  const size_t length = byte(0) == 0xef ? 3 : byte(0) >= 0xf0 ? 4 : 0;
  if (length == 3 && byte(1) == 0xb7 && byte(2) >= 0x90 && byte(2) <= 0xaf) return length;
  const bool ends_plane = length == 3 || (byte(1) & 0x0f) == 0x0f;
  return length > 0 && ends_plane && byte(length - 2) == 0xbf && byte(length - 1) >= 0xbe ? length
                                                                                          : 0;
}

}  // namespace

std::string drawable_text(std::string_view text, size_t limit) {
  constexpr const char* kReplacement = "\xef\xbf\xbd";
  std::string result = printable(text, limit);
  for (size_t i = 0; i < result.size(); ++i)
    if (const size_t length = noncharacter(result, i)) result.replace(i, length, kReplacement);
  return result;
}

double width_of(std::string_view text, double size) {
  double width = 0;
  for (const char c : text) width += letter_width(c) * size;
  return width;
}

std::string fitting(const std::string& text, double size, double width) {
  if (width_of(text, size) <= width) return text;
  constexpr const char* kCut = "...";
  size_t end = text.size();
  while (end > 0 &&
         (continues_letter(text[end]) || width_of(text.substr(0, end) + kCut, size) > width))
    --end;
  return text.substr(0, end) + kCut;
}

}  // namespace tare::report
