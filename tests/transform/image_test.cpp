// PNG files: written, read, truncated and hostile.
#include "tare/transform/image.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <array>
#include <span>
#include <vector>

#include "support/hostile.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare {
namespace {

using ::testing::HasSubstr;
using testing::HostileFile;
using testing::TempDir;

at::Tensor decode(const std::string& file, int64_t channels = 0) {
  return decode_png(std::as_bytes(std::span(file)), "test.png", channels);
}

std::string encoded(const at::Tensor& image) {
  TempDir folder;
  write_png(folder / "a.png", image);
  return io::read_text(folder / "a.png");
}

TEST(Png, GreyAndColourComeBackAsWritten) {
  TempDir folder;
  for (int64_t channels : {1, 3}) {
    const at::Tensor image = at::randint(0, 256, {channels, 7, 11}, at::kByte);
    write_png(folder / "a.png", image);
    EXPECT_TRUE(at::equal(read_png(folder / "a.png"), image));
  }
}

TEST(Png, ChannelsAreConvertedOnRequest) {
  const at::Tensor grey = at::arange(0, 12).view({1, 3, 4}).to(at::kByte);
  EXPECT_TRUE(at::equal(decode(encoded(grey), 3), grey.expand({3, 3, 4})));
  EXPECT_TRUE(at::equal(decode(encoded(grey.expand({3, 3, 4})), 1), grey));
  EXPECT_THROW((void)decode(encoded(grey), 2), ConfigError);
}

// A file of 2 x 1 pixels with 16 bits: 64 * 257 and 200 * 257.
TEST(Png, SixteenBitsBecomeTheSameGreyInEight) {
  constexpr std::array<unsigned char, 70> kFile = {
      0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
      0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x10, 0x00, 0x00, 0x00,
      0x00, 0x81, 0xd9, 0xfc, 0x15, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78,
      0x9c, 0x63, 0x70, 0x70, 0x38, 0x71, 0x02, 0x00, 0x04, 0x1d, 0x02, 0x11, 0x96, 0xec,
      0x4f, 0xa2, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
  const at::Tensor image = decode_png(std::as_bytes(std::span(kFile)), "deep", 1);
  EXPECT_TRUE(at::equal(image.flatten(), at::tensor({64, 200}, at::kByte)));
}

TEST(Png, TransparencyIsLaidOverBlack) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = 2;
  image.height = 1;
  image.format = PNG_FORMAT_GA;
  const uint8_t pixels[] = {200, 255, 200, 0};
  std::string file(1000, '\0');
  png_alloc_size_t size = file.size();
  ASSERT_TRUE(png_image_write_to_memory(&image, file.data(), &size, 0, pixels, 0, nullptr));
  file.resize(size);
  const at::Tensor got = decode(file);
  EXPECT_EQ(got.sizes(), at::IntArrayRef({1, 1, 2}));
  EXPECT_EQ(got[0][0][0].item<int>(), 200);
  EXPECT_EQ(got[0][0][1].item<int>(), 0);
}

TEST(Png, EveryTruncationIsRefused) {
  const std::string file = encoded(at::randint(0, 256, {1, 9, 9}, at::kByte));
  // The last 12 bytes are the IEND chunk, which readers do without.
  for (size_t size = 0; size + 12 < file.size(); ++size)
    EXPECT_THROW((void)decode(file.substr(0, size)), FormatError) << size;
}

TEST(Png, ForeignFilesAreRefusedByName) {
  try {
    (void)decode("GIF89a and so on, not a PNG");
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), "test.png");
  }
  EXPECT_THROW((void)read_png("/nowhere/a.png"), IoError);
}

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// A chunk with its checksum right.
std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(data.size())) + body +
         big_endian(static_cast<uint32_t>(crc));
}

struct Ihdr {
  uint32_t width = 4, height = 4;
  char depth = 8, colour = 0, compression = 0, filter = 0, interlace = 0;
};

std::string ihdr(const Ihdr& h) {
  return chunk("IHDR", big_endian(h.width) + big_endian(h.height) +
                           std::string{h.depth, h.colour, h.compression, h.filter, h.interlace});
}

std::string idat(const std::string& rows) {
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                     reinterpret_cast<const Bytef*>(rows.data()), rows.size()),
            Z_OK);
  return chunk("IDAT", packed.substr(0, size));
}

std::string png(const std::string& chunks) {
  return "\x89PNG\r\n\x1a\n" + chunks + chunk("IEND", "");
}

const std::string kRows(20, '\0');  // of 4 x 4 grey pixels: a filter byte and 4 values each

class HostilePng : public ::testing::TestWithParam<HostileFile> {};

TEST_P(HostilePng, IsRefusedByName) {
  testing::expect_refused("FormatError", "test.png: " + GetParam().message + ": ",
                          [] { (void)decode(GetParam().content); });
}

