#include "tare/data/idx.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare {
namespace {

using ::testing::HasSubstr;
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

TEST(Idx, WrongHeadersAreRefusedByPart) {
  const TempDir folder;
  const auto path = folder / "x";
  EXPECT_EQ(wrong_part(path, header({3}) + "abc"), "");
  EXPECT_EQ(wrong_part(path, ""), "magic number");
  EXPECT_EQ(wrong_part(path, "PK\x03\x04 something"), "magic number");
  EXPECT_EQ(wrong_part(path, header({1}, 0x0D) + "abcd"), "magic number");
  EXPECT_EQ(wrong_part(path, header({}) + "abcd"), "magic number");
  EXPECT_EQ(wrong_part(path, header({1, 1, 1, 1, 1}) + "a"), "magic number");
  EXPECT_EQ(wrong_part(path, header({3, 2}).substr(0, 9)), "dimensions");
  EXPECT_EQ(wrong_part(path, header({3, 0})), "dimensions");
  EXPECT_EQ(wrong_part(path, header({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff})),
            "dimensions");
  EXPECT_EQ(wrong_part(path, header({0x10000, 0x10000}), 1 << 20), "dimensions");
  EXPECT_EQ(wrong_part(path, header({3}) + "ab"), "size");
  EXPECT_EQ(wrong_part(path, header({3}) + "abcd"), "size");
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
    std::string broken = whole;
    broken[i / 8] = static_cast<char>(broken[i / 8] ^ (1 << (i % 8)));
    if (!wrong_part(folder / "x", broken).empty()) {
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

TEST(Idx, BytesAfterTheGzipStreamAreRefused) {
  const TempDir folder;
  const std::string whole = gzip(folder, at::arange(50).to(at::kByte));
  EXPECT_EQ(wrong_part(folder / "x", whole + "tail"), "gzip");
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

TEST(Idx, GzipThatHoldsMoreOrLessThanItsHeaderSaysIsRefused) {
  const TempDir folder;
  EXPECT_EQ(wrong_part(folder / "x", deflated(header({4}) + "abcd")), "");
  EXPECT_EQ(wrong_part(folder / "x", deflated(header({4}) + "abc")), "values");
  EXPECT_EQ(wrong_part(folder / "x", deflated(header({4}) + "abcde")), "values");
  EXPECT_EQ(wrong_part(folder / "x", deflated(header({4}) + std::string(1'000'000, 'a'))),
            "values");
}

TEST(Idx, ClaimThatNoCompressionCouldReachIsRefusedBeforeItIsAllocated) {
  const TempDir folder;
  EXPECT_EQ(wrong_part(folder / "x", deflated(header({0x40000000}) + "abc")), "size");
}

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
  EXPECT_TRUE(at::equal(data->get({indices}).input[0][0], images[3]));
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
