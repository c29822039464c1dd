// The bytes of event files, and histograms.
#include "tare/callback/event_file.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "callback/events_of.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/transform/image.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

/// A record without its length and checksums.
std::string_view inside(std::string_view record) { return record.substr(12, record.size() - 16); }

// The appendix B.4 of RFC 3720 has these sums, and their bytes in the order of the wire.
TEST(Crc32c, HasTheSumsOfRfc3720) {
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  for (int i = 31; i >= 0; --i) falling += static_cast<char>(i);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(rising), 0x46dd794eU);
  EXPECT_EQ(crc32c(falling), 0x113fdb5cU);
}

TEST(EventFile, AScalarHasTheBytesOfItsMessage) {
  const std::string record = event_record(1.5, 300, {{"a", 2}});
  // wall_time 1.5, step 300, summary {value {tag "a", simple_value 2}}
  EXPECT_EQ(hex(inside(record)),
            "09000000000000f83f"
            "10ac02"
            "2a0a0a080a01611500000040");
  EXPECT_EQ(record.size(), inside(record).size() + 16);
  EXPECT_EQ(hex(inside(event_head(0))), "0900000000000000001a0d627261696e2e4576656e743a32");
}

TEST(EventFile, IsReadBackWithNanAndNegativeSteps) {
  const TempDir folder;
  const EventHistogram three{
      .min = 0, .max = 3, .sum = 4, .squares = 10, .limits = {1.5, 3}, .counts = {2, 1}};
  io::write_atomically(folder / "e", event_head(1) + event_record(1, -1, {{"x", NAN}, {"y", 0.1}}) +
                                         event_record(2, 7, "w", three));
  const auto seen = events_of(folder / "e");
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen.at("").size(), 1U);
  EXPECT_TRUE(std::isnan(seen.at("x").at(0).value));
  EXPECT_EQ(seen.at("x").at(0).step, -1);
  EXPECT_EQ(seen.at("y").at(0).value, static_cast<double>(0.1F));
  EXPECT_EQ(seen.at("w").at(0).limits, three.limits);
  EXPECT_EQ(seen.at("w").at(0).counts, three.counts);
}

TEST(EventFile, APictureAndATextHaveTheBytesOfTheirMessages) {
  // value {tag "i", image {height 2, width 3, colorspace 1, encoded_image_string "p"}}
  EXPECT_EQ(hex(inside(event_record(1.5, 1, "i", EventImage{2, 3, 1, "p"}))),
            "09000000000000f83f"
            "1001"
            "2a100a0e0a01692209080210031801220170");
  // value {tag "t", tensor {DT_STRING, shape {dim {size 1}}, string_val "x"}, metadata {"text"}}
  EXPECT_EQ(hex(inside(event_record(1.5, 1, "t", std::string("x")))),
            "09000000000000f83f"
            "1001"
            "2a1c0a1a0a0174"
            "420b080712040a020801420178"
            "4a080a060a0474657874");
}

TEST(EventImage, IsAGridOfEightInARow) {
  at::Tensor images = at::zeros({9, 1, 2, 3});
  images[8].fill_(1);
  const EventImage grid = image_of(images);
  EXPECT_EQ(grid.height, 2 * 2 + 2);
  EXPECT_EQ(grid.width, 8 * 3 + 7 * 2);
  const auto* bytes = reinterpret_cast<const std::byte*>(grid.png.data());
  const at::Tensor pixels = decode_png({bytes, grid.png.size()}, "grid");
  EXPECT_EQ(pixels.sum().item<int64_t>(), 6 * 255) << "the ninth is white";
  EXPECT_EQ(pixels[0][4][2].item<int64_t>(), 255) << "first in the second row";
}

TEST(EventImage, ShowsNormalisedValuesFromBlackToWhite) {
  const at::Tensor images = at::tensor({-1.0F, 0.5F, 2.0F, NAN}).reshape({1, 1, 2, 2});
  const EventImage image = image_of(images);
  const auto* bytes = reinterpret_cast<const std::byte*>(image.png.data());
  EXPECT_TRUE(decode_png({bytes, image.png.size()}, "image")
                  .equal(at::tensor({0, 128, 255, 0}, at::kByte).reshape({1, 2, 2})));
  EXPECT_THROW((void)image_of(at::zeros({1, 2, 4, 4})), ShapeError);
  EXPECT_THROW((void)image_of(at::zeros({4, 4})), ShapeError);
}

TEST(Histogram, CountsEveryFiniteValueOnce) {
  const EventHistogram of_eight = histogram_of(at::arange(8, at::kFloat), 4);
  EXPECT_THAT(of_eight.limits, ElementsAre(1.75, 3.5, 5.25, 7));
  EXPECT_THAT(of_eight.counts, ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(of_eight.sum, 28);
  EXPECT_EQ(of_eight.squares, 140);
  const EventHistogram equal = histogram_of(at::full({5}, 2, at::kHalf), 4);
  EXPECT_THAT(equal.limits, ElementsAre(2));
  EXPECT_THAT(equal.counts, ElementsAre(5));
  const float infinite = std::numeric_limits<float>::infinity();
  const EventHistogram holes = histogram_of(at::tensor({NAN, 1.0F, infinite, 2.0F}), 2);
  EXPECT_THAT(holes.counts, ElementsAre(1, 1));
  EXPECT_TRUE(histogram_of(at::full({3}, NAN), 4).counts.empty());
}

TEST(Histogram, OfATensorWithGapsHasItsElementsAlone) {
  const at::Tensor columns = at::arange(8, at::kFloat).reshape({4, 2}).select(1, 0);
  const EventHistogram found = histogram_of(columns, 2);
  EXPECT_EQ(found.max, 6);
  EXPECT_THAT(found.counts, ElementsAre(2, 2));
}

}  // namespace
}  // namespace tare::testing
