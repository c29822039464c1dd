// Folders of pictures as data sets, and what is wrong with some.
#include "tare/data/image_folder.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/loader.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;

at::Tensor plain(int64_t value, int64_t height = 4, int64_t width = 6, int64_t channels = 1) {
  return at::full({channels, height, width}, value, at::kByte);
}

void add(const std::filesystem::path& path, const at::Tensor& image) {
  io::make_directories(path.parent_path());
  write_png(path, image);
}

at::Tensor first_pixels(const DatasetPtr& data) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < data->size(); ++i) all.push_back(i);
  return data->get({all}).input().select(1, 0).select(1, 0).select(1, 0).contiguous();
}

TEST(ImageFolder, SubfoldersAreClassesInTheOrderOfTheirNames) {
  const TempDir folder;
  add(folder / "dog/b.PNG", plain(3));
  add(folder / "cat/2.png", plain(2));
  add(folder / "cat/1.png", plain(1));
  add(folder / ".hidden/1.png", plain(9));
  io::write_atomically(folder / "cat/notes.txt", "no image");
  io::write_atomically(folder / "readme.txt", "no class");
  const DatasetPtr data = image_folder(folder.path());
  EXPECT_THAT(data->labels(), ElementsAre("cat", "dog"));
  EXPECT_TRUE(at::equal(data->targets(), at::tensor({0, 0, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(first_pixels(data), at::tensor({1, 2, 3}, at::kByte)));
  EXPECT_THAT(data->sample_shape(), ElementsAre(1, 4, 6));
}

TEST(ImageFolder, NamesSamplesByTheirFilesThroughEveryDecorator) {
  const TempDir folder;
  for (const char* file : {"cat/1.png", "cat/2.png", "dog/1.png"}) add(folder / file, plain(1));
  const DatasetPtr data = image_folder(folder.path());
  EXPECT_EQ(data->sample_name(1), "cat/2.png");
  EXPECT_EQ(image_folder(folder.path() / "")->sample_name(1), "cat/2.png");
  EXPECT_THROW((void)data->sample_name(3), ConfigError);
  const DatasetPtr some = subset(transformed(data, {Flip{1}}), {2, 0});
  EXPECT_EQ(some->sample_name(0), "dog/1.png");
  EXPECT_THROW((void)some->sample_name(2), ConfigError);
  const DatasetPtr mapped = map(some, [](Batch batch) { return batch; });
  for (const DatasetPtr& other : {mapped, transformed(mapped, {Flip{1}}), cache(mapped)})
    EXPECT_EQ(other->sample_name(1), "cat/1.png");
  EXPECT_EQ(cache(tensor_dataset(plain(1)))->sample_name(0), "") << "without a file";
}

TEST(ImageFolder, ChannelsFollowTheFirstFileOrTheOptions) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7, 4, 6, 3));
  add(folder / "a/2.png", plain(8));
  EXPECT_THAT(image_folder(folder.path())->sample_shape(), ElementsAre(3, 4, 6));
  EXPECT_THAT(image_folder(folder.path(), {.channels = 1})->sample_shape(), ElementsAre(1, 4, 6));
}

TEST(ImageFolder, SizesMustAgreeUnlessResized) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7));
  add(folder / "a/2.png", plain(8, 5, 6));
  try {
    (void)image_folder(folder.path());
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), (folder / "a/2.png").string());
    EXPECT_THAT(error.what(), HasSubstr("resize"));
  }
  const DatasetPtr data = image_folder(folder.path(), {.height = 3, .width = 2});
  EXPECT_THAT(data->sample_shape(), ElementsAre(1, 3, 2));
  EXPECT_TRUE(at::equal(first_pixels(data), at::tensor({7, 8}, at::kByte)));
}

TEST(ImageFolder, WithoutSubfoldersThePicturesHaveNoLabels) {
  const TempDir folder;
  add(folder / "2.png", plain(2));
  add(folder / "1.png", plain(1));
  add(folder / ".3.png", plain(3));
  io::write_atomically(folder / "notes.txt", "no image");
  const DatasetPtr data = image_folder(folder.path());
  EXPECT_TRUE(data->labels().empty());
  EXPECT_FALSE(data->targets().defined());
  EXPECT_TRUE(at::equal(first_pixels(data), at::tensor({1, 2}, at::kByte)));
}

