// TFRecord files: those that tests/golden/tfrecord.py has written, damaged ones and hostile ones.
#include "tare/data/tfrecord.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/protobuf.h"

namespace tare {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using testing::TempDir;

const fs::path kGolden = fs::path(TARE_GOLDEN) / "examples.tfrecord";

std::string record_of(std::string_view bytes) {
  const auto number = [](auto value) {
    std::string text(sizeof value, '\0');
    std::memcpy(text.data(), &value, sizeof value);
    return text;
  };
  const std::string length = number(static_cast<uint64_t>(bytes.size()));
  return length + number(masked_crc32c(length)) + std::string(bytes) + number(masked_crc32c(bytes));
}

std::vector<std::string> records_of(const fs::path& path, int64_t limit = kMaxTfRecordBytes) {
  TfRecordReader reader(path, limit);
  std::vector<std::string> all;
  while (auto record = reader.next()) all.push_back(std::move(*record));
  return all;
}

/// The message of a file that is refused; "" for one that is read.
std::string problem_with(const fs::path& path, std::string_view bytes) {
  io::File(path, io::Mode::create).write(bytes);
  try {
    for (const auto& record : records_of(path)) (void)parse_tf_example(record, path.string());
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), path.string());
    return error.what();
  }
  return "";
}

TEST(TfRecord, ChecksumsAreThoseOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(masked_crc32c(""), 0xa282ead8U);
}

TEST(TfRecord, ReadsWhatPythonHasWrittenPlainAndGzip) {
  for (const auto& path : {kGolden, fs::path(kGolden.string() + ".gz")}) {
    const auto records = records_of(path);
    ASSERT_EQ(records.size(), 4U) << path;
    const TfExample third = parse_tf_example(records[2], path.string());
    EXPECT_EQ(third.features().size(), 5U);
    EXPECT_THAT(third.feature("image").floats,
                ElementsAre(FloatEq(3), FloatEq(3.25F), FloatEq(-3), FloatEq(3e-3F)));
    EXPECT_EQ(third.integer("label"), 2);
    EXPECT_EQ(third.bytes("name"), "größe 3");
    EXPECT_THAT(third.feature("ids").ints, ElementsAre(INT64_MAX, -3));
    EXPECT_THAT(third.feature("scale").floats, ElementsAre(0.5F));
    EXPECT_TRUE(
        at::equal(third.tensor("ids", {2}), at::tensor({static_cast<float>(INT64_MAX), -3.0F})));
    EXPECT_THROW((void)third.feature("lable"), ConfigError);
    EXPECT_THROW((void)third.integer("name"), ConfigError);
    EXPECT_THROW((void)third.bytes("ids"), ConfigError);
    EXPECT_THROW((void)third.tensor("image", {3}), ConfigError);
  }
}

Batch sample_of(const TfExample& example) {
  return {example.tensor("image", {2, 2}), at::scalar_tensor(example.integer("label"), at::kLong)};
}

TEST(TfRecord, FilesAreOneDataSetInTheirOrderWhoeverReadsThem) {
  const TempDir folder;
  std::vector<fs::path> files;
  for (int i = 0; i < 9; ++i) {
    files.push_back(folder / ("part" + std::to_string(i)));
    fs::copy_file(i % 2 == 0 ? kGolden : fs::path(kGolden.string() + ".gz"), files.back());
  }
  const auto one = tfrecord_dataset(files, sample_of);
  EXPECT_EQ(one->size(), 36);
  EXPECT_THAT(one->sample_shape(), ElementsAre(2, 2));
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto several = tfrecord_dataset(files,
                                        [&](const TfExample& example) {
                                          std::unique_lock lock(mutex);
                                          threads.insert(std::this_thread::get_id());
                                          lock.unlock();
                                          std::this_thread::yield();
                                          return sample_of(example);
                                        },
                                        {.parallel_reads = 4});
  EXPECT_LE(threads.size(), 4U);
  EXPECT_GE(threads.size(), 1U);
  EXPECT_TRUE(at::equal(one->targets(), several->targets()));
  EXPECT_TRUE(at::equal(one->targets().slice(0, 0, 4), at::tensor({0, 1, 2, 3}, at::kLong)));
  const std::vector<int64_t> indices{35, 0};
  EXPECT_TRUE(
      at::equal(one->get({indices, 0, false}).input(), several->get({indices, 0, false}).input()));
}

