// TFRecord files by name: pictures and numbers with labels, splits of their own, hostile files.
#include "tare/data/tfrecord_samples.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "support/tfrecord_files.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::bytes_feature;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::example_of;
using testing::floats_feature;
using ::testing::HasSubstr;
using testing::ints_feature;
using ::testing::Not;
using testing::TempDir;
using testing::write_tf_records;

class TfSamples : public ::testing::Test {
 protected:
  /// Generated digits as PNG files, so many from `first` on.
  void write_pictures(const std::string& name, int64_t first, int64_t count) const {
    const DigitImages digits = generate_digits({.count = 60, .size = 12});
    std::vector<std::string> examples;
    for (int64_t i = first; i < first + count; ++i)
      examples.push_back(example_of({{"image", bytes_feature(encode_png(digits.images[i]))},
                                     {"label", ints_feature({digits.labels[i].item<int64_t>()})}}));
    write_tf_records(folder_ / name, examples);
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  /// Returns the error for a file with a good example and one of these features, or "accepted".
  [[nodiscard]] std::string problem(const std::vector<testing::NamedFeature>& features,
                                    DataOptions options = {}) const {
    const auto good = example_of({{"image", floats_feature({1, 2})}, {"label", ints_feature({0})}});
    write_tf_records(folder_ / "x", {good, example_of(features)});
    options.name = "tfrecord";
    options.files = {path("x")};
    options.train = 1;
    options.valid = 0;
    try {
      (void)datasets::make(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  TempDir folder_;
};

TEST_F(TfSamples, PicturesAreReadFromFilesAndFolders) {
  fs::create_directory(folder_ / "parts");
  write_pictures("parts/d.tfrecord-00001-of-00002", 20, 20);
  write_pictures("parts/d.tfrecord-00000-of-00002", 0, 20);
  io::write_atomically(folder_ / "parts/README", "no records");
  write_pictures("more", 40, 20);
  const auto named = datasets::make({.name = "tfrecord",
                                     .files = {path("parts"), path("more")},
                                     .num_parallel_reads = 3,
                                     .train = 1,
                                     .valid = 0});
  const DigitImages digits = generate_digits({.count = 60, .size = 12});
  EXPECT_EQ(named.splits.train->size(), 60);
  EXPECT_EQ(named.splits.train->sample_shape(), (std::vector<int64_t>{1, 12, 12}));
  EXPECT_EQ(named.splits.train->labels().size(), 10U);
  EXPECT_THAT(named.description, AllOf(HasSubstr("60 examples of"), HasSubstr("train 60")));
  EXPECT_TRUE(at::equal(std::get<0>(named.splits.train->targets().sort()),
                        std::get<0>(digits.labels.sort())));
}

TEST_F(TfSamples, SplitsOfTheirOwnHaveTheSameClasses) {
  write_pictures("train", 0, 40);
  write_pictures("valid", 40, 10);
  write_pictures("test", 50, 3);
  DataOptions options{.name = "tfrecord",
                      .size = 8,
                      .files = {path("train")},
                      .valid_files = {path("valid")},
                      .test_files = {path("test")}};
  const auto named = datasets::make(options);
  EXPECT_EQ(named.splits.train->size(), 40) << "all of it is trained on";
  EXPECT_EQ(named.splits.valid->size(), 10);
  EXPECT_EQ(named.splits.test->size(), 3);
  EXPECT_EQ(named.splits.test->labels(), named.splits.train->labels());
  EXPECT_EQ(named.splits.test->sample_shape(), (std::vector<int64_t>{1, 8, 8}));
  ASSERT_NE(named.splits.train->transforms(), nullptr);
  EXPECT_EQ(named.splits.train->transforms()->steps().front(),
            Transform(Resize{.height = 8, .width = 8, .round = true}));
  options.fit = "crop";
  EXPECT_EQ(datasets::make(options).splits.train->transforms()->steps(),
            std::vector{Transform(Resize{.height = 8, .width = 8, .round = true, .fit = "crop"})});
  EXPECT_EQ(named.identity.samples, 53);
  options.test_files = {path("valid")};
  try {
    (void)datasets::make(options);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("test_files has a file that is there twice"));
  }
  options.test_files.clear();
  options.valid_files.clear();
  EXPECT_EQ(datasets::make(options).splits.valid->size(), 8) << "a fifth";
}

TEST_F(TfSamples, AChangedPictureOfAnySplitIsADifferenceInContent) {
  const DataOptions options{.name = "tfrecord",
                            .files = {path("train")},
                            .valid_files = {path("valid")},
                            .test_files = {path("test")}};
  const auto content = [&] { return datasets::make(options).identity.content; };
  write_pictures("train", 0, 10);
  write_pictures("valid", 10, 5);
  write_pictures("test", 15, 5);
  const std::string before = content();
  EXPECT_EQ(content(), before);
  std::vector<std::string> seen{before};
  for (const char* part : {"train", "valid", "test"}) {
    write_pictures(part, 40, part == std::string("train") ? 10 : 5);
    EXPECT_THAT(seen, Not(Contains(content()))) << part;
    seen.push_back(content());
  }
}

TEST_F(TfSamples, NumbersAndRawBytesHaveTheShapeThatIsGiven) {
  std::vector<std::string> rows, raw;
  for (int64_t i = 0; i < 10; ++i) {
    const auto value = static_cast<float>(i);
    rows.push_back(
        example_of({{"x", floats_feature({value, 1, 2, 3})}, {"y", floats_feature({value / 2})}}));
    raw.push_back(example_of({{"image", bytes_feature(std::string(6, static_cast<char>(i)))},
                              {"label", ints_feature({i % 2})}}));
  }
  write_tf_records(folder_ / "rows", rows);
  write_tf_records(folder_ / "raw", raw);
  const auto numbers = datasets::make({.name = "tfrecord",
                                       .files = {path("rows")},
                                       .input = "x",
                                       .label = "y",
                                       .train = 1,
                                       .valid = 0})
                           .splits.train;
  EXPECT_EQ(numbers->sample_shape(), (std::vector<int64_t>{4}));
  EXPECT_EQ(numbers->targets().scalar_type(), at::kFloat);
  EXPECT_TRUE(numbers->labels().empty());
  const auto bytes =
      datasets::make(
          {.name = "tfrecord", .files = {path("raw")}, .shape = {1, 2, 3}, .train = 1, .valid = 0})
          .splits.train;
  EXPECT_EQ(bytes->sample_shape(), (std::vector<int64_t>{1, 2, 3}));
}

TEST_F(TfSamples, WhatIsWrongWithARecordIsSaidWithPathAndRecord) {
  const auto image = floats_feature({1, 2}), label = ints_feature({0});
  const std::string place = path("x") + ": record 1: ";
  EXPECT_EQ(problem({{"image", image}, {"label", label}}), "accepted");
  EXPECT_THAT(
      problem({{"imgae", image}, {"label", label}}),
      AllOf(HasSubstr(place + "feature 'image' is not in the example"), HasSubstr("did you mean")));
  EXPECT_THAT(problem({{"image", image}}), HasSubstr(place + "feature 'label'"));
  EXPECT_THAT(problem({{"image", floats_feature({1, 2, 3})}, {"label", label}}),
              AllOf(HasSubstr("record 1 of " + path("x")), HasSubstr("one shape")));
  EXPECT_THAT(problem({{"image", floats_feature({1, 2, 3})}, {"label", label}}, {.shape = {2}}),
              HasSubstr(place + "feature 'image' has 3 numbers, and the shape [2] needs 2"));
  EXPECT_THAT(problem({{"image", floats_feature({})}, {"label", label}}),
              HasSubstr(place + "feature 'image' is empty"));
  EXPECT_THAT(problem({{"image", bytes_feature("ab")}, {"label", label}}),
              HasSubstr(place + "feature 'image' is no PNG file"));
  EXPECT_THAT(problem({{"image", bytes_feature("\x89PNG\r\n\x1a\n")}, {"label", label}}),
              HasSubstr(place));
  EXPECT_THAT(problem({{"image", image}, {"label", label}}, {.channels = 3}),
              AllOf(HasSubstr("channels is for PNG pictures, and the feature 'image' has none"),
                    Not(HasSubstr("record 0"))))
      << "the cause is in the options, not in a file";
  EXPECT_THAT(problem({{"image", image}, {"label", bytes_feature("cat")}}),
              HasSubstr(place + "feature 'label' is a text"));
  for (const int64_t wrong : {int64_t{-1}, int64_t{65536}, INT64_MAX})
    EXPECT_THAT(problem({{"image", image}, {"label", ints_feature({wrong})}}),
                HasSubstr(place + "feature 'label' must be a class from 0 to 65535"));
  EXPECT_THAT(problem({{"image", image}, {"label", floats_feature({0})}}),
              HasSubstr("record 1 of " + path("x")))
      << "another type";
}

TEST_F(TfSamples, ADamagedFileIsNamedWithItsRecord) {
  write_pictures("x", 0, 3);
  std::string bytes = io::read_text(folder_ / "x");
  bytes[bytes.size() - 20] = static_cast<char>(bytes[bytes.size() - 20] ^ 1);
  io::write_atomically(folder_ / "x", bytes);
  try {
    (void)datasets::make({.name = "tfrecord", .files = {path("x")}});
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path("x") + ": record 2: the checksum of its bytes"));
  }
}

TEST_F(TfSamples, WrongOptionsAreRefusedByName) {
  const auto field = [](const DataOptions& options) {
    try {
      datasets::check_files(options);
      (void)datasets::make(options);
    } catch (const ConfigError& error) {
      return error.field();
    }
    return std::string("accepted");
  };
  fs::create_directory(folder_ / "empty");
  write_pictures("x", 0, 10);
  EXPECT_EQ(field({.name = "tfrecord"}), "files");
  EXPECT_EQ(field({.name = "tfrecord", .files = {path("x"), path("absent")}}), "files.1");
  EXPECT_EQ(field({.name = "tfrecord", .files = {path("x")}, .valid_files = {path("y")}}),
            "valid_files.0");
  EXPECT_EQ(field({.name = "tfrecord", .files = {path("x"), path("empty")}}), "files.1");
  EXPECT_EQ(field({.name = "tfrecord", .folder = path("x")}), "folder");
  write_tf_records(folder_ / "rows",
                   {example_of({{"image", floats_feature({1, 2})}, {"label", ints_feature({0})}})});
  EXPECT_EQ(field({.name = "tfrecord", .files = {path("x")}, .valid_files = {path("rows")}}),
            "valid_files");
  EXPECT_EQ(field({.name = "tfrecord", .files = {path("x")}, .test_files = {path("rows")}}),
            "test_files");
  EXPECT_EQ(field({.name = "tfrecord",
                   .files = {path("rows")},
                   .train = 1,
                   .valid = 0,
                   .transforms = Transforms{Flip{}}}),
            "transforms");
  EXPECT_EQ(field({.name = "generated_digits", .input = "x"}), "input");
  EXPECT_EQ(field({.name = "tfrecord", .files = {path("x")}, .num_parallel_reads = 0}),
            "num_parallel_reads");
}

TEST_F(TfSamples, AFileWithoutRecordsIsNamed) {
  write_pictures("x", 0, 10);
  io::write_atomically(folder_ / "none", "");
  ::testing::internal::CaptureStderr();
  const auto named = datasets::make({.name = "tfrecord", .files = {path("none"), path("x")}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr('\'' + path("none") + "' holds no record"));
}

}  // namespace
}  // namespace tare