TEST(ImageFolder, SaysHowItResizedItsFiles) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7));
  add(folder / "a/2.png", plain(8, 5, 6));
  const Resize resize{.height = 4, .width = 6, .round = true};
  const DatasetPtr data = image_folder(folder.path(), {.height = 4, .width = 6});
  ASSERT_NE(data->transforms(), nullptr);
  EXPECT_EQ(*data->transforms(), Transforms{resize});
  const DatasetPtr smaller = transformed(data, {Resize{2, 3}, Flip{1}});
  EXPECT_EQ(*smaller->transforms(), (Transforms{resize, Resize{2, 3}, Flip{1}}));
  const std::vector<int64_t> second{1};
  EXPECT_TRUE(at::equal(
      smaller->get({second}).input(),
      smaller->transforms()->apply(read_png(folder / "a/2.png").unsqueeze(0), {}, false)));
  EXPECT_EQ(*data->transforms(), Transforms{resize});
  io::remove_all(folder / "a/2.png");
  EXPECT_EQ(image_folder(folder.path())->transforms(), nullptr);
  EXPECT_EQ(*image_folder(folder.path(), {.height = 4, .width = 6})->transforms(),
            Transforms{resize})
      << "whatever the size of the files";
}

TEST(ImageFolder, FitsPicturesOfSeveralShapes) {
  const TempDir folder;
  const std::vector<at::Tensor> pictures{at::randint(256, {1, 9, 5}).to(at::kByte),
                                         at::randint(256, {1, 4, 11}).to(at::kByte)};
  add(folder / "a/1.png", pictures[0]);
  add(folder / "b/2.png", pictures[1]);
  for (const std::string fit : {"stretch", "crop", "pad"})
    for (const std::optional<int64_t> cache : {std::optional<int64_t>(), {0}, {1 << 20}}) {
      const DatasetPtr data =
          image_folder(folder.path(), {.height = 6, .width = 4, .fit = fit, .cache_bytes = cache});
      for (const int64_t i : {0, 1, 1}) {
        const std::vector<int64_t> index{i};
        const at::Tensor& picture = pictures[static_cast<size_t>(i)];
        EXPECT_TRUE(
            at::equal(data->get({index}).input()[0], resize_image(picture, 6, 4, true, fit)))
            << fit;
        const at::Tensor again = data->transforms()->apply(picture.unsqueeze(0), {}, false);
        EXPECT_TRUE(at::equal(again.mul(255).round().to(at::kByte), data->get({index}).input()))
            << "what a bundle does to the file; " << fit;
      }
    }
  EXPECT_THROW((void)image_folder(folder.path(), {.fit = "crop"}), ConfigError);
  EXPECT_THROW((void)image_folder(folder.path(), {.height = 6, .width = 4, .fit = "squash"}),
               ConfigError);
}

