// Finds the orientation in the EXIF data of JPEG files.
#include "tare/data/exif.h"

#include <cstdint>
#include <string_view>

namespace tare {
namespace {

using Bytes = std::span<const std::byte>;

constexpr int kUpright = 1, kLastOrientation = 8;
constexpr std::string_view kExif("Exif\0\0", 6);

/// Returns the number in `size` bytes at `at`; 0 where they are not all there.
uint32_t number(Bytes bytes, size_t at, size_t size, bool little) {
  if (at > bytes.size() || size > bytes.size() - at) return 0;
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value = value << 8 | std::to_integer<uint32_t>(bytes[little ? at + size - 1 - i : at + i]);
  return value;
}

bool starts_with(Bytes bytes, std::string_view text) {
  if (bytes.size() < text.size()) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (std::to_integer<char>(bytes[i]) != text[i]) return false;
  return true;
}

/// Reads the first directory of a TIFF structure.
int orientation_in(Bytes tiff) {
  constexpr uint32_t kTag = 0x0112, kShort = 3;
  constexpr size_t kEntryBytes = 12, kValueAt = 8;
  const bool little = starts_with(tiff, "II");
  if (!little && !starts_with(tiff, "MM")) return kUpright;
  if (number(tiff, 2, 2, little) != 42) return kUpright;
  const size_t directory = number(tiff, 4, 4, little);
  const size_t entries = number(tiff, directory, 2, little);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) break;
    if (number(tiff, entry, 2, little) != kTag) continue;
    const auto value = static_cast<int>(number(tiff, entry + kValueAt, 2, little));
    const bool is_valid = number(tiff, entry + 2, 2, little) == kShort && value >= kUpright &&
                          value <= kLastOrientation;
    return is_valid ? value : kUpright;
  }
  return kUpright;
}

}  // namespace

int exif_orientation(Bytes jpeg) {
  constexpr uint32_t kStart = 0xFFD8, kApp1 = 0xFFE1, kScan = 0xFFDA;
  if (number(jpeg, 0, 2, false) != kStart) return kUpright;
  for (size_t at = 2; at + 4 <= jpeg.size();) {
    const uint32_t marker = number(jpeg, at, 2, false);
    const size_t length = number(jpeg, at + 2, 2, false);  // with its own two bytes
    if (marker >> 8 != 0xFF || marker == kScan) break;
    if (marker == 0xFFFF) {  // a fill byte
      ++at;
      continue;
    }
    if (length < 2 || length > jpeg.size() - at - 2) break;
    const Bytes segment = jpeg.subspan(at + 4, length - 2);
    if (marker == kApp1 && starts_with(segment, kExif))
      return orientation_in(segment.subspan(kExif.size()));
    at += 2 + length;
  }
  return kUpright;
}

}  // namespace tare