TEST(TfRecord, EveryFileIsReadByAThreadOfItsOwnWhereThereAreSoMany) {
  const TempDir folder;
  std::vector<fs::path> files;
  for (int i = 0; i < 2; ++i) {
    files.push_back(folder / std::to_string(i));
    fs::copy_file(kGolden, files.back());
  }
  std::atomic<int> begun = 0;
  // Each waits for the other: one thread would wait for ever.
  const auto data = tfrecord_dataset(files,
                                     [&](const TfExample& example) {
                                       if (example.integer("label") == 0) ++begun;
                                       while (begun < 2) std::this_thread::yield();
                                       return sample_of(example);
                                     },
                                     {.parallel_reads = 2});
  EXPECT_EQ(data->size(), 8);
}

TEST(TfRecord, WhatMakesNoDataSetIsRefused) {
  const TempDir folder;
  io::write_atomically(folder / "empty", "");
  EXPECT_THROW((void)tfrecord_dataset({}, sample_of), ConfigError);
  EXPECT_THROW((void)tfrecord_dataset({folder / "empty"}, sample_of), ConfigError);
  EXPECT_EQ(tfrecord_dataset({folder / "empty", kGolden}, sample_of)->size(), 4);
  EXPECT_THROW((void)tfrecord_dataset({kGolden}, sample_of, {.parallel_reads = 0}), ConfigError);
  EXPECT_THROW((void)tfrecord_dataset({folder / "none"}, sample_of), IoError);
  const auto uneven = [](const TfExample& example) {
    return Batch{at::full({example.integer("label") + 1}, 1.0), {}};
  };
  EXPECT_THROW((void)tfrecord_dataset({kGolden}, uneven), ShapeError);
}

TEST(TfRecord, EveryCutAndEveryChangedByteIsFound) {
  const TempDir folder;
  const std::string whole = io::read_text(kGolden);
  const size_t first = whole.size() / 4;
  EXPECT_EQ(problem_with(folder / "f", whole), "");
  for (size_t i = 1; i < first; ++i) {
    EXPECT_THAT(problem_with(folder / "f", whole.substr(0, i)),
                AnyOf(HasSubstr("record 0: the file ends inside its"),
                      HasSubstr("record 0: its length is above that of the file")))
        << i;
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_THAT(problem_with(folder / "f", changed), HasSubstr("record 0: the checksum of its"))
        << i;
  }
  std::string packed = io::read_text(kGolden.string() + ".gz");
  EXPECT_THAT(problem_with(folder / "f", packed.substr(0, packed.size() / 2)), HasSubstr("gzip"));
  packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 1);
  EXPECT_NE(problem_with(folder / "f", packed), "");
}

TEST(TfRecord, ALengthBeyondLimitOrFileAllocatesNothing) {
  const TempDir folder;
  const std::string long_one = record_of(std::string(5000, 'x'));
  io::write_atomically(folder / "f", long_one);
  EXPECT_EQ(records_of(folder / "f").at(0).size(), 5000U);
  EXPECT_THROW((void)records_of(folder / "f", 4999), FormatError);
  std::string claims(8, '\xff');  // a length with a checksum that is right
  const uint32_t sum = masked_crc32c(claims);
  claims.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  EXPECT_THAT(problem_with(folder / "f", claims), HasSubstr("above the limit of 256 MiB"));
  claims = std::string("\0\0\0\x01\0\0\0\0", 8);
  const uint32_t other = masked_crc32c(claims);
  claims.append(reinterpret_cast<const char*>(&other), sizeof other);
  EXPECT_THAT(problem_with(folder / "f", claims + "x"), HasSubstr("above that of the file"));
}