TEST(ImageFolder, WrongFoldersAreRefused) {
  const TempDir folder;
  EXPECT_THROW((void)image_folder(folder / "missing"), IoError);
  EXPECT_THROW((void)image_folder(folder.path()), ConfigError);
  io::make_directories(folder / "empty");
  EXPECT_THROW((void)image_folder(folder.path()), ConfigError);
  io::write_atomically(folder / "empty/broken.png", "no image");
  EXPECT_THROW((void)image_folder(folder.path()), FormatError);
  EXPECT_THROW((void)image_folder(folder.path(), {.height = 3}), ConfigError);
  io::write_atomically(folder / "empty/broken.png", "");
  const auto problem = [&]() -> std::string {
    try {
      (void)image_folder(folder.path());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(problem(), HasSubstr((folder / "empty/broken.png").string() +
                                   ": header: is missing: the file is empty"));
  io::remove_all(folder / "empty/broken.png");
  add(folder / "empty/a.png", plain(7));
  std::filesystem::create_symlink(folder / "absent.png", folder / "empty/link.png");
  EXPECT_THAT(problem(), HasSubstr("empty/link.png"));
  io::remove_all(folder / "empty/link.png");
  std::filesystem::create_symlink("circle.png", folder / "empty/circle.png");
  EXPECT_THAT(problem(), HasSubstr("empty/circle.png"));
  io::remove_all(folder / "empty/circle.png");
  EXPECT_EQ(problem(), "accepted");
  std::filesystem::create_symlink(folder / "absent", folder / "cats");
  EXPECT_THAT(problem(), HasSubstr("/cats")) << "which would be a class";
}

std::string warnings_of(const std::filesystem::path& folder,
                        const ImageFolderOptions& options = {}) {
  ::testing::internal::CaptureStderr();
  (void)image_folder(folder, options);
  return ::testing::internal::GetCapturedStderr();
}

TEST(ImageFolder, SaysWhichFilesAreLeftOutAndWhichPicturesAreConverted) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7));
  add(folder / "a/2.png", plain(8));
  EXPECT_THAT(warnings_of(folder.path()), Not(HasSubstr("skipped")));
  add(folder / "b/3.png", plain(9, 4, 6, 3));
  io::write_atomically(folder / "a/notes.txt", "x");
  io::write_atomically(folder / "b/4.gif", "x");
  io::write_atomically(folder / "b/.hidden", "x");
  const std::string text = warnings_of(folder.path());
  EXPECT_THAT(text, HasSubstr("2 files of " + folder.path().string() + " are skipped"));
  EXPECT_THAT(text, HasSubstr("only .png, .jpg, .jpeg and .webp files are read: a/notes.txt, ..."));
  EXPECT_THAT(text, HasSubstr("1 of 3 pictures of " + folder.path().string() +
                              " are RGB and are converted to grey"));
  EXPECT_THAT(warnings_of(folder.path(), {.channels = 3}), Not(HasSubstr("converted")));
  add(folder / "a/deep/5.png", plain(1));
  EXPECT_THAT(warnings_of(folder.path()),
              HasSubstr("1 file of " + folder.path().string() +
                        " is skipped, because only files directly in the folder of a class are "
                        "read: a/deep/5.png"));
}

TEST(ImageFolder, AFolderWithoutPicturesSaysWhichLayoutItWants) {
  const TempDir folder;
  try {
    (void)image_folder(folder.path());
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.field(), "folder");
    EXPECT_THAT(error.what(), HasSubstr((folder / "cat/1.png").string()));
  }
}

TEST(ImageFolder, WhatExceedsTheLimitIsDecodedWhenItIsNeeded) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7));
  add(folder / "a/2.png", plain(8));
  EXPECT_TRUE(image_folder(folder.path(), {.limit_bytes = 48})->in_memory());
  const DatasetPtr streamed = image_folder(folder.path(), {.limit_bytes = 47});
  EXPECT_FALSE(streamed->in_memory());
  EXPECT_THAT(warnings_of(folder.path(), {.limit_bytes = 46}),
              HasSubstr("take 48 B, more than 46 B: each is decoded whenever it is needed"));
  EXPECT_THROW((void)image_folder(folder.path(), {.cache_bytes = -1}), ConfigError);
}

TEST(ImageFolder, FilesOfAllFormatsAreMixed) {
  const TempDir folder;
  const std::filesystem::path golden = std::filesystem::path(TARE_GOLDEN) / "pictures";
  io::make_directories(folder / "a");
  for (const auto& [from, to] : {std::pair("rgb.png", "1.png"),
                                 {"sampled.jpg", "2.JPG"},
                                 {"full.jpeg", "3.jpeg"},
                                 {"lossy.webp", "4.WebP"}})
    std::filesystem::copy(golden / from, folder / "a" / to);
  const DatasetPtr data = image_folder(folder.path());
  EXPECT_EQ(data->size(), 4);
  const std::vector<int64_t> second{1};
  EXPECT_TRUE(at::equal(data->get({second}).input()[0], read_image(golden / "sampled.jpg")));
}

/// Two classes in each split; pictures of different sizes.
void add_splits(const std::filesystem::path& folder, const std::string& valid = "valid") {
  int64_t value = 0;
  for (const auto& [split, count] :
       {std::pair(std::string("train"), 4), {valid, 2}, {std::string("test"), 1}})
    for (const char* label : {"cat", "dog"})
      for (int i = 0; i < count; ++i, ++value)
        add(folder / split / label / (std::to_string(i) + ".png"), plain(value, 4 + value % 3));
}

