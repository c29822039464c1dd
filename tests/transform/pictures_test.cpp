// JPEG and WebP files, and resizing, against what Pillow makes of them (tests/golden/pictures.py).
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "support/hostile.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/transform/image.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::HostileFile;
using testing::TempDir;

const fs::path kPictures = fs::path(TARE_GOLDEN) / "pictures";

std::string file(const std::string& name) { return io::read_text(kPictures / name); }

at::Tensor decode_picture(const std::string& bytes, int64_t channels = 0) {
  return decode_image(std::as_bytes(std::span(bytes)), "picture", channels);
}

/// The pixels of a PPM or PGM file.
at::Tensor pixels_of(const std::string& name) {
  std::string text = file(name);
  const int64_t channels = text[1] == '6' ? 3 : 1;
  int width = 0, height = 0, most = 0, begin = 0;
  EXPECT_EQ(std::sscanf(text.c_str() + 2, "%d %d %d%n", &width, &height, &most, &begin), 3);
  return at::from_blob(text.data() + 2 + begin + 1, {height, width, channels}, at::kByte)
      .permute({2, 0, 1})
      .clone(at::MemoryFormat::Contiguous);
}

struct Difference {
  int64_t most = 0;
  double mean = 0;
};

Difference difference(const at::Tensor& got, const at::Tensor& want) {
  EXPECT_EQ(got.sizes(), want.sizes());
  const at::Tensor levels = got.to(at::kDouble).sub(want.to(at::kDouble));
  return {static_cast<int64_t>(levels.abs().max().item<double>()), levels.mean().item<double>()};
}

/// The name of a test with this file or size.
std::string named(const ::testing::TestParamInfo<const char*>& test) {
  std::string name = std::string("Of_") + test.param;
  std::ranges::replace(name, '.', '_');
  return name;
}

class Pictures : public ::testing::TestWithParam<const char*> {};

TEST_P(Pictures, HaveThePixelsThatPillowReads) {
  const std::string name = GetParam();
  // Other versions of a library may round otherwise; PNG and lossless WebP leave them no choice.
  const bool exact = name.ends_with(".png") || name == "lossless.webp";
  const int64_t levels = exact ? 0 : name.ends_with(".webp") ? 1 : 2;
  const auto expect_equal = [&](int64_t channels, const char* ending) {
    const auto [most, mean] =
        difference(read_image(kPictures / name, channels), pixels_of(name + ending));
    EXPECT_LE(most, levels) << ending;
    EXPECT_LT(std::abs(mean), exact ? 1e-9 : 0.05) << ending;
  };
  expect_equal(3, ".ppm");
  if (fs::exists(kPictures / (name + ".pgm"))) expect_equal(1, ".pgm");
}

INSTANTIATE_TEST_SUITE_P(All, Pictures,
                         ::testing::Values("rgb.png", "grey.png", "palette.png", "sampled.jpg",
                                           "half.jpg", "full.jpeg", "progressive.jpg", "grey.jpg",
                                           "cmyk.jpg", "rotated.jpg", "lossy.webp",
                                           "lossless.webp"),
                         named);

TEST(Pictures, AreReadByTheirContentWithTheirOwnChannels) {
  const TempDir folder;
  io::write_atomically(folder / "a.png", file("grey.jpg"));
  int64_t stored = 0;
  EXPECT_EQ(read_image(folder / "a.png", 0, &stored).size(0), 1);
  EXPECT_EQ(stored, 1);
  EXPECT_EQ(read_image(kPictures / "sampled.jpg", 1, &stored).size(0), 1);
  EXPECT_EQ(stored, 3);
  EXPECT_EQ(decode_picture(file("lossy.webp")).size(0), 3);
  EXPECT_THROW((void)read_png(folder / "a.png"), FormatError);
  EXPECT_THROW((void)decode_picture(file("grey.jpg"), 2), ConfigError);
}

TEST(Pictures, AnOrientationIsNotApplied) {
  EXPECT_EQ(read_image(kPictures / "rotated.jpg").sizes(), at::IntArrayRef({3, 29, 37}));
}

TEST(Pictures, TransparentPixelsAreLaidOverBlack) {
  // Of a pixel with value v and the alpha of its own grey; black where alpha is 0.
  const at::Tensor laid = decode_picture(file("transparent.webp")), plain = pixels_of("source.ppm");
  EXPECT_TRUE(laid.le(plain).all().item<bool>());
  EXPECT_FALSE(at::equal(laid, plain));
}

class EveryTruncation : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryTruncation, IsRefused) {
  const std::string whole = file(GetParam());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW((void)decode_picture(whole.substr(0, size)), FormatError) << size;
}

INSTANTIATE_TEST_SUITE_P(Pictures, EveryTruncation,
                         ::testing::Values("sampled.jpg", "progressive.jpg", "grey.jpg",
                                           "lossy.webp", "lossless.webp", "transparent.webp"),
                         named);

/// Returns the position of a JPEG's frame header, behind its marker.
size_t frame_of(const std::string& jpeg) {
  const size_t at = jpeg.find("\xff\xc0");
  return (at == std::string::npos ? jpeg.find("\xff\xc2") : at) + 2;
}