// Checksums are right, messages are not.
TEST(TfRecord, HostileMessagesAreRefused) {
  const TempDir folder;
  const auto problem = [&](std::string_view message) {
    return problem_with(folder / "f", record_of(message));
  };
  EXPECT_EQ(problem(""), "") << "an example without features";
  EXPECT_THAT(problem("\x0a\x7fshort"), HasSubstr("a field: is longer than its message"));
  EXPECT_THAT(problem("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), HasSubstr("is longer"));
  EXPECT_THAT(problem("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), HasSubstr("64 bits"));
  EXPECT_THAT(problem("\x0a\xff"), HasSubstr("a number: ends too early"));
  EXPECT_THAT(problem("\x0b"), HasSubstr("wire type that is not read"));
  EXPECT_THAT(problem(std::string_view("\x02\x00", 2)), HasSubstr("has the number 0"));
  EXPECT_THAT(problem("\x08\x01"), HasSubstr("Example.features: has another wire type"));
  // Features { feature { value: Feature { float_list { value: 3 bytes } } } }
  EXPECT_THAT(problem("\x0a\x0b\x0a\x09\x12\x07\x12\x05\x0a\x03"
                      "abc"),
              HasSubstr("FloatList.value: is cut"));
}

TEST(TfRecord, ALaterListReplacesOneOfAnotherKind) {
  const TempDir folder;
  // Feature { int64_list { 7 } bytes_list { "a" } }, the name is empty.
  const std::string feature =
      "\x1a\x02\x08\x07\x0a\x03\x0a\x01"
      "a";
  const std::string entry = std::string("\x12") + static_cast<char>(feature.size()) + feature;
  const std::string all = std::string("\x0a") + static_cast<char>(entry.size()) + entry;
  const TfExample example =
      parse_tf_example(std::string("\x0a") + static_cast<char>(all.size()) + all, "f");
  EXPECT_EQ(example.bytes(""), "a");
  EXPECT_TRUE(example.feature("").ints.empty());
}

TEST(ProtobufWriter, WritesWhatTheReaderReads) {
  ProtobufWriter inner, outer;
  inner.bytes(1, "name").real(2, 1.5F).reals(3, std::vector{1.0, 2.0});
  outer.integer(1, 300).integer(2, -1).real(3, 0.5).bytes(16, inner.text());
  EXPECT_EQ(outer.text().substr(0, 3), "\x08\xac\x02") << "300 of the encoding guide";
  const std::string file = "test";
  ProtobufReader reader(outer.text(), "test", file);
  EXPECT_EQ(reader.next()->value, 300U);
  EXPECT_EQ(static_cast<int64_t>(reader.next()->value), -1);
  EXPECT_EQ(reader.next()->bytes, std::string_view("\0\0\0\0\0\0\xe0\x3f", 8));
  const auto field = reader.next();
  EXPECT_EQ(field->number, 16U);
  ProtobufReader below = reader.below(*field, "message");
  EXPECT_EQ(below.next()->bytes, "name");
  std::vector<float> floats;
  below.add_floats(*below.next(), floats, "float");
  EXPECT_THAT(floats, ElementsAre(1.5F));
  EXPECT_EQ(below.next()->bytes.size(), 16U);
  EXPECT_FALSE(reader.next());
}

TEST(TfRecord, AFramedRecordIsReadBack) {
  const TempDir folder;
  EXPECT_EQ(framed_record("abc"), record_of("abc"));
  io::write_atomically(folder / "r", framed_record("abc") + framed_record(""));
  EXPECT_THAT(records_of(folder / "r"), ElementsAre("abc", ""));
}

}  // namespace
}  // namespace tare