TEST(ImageFolderSplits, AreThoseOfTheFolder) {
  for (const std::string valid : {"valid", "val"}) {
    const TempDir folder;
    add_splits(folder.path(), valid);
    EXPECT_TRUE(has_image_splits(folder.path()));
    const Splits splits = image_folder_splits(folder.path(), {.height = 4, .width = 6});
    EXPECT_EQ(splits.train->size(), 8);
    EXPECT_EQ(splits.valid->size(), 4);
    EXPECT_EQ(splits.test->size(), 2);
    EXPECT_EQ(splits.valid->sample_name(2), valid + "/dog/0.png");
    EXPECT_TRUE(at::equal(splits.valid->targets(), at::tensor({0, 0, 1, 1}, at::kLong)));
    EXPECT_EQ(image_files(folder.path()).size(), 14U);
    EXPECT_THROW((void)image_folder(folder.path()), ConfigError);
    EXPECT_EQ(image_folder(folder / "train", {.height = 4, .width = 6})->size(), 8);
    EXPECT_THROW((void)image_folder_splits(folder / "train"), ConfigError);
    const datasets::Named named =
        datasets::make({.name = "image_folder", .size = 5, .folder = folder.path().string()});
    EXPECT_EQ(named.splits.train->size(), 8);
    EXPECT_EQ(named.splits.valid->size(), 4);
    EXPECT_EQ(named.splits.test->size(), 2);
    EXPECT_THAT(named.description, HasSubstr("14 images of"));
  }
}

TEST(ImageFolderSplits, WithoutAValidationSplitItIsCutFromTraining) {
  const TempDir folder;
  add_splits(folder.path());
  io::remove_all(folder / "valid");
  EXPECT_EQ(image_folder_splits(folder.path(), {.height = 4, .width = 4}).valid, nullptr);
  const datasets::Named named = datasets::make({.name = "image_folder",
                                                .size = 5,
                                                .folder = folder.path().string(),
                                                .train = 0.5,
                                                .valid = 0.25});
  EXPECT_EQ(named.splits.train->size(), 4);
  EXPECT_EQ(named.splits.valid->size(), 2);
  EXPECT_EQ(named.splits.test->size(), 2);
  EXPECT_THROW(
      (void)datasets::make(
          {.name = "image_folder", .size = 5, .folder = folder.path().string(), .test = 0.1}),
      ConfigError)
      << "the folder has a test split";
}