/// A grey progressive JPEG of one block, with each bit of each coefficient in a scan of its own.
std::string with_scans(int count) {
  using namespace std::string_literals;
  std::string jpeg = "\xff\xd8\xff\xdb\0\x43\0"s + std::string(64, '\1') +
                     "\xff\xc2\0\x0b\x08\0\x08\0\x08\1\1\x11\0"s;
  // Tables with one code, a bit of 0, for the symbol 0: no change of the mean, and end of block.
  for (const char table : {'\0', '\x10'})
    jpeg += "\xff\xc4\0\x14"s + table + '\1' + std::string(16, '\0');
  constexpr int kHighest = 13;
  for (int scan = 0; scan < count; ++scan) {
    const int coefficient = scan / (kHighest + 1), bit = kHighest - scan % (kHighest + 1);
    const int before = bit == kHighest ? 0 : bit + 1;
    jpeg += "\xff\xda\0\x08\1\1\0"s;
    for (const int value : {coefficient, coefficient, 16 * before + bit, 0x7f})
      jpeg += static_cast<char>(value);
  }
  return jpeg + "\xff\xd9";
}

TEST(Pictures, AJpegMayHaveManyScans) {
  EXPECT_TRUE(at::equal(decode_picture(with_scans(500)), at::full({1, 8, 8}, 128, at::kByte)));
}

std::vector<HostileFile> hostile_pictures() {
  const std::string jpeg = file("sampled.jpg"), webp = file("lossless.webp");
  const auto with_size = [&](char high, char low) {
    std::string changed = jpeg;
    for (const size_t side : {3U, 5U}) {
      changed[frame_of(jpeg) + side] = high;
      changed[frame_of(jpeg) + side + 1] = low;
    }
    return changed;
  };
  const auto changed = [](std::string text, size_t at, char to) {
    text[at] = to;
    return text;
  };
  std::string huffman = jpeg;
  const size_t scan = jpeg.find("\xff\xda") + 14;
  for (size_t i = 0; i < 40; i += 2)
    huffman.replace(scan + i, 2, "\xff\0", 2);  // no code is all ones
  return {
      {"Empty", "", "header: is missing"},
      {"Foreign", "GIF89a and so on", "header: is not that of a PNG, JPEG or WebP file"},
      {"JpegOfMarkersOnly", jpeg.substr(0, 4), "header"},
      {"JpegAboveTheLimit", with_size('\xff', '\x00'), "size"},
      {"JpegAboveWhatTheFileCanHold", with_size('\x20', '\x00'), "size"},
      {"JpegOfWidthZero", with_size('\x00', '\x00'), "header"},
      {"JpegOfTwoComponents", changed(jpeg, frame_of(jpeg) + 7, '\x02'), "header"},
      {"JpegWithAnotherPrecision", changed(jpeg, frame_of(jpeg) + 2, '\x0c'), "header"},
      {"JpegWithOtherBits", huffman, "pixels"},
      {"JpegOfManyScans", with_scans(501), "pixels: the file has more than 500 scans"},
      {"WebpOfAnotherSize", changed(webp, 4, '\x7f') + std::string(1, '\0'), "header"},
      {"WebpAnimation", file("animation.webp"), "header: is that of an animation"},
      {"WebpWithAnotherChunk", changed(webp, 12, 'X'), "header"},
  };
}

class HostilePicture : public ::testing::TestWithParam<HostileFile> {};

TEST_P(HostilePicture, IsRefusedByName) {
  testing::expect_refused("FormatError", "picture: " + GetParam().message,
                          [] { (void)decode_picture(GetParam().content); });
}

INSTANTIATE_TEST_SUITE_P(All, HostilePicture, ::testing::ValuesIn(hostile_pictures()),
                         testing::test_name);

TEST(Pictures, BytesBetweenTheSegmentsOfAJpegAreNoDamage) {
  std::string jpeg = file("sampled.jpg");
  const at::Tensor want = decode_picture(jpeg);
  jpeg.insert(jpeg.size() - 2, std::string(3, '\x11'));
  EXPECT_TRUE(at::equal(decode_picture(jpeg), want));
}

class Resized : public ::testing::TestWithParam<const char*> {};

TEST_P(Resized, EqualsPillow) {
  for (const std::string ending : {".ppm", ".pgm"}) {
    const at::Tensor source = pixels_of("source" + ending),
                     want = pixels_of(std::string("source_") + GetParam() + ending);
    const int64_t height = want.size(1), width = want.size(2);
    EXPECT_TRUE(at::equal(resize_image(source, height, width), want)) << ending;
    const Transforms unrounded{Resize{.height = height, .width = width}};
    const at::Tensor values = unrounded.apply(source.unsqueeze(0), {}, false)[0].mul(255);
    EXPECT_LE(values.sub(want.to(at::kFloat)).abs().max().item<float>(), 1.001F) << ending;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Resized,
                         ::testing::Values("5x7", "37x10", "16x29", "36x28", "50x41", "1x1"),
                         named);

class FittedPicture : public ::testing::TestWithParam<const char*> {};

TEST_P(FittedPicture, EqualsPillow) {
  const at::Tensor source = pixels_of("source.ppm");
  for (const std::string fit : {"crop", "pad"}) {
    const at::Tensor want = pixels_of("source_" + fit + "_" + GetParam() + ".ppm");
    EXPECT_TRUE(at::equal(resize_image(source, want.size(1), want.size(2), true, fit), want))
        << fit;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FittedPicture,
                         ::testing::Values("16x16", "9x31", "40x12", "50x50", "1x1", "60x2"),
                         named);

TEST(Resized, WithoutAntialiasingIsThatOfEarlierBundles) {
  const at::Tensor source = pixels_of("source.ppm");
  const at::Tensor smooth = resize_image(source, 7, 5), plain = resize_image(source, 7, 5, false);
  EXPECT_FALSE(at::equal(smooth, plain));
  const Transforms resize{Resize{.height = 7, .width = 5, .antialias = false}};
  const at::Tensor want = resize.apply(source.unsqueeze(0), {}, false)[0].mul(255).round();
  EXPECT_TRUE(at::equal(plain, want.to(at::kByte)));
}

}  // namespace
}  // namespace tare
