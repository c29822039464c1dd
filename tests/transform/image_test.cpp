#include "tare/transform/image.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <vector>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare {
namespace {

using ::testing::HasSubstr;
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

// A PNG header that claims a size, with its checksum right.
std::string with_size(std::string file, uint32_t width, uint32_t height) {
  const auto put = [&](size_t at, uint32_t value) {
    for (int i = 0; i < 4; ++i)
      file[at + static_cast<size_t>(i)] = static_cast<char>(value >> (24 - 8 * i));
  };
  put(16, width);
  put(20, height);
  put(29, static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(&file[12]), 17)));
  return file;
}

TEST(Png, ClaimedSizeAboveTheLimitIsRefusedBeforeItIsAllocated) {
  const std::string file = encoded(at::full({1, 4, 4}, 7, at::kByte));
  ASSERT_TRUE(at::equal(decode(with_size(file, 4, 4)), at::full({1, 4, 4}, 7, at::kByte)));
  try {
    (void)decode(with_size(file, 60'000, 60'000));
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("limit"));
  }
}

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