std::vector<HostileFile> hostile_files() {
  const std::string good = png(ihdr({}) + idat(kRows));
  EXPECT_EQ(decode(good).sizes(), at::IntArrayRef({1, 4, 4}));
  const auto with = [&](size_t at, char byte) {
    std::string changed = good;
    changed[at] = byte;
    return changed;
  };
  const auto header = [](const Ihdr& h) { return png(ihdr(h) + idat(kRows)); };
  std::string rows_with_filter_5 = kRows;
  rows_with_filter_5[5] = 5;
  return {
      {"Empty", "", "header"},
      {"SignatureOnly", good.substr(0, 8), "header"},
      {"ForeignSignature", "GIF89a and so on, not a PNG", "header"},
      {"SignatureWithANewlineChanged", with(4, '\n'), "header"},
      {"NoHeader", png(idat(kRows)), "header"},
      {"ChunkInFrontOfTheHeader", png(chunk("teST", "") + ihdr({}) + idat(kRows)), "header"},
      {"HeaderTwice", png(ihdr({}) + ihdr({}) + idat(kRows)), "header"},
      {"ShortHeader", png(chunk("IHDR", big_endian(4)) + idat(kRows)), "header"},
      {"HeaderWithWrongChecksum", with(29, '\x7f'), "header"},
      {"WidthZero", header({.width = 0}), "header"},
      {"HeightZero", header({.height = 0}), "header"},
      {"WidthNegative", header({.width = 0x80000000}), "header"},
      {"WidthAboveLibpngsLimit", header({.width = 1'000'001}), "header"},
      {"BitDepthThree", header({.depth = 3}), "header"},
      {"BitDepthSixteenWithPalette", header({.depth = 16, .colour = 3}), "header"},
      {"ColourTypeFive", header({.colour = 5}), "header"},
      {"ColourTypeNegative", header({.colour = -1}), "header"},
      {"CompressionOne", header({.compression = 1}), "header"},
      {"FilterMethodOne", header({.filter = 1}), "header"},
      {"InterlaceTwo", header({.interlace = 2}), "header"},
      {"ChunkLengthAboveTheFile", with(33, '\x7f'), "pixels"},
      {"UnknownCriticalChunk", png(ihdr({}) + chunk("TEST", "") + idat(kRows)), "header"},
      {"NoPixels", png(ihdr({})), "header"},
      {"NoPalette", header({.colour = 3}), "header"},
      {"PixelsAboveTheLimit", header({.width = 60'000, .height = 60'000}), "size"},
      {"PixelsThatTheFileCannotHold", header({.width = 8192, .height = 8192}), "size"},
      {"PixelsOf64BitsThatTheFileCannotHold",
       header({.width = 100, .height = 100, .depth = 16, .colour = 6}), "size"},
      {"RowTooFew", png(ihdr({}) + idat(kRows.substr(5))), "pixels"},
      {"HalfARow", png(ihdr({}) + idat(kRows.substr(2))), "pixels"},
      {"UnknownFilter", png(ihdr({}) + idat(rows_with_filter_5)), "pixels"},
      {"PixelsWithWrongChecksum", with(good.size() - 13, '\x7f'), "pixels"},
      {"PixelsAreNoZlibStream", png(ihdr({}) + chunk("IDAT", std::string(30, 'x'))), "pixels"},
      {"PixelsWithReservedBlock", png(ihdr({}) + chunk("IDAT", "\x78\x9c\x07")), "pixels"},
      {"PixelsAreEmpty", png(ihdr({}) + chunk("IDAT", "")), "pixels"},
      {"CutInThePixels", good.substr(0, 45), "pixels"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, HostilePng, ::testing::ValuesIn(hostile_files()), testing::test_name);

TEST(Png, OnlyByteImagesAreWritten) {
  TempDir folder;
  EXPECT_THROW(write_png(folder / "a.png", at::full({1, 2, 2}, 0.5)), ShapeError);
  EXPECT_THROW(write_png(folder / "a.png", at::full({2, 2, 2}, 1, at::kByte)), ShapeError);
  EXPECT_THROW(write_png(folder / "a.png", at::full({2, 2}, 1, at::kByte)), ShapeError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ResizeImage, KeepsAnImageOfItsSizeAndConstants) {
  const at::Tensor image = at::randint(0, 256, {3, 6, 5}, at::kByte);
  EXPECT_TRUE(at::equal(resize_image(image, 6, 5), image));
  EXPECT_TRUE(at::equal(resize_image(at::full({1, 4, 4}, 130, at::kByte), 9, 3),
                        at::full({1, 9, 3}, 130, at::kByte)));
}

}  // namespace
}  // namespace tare