TEST(ImageFolderSplits, ClassesThatDifferAreNamed) {
  const TempDir folder;
  add_splits(folder.path());
  const auto problem = [&]() -> std::string {
    try {
      (void)image_folder_splits(folder.path(), {.height = 4, .width = 4});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  add(folder / "test/fox/1.png", plain(1));
  EXPECT_THAT(problem(), HasSubstr("has the class 'fox' in test, but not in train"));
  io::remove_all(folder / "test");
  io::remove_all(folder / "valid/dog");
  EXPECT_THAT(problem(), HasSubstr("has the class 'dog' in train, but not in valid"));
  io::remove_all(folder / "valid/cat");
  add(folder / "valid/1.png", plain(1));
  EXPECT_THAT(problem(), HasSubstr("has classes in train, and pictures without classes in valid"));
}

/// The batches of two epochs, with random transforms, from some threads.
std::vector<at::Tensor> epochs_of(const DatasetPtr& data, int64_t workers) {
  const DatasetPtr changed =
      transformed(data, {Shift{1}, Flip{0.5}, Normalise{{0.4}, {0.2}}, Affine{20, 0.1}});
  Loader loader(changed, {.batch = 3, .shuffle = true, .workers = workers, .training = true});
  std::vector<at::Tensor> inputs;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start(epoch);
    for (Batch batch; loader.next(batch);) inputs.push_back(batch.input());
  }
  return inputs;
}

TEST(StreamedImages, AreTheSameWithAnyCacheAndInMemory) {
  const TempDir folder;
  for (int i = 0; i < 8; ++i)
    add(folder / (i % 2 ? "a" : "b") / (std::to_string(i) + ".png"),
        at::randint(0, 256, {3, 9 + i, 12 - i}, at::kByte));
  const auto read = [&](std::optional<int64_t> cache) {
    return image_folder(folder.path(), {.height = 8, .width = 8, .cache_bytes = cache});
  };
  const DatasetPtr in_memory = read(std::nullopt);
  const std::vector<at::Tensor> want = epochs_of(in_memory, 0);
  constexpr int64_t kSample = 3 * 8 * 8;
  for (const int64_t cache : {int64_t{0}, 3 * kSample + 1, 100 * kSample})
    for (const int64_t workers : {0, 3}) {
      const DatasetPtr data = read(cache);
      EXPECT_EQ(*data->transforms(), *in_memory->transforms());
      const std::vector<at::Tensor> got = epochs_of(data, workers);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << cache;
      EXPECT_TRUE(at::equal(get_all(*data).input(), get_all(*in_memory).input()));
      EXPECT_TRUE(at::equal(data->targets(), in_memory->targets()));
    }
}

TEST(StreamedImages, TheCacheTakesItsBytesAndIsReadInPlaceOfTheFiles) {
  const TempDir folder;
  for (int i = 0; i < 4; ++i) add(folder / (std::to_string(i) + ".png"), plain(i));
  const DatasetPtr data = image_folder(folder.path(), {.cache_bytes = 2 * 24 + 5});
  const auto bytes = [&] {
    Ledger ledger;
    data->account(ledger);
    return ledger.bytes(c10::kCPU)[Category::batch];
  };
  EXPECT_EQ(bytes(), 48) << "whole samples";
  const at::Tensor before = get_all(*data).input();
  for (const char* name : {"0.png", "1.png"}) io::remove_all(folder / name);
  EXPECT_TRUE(
      at::equal(data->get({std::vector<int64_t>{1, 0}}).input(), before.slice(0, 0, 2).flip(0)));
  io::remove_all(folder / "2.png");
  EXPECT_THROW((void)data->get({std::vector<int64_t>{2}}), IoError) << "the first two are kept";
  data->clear_cache();
  EXPECT_EQ(bytes(), 0);
  EXPECT_THROW((void)data->get({std::vector<int64_t>{1}}), IoError);
  EXPECT_TRUE(at::equal(data->get({std::vector<int64_t>{3}}).input()[0], plain(3)));
  EXPECT_EQ(bytes(), 48) << "it is filled again";
  const DatasetPtr decorated = subset(transformed(data, {Flip{1}}), {3});
  decorated->clear_cache();
  EXPECT_EQ(bytes(), 0) << "decorators pass it on";
}

TEST(StreamedImages, TheCacheOfSplitsIsSharedByTheirPictures) {
  const TempDir folder;
  add_splits(folder.path());
  const Splits splits =
      image_folder_splits(folder.path(), {.height = 4, .width = 6, .cache_bytes = 7 * 24});
  Ledger ledger;
  for (const DatasetPtr& set : {splits.train, splits.valid, splits.test}) set->account(ledger);
  EXPECT_EQ(ledger.bytes(c10::kCPU)[Category::batch], (4 + 2 + 1) * 24);
}

TEST(StreamedImages, ABadFileIsNamedWhenItIsRead) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7));
  add(folder / "a/2.png", plain(8, 5, 6));
  io::write_atomically(folder / "a/3.jpg", "no picture");
  const DatasetPtr data = image_folder(folder.path(), {.cache_bytes = 0});
  const auto problem = [&](int64_t index) -> std::string {
    try {
      (void)data->get({std::vector<int64_t>{index}});
    } catch (const FormatError& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_EQ(problem(0), "read");
  EXPECT_THAT(problem(1), HasSubstr("a/2.png: size: 6 x 5 pixels are not the 6 x 4 of the first"));
  EXPECT_THAT(problem(2), HasSubstr("a/3.jpg: header"));
}

TEST(StreamedImages, AConvertedPictureIsAWarningOnce) {
  const TempDir folder;
  add(folder / "1.png", plain(7));
  add(folder / "2.png", plain(8, 4, 6, 3));
  const DatasetPtr data = image_folder(folder.path(), {.cache_bytes = 0});
  ::testing::internal::CaptureStderr();
  (void)get_all(*data);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("some of the 2 pictures of " + folder.path().string() +
                        " are RGB and are converted to grey"));
}

}  // namespace
}  // namespace tare
