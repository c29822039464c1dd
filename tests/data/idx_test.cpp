// IDX files, plain and gzip, damaged and hostile.
#include "tare/data/idx.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "support/damage.h"
#include "support/hostile.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare {
namespace {

using ::testing::HasSubstr;
using testing::HostileFile;
using testing::TempDir;

std::string header(std::initializer_list<uint32_t> shape, char type = 8) {
  std::string bytes{0, 0, type, static_cast<char>(shape.size())};
  for (const uint32_t d : shape)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(d >> shift);
  return bytes;
}

// The part that a broken file's error names; "" when it is accepted.
std::string wrong_part(const std::filesystem::path& path, std::string_view bytes,
                       int64_t limit = kMaxIdxBytes) {
  io::File(path, io::Mode::create).write(bytes);  // without the flush of an atomic write, for speed
  try {
    (void)read_idx(path, limit);
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), path.string());
    return error.part();
  }
  return "";
}

TEST(Idx, ComesBackAsWrittenPlainAndGzip) {
  const TempDir folder;
  for (const char* name : {"values", "values.gz"})
    for (const auto& shape :
         std::vector<std::vector<int64_t>>{{5}, {3, 4}, {7, 3, 2}, {2, 3, 4, 5}, {70'000}}) {
      const at::Tensor values = at::randint(0, 256, shape, at::kByte);
      write_idx(folder / name, values);
      EXPECT_TRUE(at::equal(read_idx(folder / name), values));
    }
}

TEST(Idx, GzipIsSmallerAndRepeatable) {
  const TempDir folder;
  const at::Tensor values = at::zeros({100'000}, at::kByte);
  write_idx(folder / "a.gz", values);
  write_idx(folder / "b.gz", values);
  EXPECT_LT(std::filesystem::file_size(folder / "a.gz"), 1000U);
  EXPECT_EQ(io::read_text(folder / "a.gz"), io::read_text(folder / "b.gz"));
}

TEST(Idx, TheLimitIsTheCallers) {
  const TempDir folder;
  EXPECT_EQ(wrong_part(folder / "x", header({3}) + "abc"), "");
  EXPECT_EQ(wrong_part(folder / "x", header({3}) + "abc", 3), "");
  EXPECT_EQ(wrong_part(folder / "x", header({3}) + "abc", 2), "dimensions");
}

std::string gzip(const TempDir& folder, const at::Tensor& values) {
  write_idx(folder / "whole.gz", values);
  return io::read_text(folder / "whole.gz");
}

TEST(Idx, EveryTruncationOfAGzipFileIsRefused) {
  const TempDir folder;
  const std::string whole = gzip(folder, at::randint(0, 256, {40, 5}, at::kByte));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(wrong_part(folder / "x", whole.substr(0, size)), "")
        << size << " of " << whole.size();
}

TEST(Idx, NoFlippedBitOfAGzipFileGivesOtherValues) {
  const TempDir folder;
  const at::Tensor values = at::randint(0, 256, {20}, at::kByte);
  const std::string whole = gzip(folder, values);
  int refused = 0, harmless = 0;
  for (size_t i = 0; i < 8 * whole.size(); ++i) {
    if (!wrong_part(folder / "x", testing::flipped(whole, i)).empty()) {
      ++refused;
      continue;
    }
    ++harmless;
    EXPECT_TRUE(at::equal(read_idx(folder / "x"), values)) << "bit " << i;
  }
  EXPECT_GT(refused, 250);  // of the values, their framing and the checksum
  EXPECT_LT(harmless,
            80);  // time, flags and system in the gzip header, unused bits before the checksum
}

std::string deflated(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class HostileIdx : public ::testing::TestWithParam<HostileFile> {};

TEST_P(HostileIdx, IsRefusedByName) {
  const TempDir folder;
  testing::overwrite(folder / "x", GetParam().content);
  testing::expect_refused("FormatError", "/x: " + GetParam().message + ": ",
                          [&] { (void)read_idx(folder / "x"); });
}

std::vector<HostileFile> hostile_files() {
  const std::string whole = deflated(header({4}) + "abcd");
  const auto with = [&](size_t at, char byte) {
    std::string changed = whole;
    changed[at] = byte;
    return changed;
  };
  std::string not_its_checksum = whole;
  not_its_checksum[whole.size() - 8] ^= 1;
  constexpr uint32_t kMost = 0xffffffff;
  return {
      {"Empty", "", "magic number"},
      {"HalfAMagicNumber", std::string(2, '\0'), "magic number"},
      {"ZipArchive", "PK\x03\x04 something", "magic number"},
      {"BytesOfTheMagicNumberSwapped", std::string("\x01\x08\0\0\0\0\0\x03", 8) + "abc",
       "magic number"},
      {"FloatValues", header({1}, 0x0D) + "abcd", "magic number"},
      {"SignedValues", header({1}, 0x09) + "a", "magic number"},
      {"NoDimension", header({}) + "abcd", "magic number"},
      {"FiveDimensions", header({1, 1, 1, 1, 1}) + "a", "magic number"},
      {"NoDimensions", header({3, 2}).substr(0, 4), "dimensions"},
      {"HalfADimension", header({3, 2}).substr(0, 9), "dimensions"},
      {"ZeroDimension", header({3, 0}), "dimensions"},
      {"ZeroHidesOverflow", header({kMost, kMost, kMost, 0}), "dimensions"},
      {"ProductOverflows", header({kMost, kMost, kMost, kMost}), "dimensions"},
      {"AboveTheLimit", header({0x10000, 0x10001}), "dimensions"},
      {"ClaimsFourGibibytes", header({0x10000, 0x10000}), "size"},
      {"AByteTooFew", header({3}) + "ab", "size"},
      {"AByteTooMany", header({3}) + "abcd", "size"},
      {"GzipOfNothing", deflated(""), "magic number"},
      {"GzipHeaderOnly", whole.substr(0, 10), "gzip"},
      {"GzipWithUnknownMethod", with(2, 7), "gzip"},
      {"GzipWithReservedFlags", with(3, '\xe0'), "gzip"},
      {"GzipWithReservedBlock", with(10, 7), "gzip"},
      {"GzipWithoutItsChecksum", whole.substr(0, whole.size() - 8), "gzip"},
      {"GzipWithAnotherChecksum", not_its_checksum, "gzip"},
      {"GzipWithAnotherLength", with(whole.size() - 1, 1), "gzip"},
      {"BytesBehindTheGzipStream", whole + "tail", "gzip"},
      {"SecondGzipStream", whole + whole, "gzip"},
      {"GzipHoldsLess", deflated(header({4}) + "abc"), "values"},
      {"GzipHoldsMore", deflated(header({4}) + "abcde"), "values"},
      {"GzipHoldsAThousandTimesMore", deflated(header({4}) + std::string(50'000'000, 'a')),
       "values"},
      {"GzipClaimsMoreThanItCanHold", deflated(header({0x40000000}) + "abc"), "size"},
      {"GzipClaimsALittleMoreThanItHolds",
       deflated(header({20'000'001}) + std::string(20'000'000, 'a')), "values"},
      {"GzipInsideOfGzip", deflated(whole), "magic number"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, HostileIdx, ::testing::ValuesIn(hostile_files()), testing::test_name);

TEST(Idx, OnlyBytesAreWrittenAndNothingIsLeftOnAnError) {
  const TempDir folder;
  EXPECT_THROW(write_idx(folder / "x", at::arange(3)), ShapeError);
  EXPECT_THROW(write_idx(folder / "x", at::zeros({1, 1, 1, 1, 1}, at::kByte)), ShapeError);
  EXPECT_THROW(write_idx(folder / "x", {}), ShapeError);
  EXPECT_THROW(write_idx(folder / "missing" / "x", at::zeros({1}, at::kByte)), IoError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Idx, MissingFileIsAnIoError) { EXPECT_THROW((void)read_idx("/nowhere/x.gz"), IoError); }

TEST(IdxDataset, PairsImagesWithLabels) {
  const TempDir folder;
  const at::Tensor images = at::randint(0, 256, {6, 4, 5}, at::kByte);
  write_idx(folder / "i.gz", images);
  write_idx(folder / "l", at::arange(6).to(at::kByte));
  const DatasetPtr data = idx_dataset(folder / "i.gz", folder / "l");
  EXPECT_EQ(data->sample_shape(), (std::vector<int64_t>{1, 4, 5}));
  EXPECT_EQ(data->labels().size(), 6U);
  EXPECT_TRUE(at::equal(data->targets(), at::arange(6)));
  const std::vector<int64_t> indices{3};
  EXPECT_TRUE(at::equal(data->get({indices}).input()[0][0], images[3]));
}

TEST(IdxDataset, WarnsOfLabelsThatDoNotCountFrom0) {
  const TempDir folder;
  write_idx(folder / "images", at::zeros({3, 4, 5}, at::kByte));
  const auto logged = [&](const char* name, int64_t first) {
    write_idx(folder / name, at::arange(first, first + 3, at::kByte));
    ::testing::internal::CaptureStderr();
    (void)idx_dataset(folder / "images", folder / name);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(logged("from 0", 0), "");
  EXPECT_THAT(logged("from 1", 1),
              HasSubstr("from 1 has no sample of class 0, and its lowest label is 1"));
}

TEST(IdxDataset, FilesThatDoNotBelongTogetherAreRefused) {
  const TempDir folder;
  write_idx(folder / "i", at::zeros({6, 4, 5}, at::kByte));
  write_idx(folder / "five", at::zeros({5}, at::kByte));
  EXPECT_THROW((void)idx_dataset(folder / "i", folder / "five"), FormatError);
  EXPECT_THROW((void)idx_dataset(folder / "five", folder / "five"), FormatError);
  EXPECT_THROW((void)idx_dataset(folder / "i", folder / "i"), FormatError);
}

}  // namespace
}  // namespace tare
