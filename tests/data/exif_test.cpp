// The orientation in the EXIF data of JPEG files: both byte orders, and damaged data.
#include "tare/data/exif.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tare/base/io.h"

namespace tare {
namespace {

int orientation_of(const std::string& bytes) {
  return exif_orientation(std::as_bytes(std::span(bytes)));
}

std::string number(uint32_t value, size_t size, bool little) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i)
    bytes += static_cast<char>(value >> 8 * (little ? i : size - 1 - i) & 0xFF);
  return bytes;
}

/// Sets what is unusual about the EXIF data of a file.
struct Exif {
  bool little = true;
  uint32_t orientation = 6, type = 3, directory = 8, magic = 42;
  std::string in_front{};  ///< segments before that of the EXIF data
};

std::string segment(uint32_t marker, const std::string& content) {
  return number(marker, 2, false) + number(static_cast<uint32_t>(content.size()) + 2, 2, false) +
         content;
}

std::string jpeg(const Exif& e) {
  const auto n = [&](uint32_t value, size_t size) { return number(value, size, e.little); };
  const std::string width = n(0x0100, 2) + n(3, 2) + n(1, 4) + n(640, 2) + n(0, 2);
  const std::string orientation =
      n(0x0112, 2) + n(e.type, 2) + n(1, 4) + n(e.orientation, 2) + n(0, 2);
  const std::string tiff = (e.little ? "II" : "MM") + n(e.magic, 2) + n(e.directory, 4) + n(2, 2) +
                           width + orientation + n(0, 4);
  return "\xFF\xD8" + e.in_front + segment(0xFFE1, std::string("Exif\0\0", 6) + tiff) +
         segment(0xFFDA, "scan");
}

TEST(ExifOrientation, IsReadInBothByteOrders) {
  for (const bool little : {true, false})
    for (uint32_t value = 1; value <= 8; ++value)
      EXPECT_EQ(orientation_of(jpeg({.little = little, .orientation = value})),
                static_cast<int>(value))
          << little;
  const std::string others = segment(0xFFE0, "JFIF") + segment(0xFFE1, "http://ns.adobe.com/xap");
  EXPECT_EQ(orientation_of(jpeg({.in_front = others})), 6);
  EXPECT_EQ(orientation_of(jpeg({.in_front = "\xFF\xFF"})), 6) << "fill bytes";
  EXPECT_EQ(
      orientation_of(io::read_text(std::filesystem::path(TARE_GOLDEN) / "pictures/rotated.jpg")),
      6);
  EXPECT_EQ(
      orientation_of(io::read_text(std::filesystem::path(TARE_GOLDEN) / "pictures/sampled.jpg")),
      1);
}

TEST(ExifOrientation, IsUprightWhereTheDataAreDamaged) {
  for (const uint32_t value : {0U, 9U, 65535U})
    EXPECT_EQ(orientation_of(jpeg({.orientation = value})), 1) << value;
  EXPECT_EQ(orientation_of(jpeg({.type = 4})), 1);
  EXPECT_EQ(orientation_of(jpeg({.magic = 43})), 1);
  for (const uint32_t directory : {60U, 65535U, 0x7FFFFFFFU, 0xFFFFFFFFU})
    EXPECT_EQ(orientation_of(jpeg({.directory = directory})), 1) << directory;
  EXPECT_EQ(orientation_of(""), 1);
  EXPECT_EQ(orientation_of("no JPEG at all"), 1);
  EXPECT_EQ(orientation_of(jpeg({.in_front = number(0xFFE0, 2, false) + number(1, 2, false)})), 1)
      << "a segment that is shorter than its length";
  EXPECT_EQ(orientation_of(jpeg({.in_front = number(0xFFE0, 2, false) + number(60000, 2, false)})),
            1)
      << "a segment beyond the file";
}

TEST(ExifOrientation, IsUprightWhereverTheFileIsCut) {
  for (const bool little : {true, false}) {
    const std::string whole = jpeg({.little = little});
    const size_t scan = whole.size() - segment(0xFFDA, "scan").size();
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string cut(whole, 0, size);  // of its own memory, which a sanitizer watches
      EXPECT_EQ(orientation_of(cut), size < scan ? 1 : 6) << size;
    }
  }
}

}  // namespace
}  // namespace tare
