// Folders of PNG files as data sets, and what is wrong with some.
#include "tare/data/png_folder.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
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

TEST(PngFolder, SubfoldersAreClassesInTheOrderOfTheirNames) {
  const TempDir folder;
  add(folder / "dog/b.PNG", plain(3));
  add(folder / "cat/2.png", plain(2));
  add(folder / "cat/1.png", plain(1));
  add(folder / ".hidden/1.png", plain(9));
  io::write_atomically(folder / "cat/notes.txt", "no image");
  io::write_atomically(folder / "readme.txt", "no class");
  const DatasetPtr data = png_folder(folder.path());
  EXPECT_THAT(data->labels(), ElementsAre("cat", "dog"));
  EXPECT_TRUE(at::equal(data->targets(), at::tensor({0, 0, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(first_pixels(data), at::tensor({1, 2, 3}, at::kByte)));
  EXPECT_THAT(data->sample_shape(), ElementsAre(1, 4, 6));
}

TEST(PngFolder, NamesSamplesByTheirFilesThroughEveryDecorator) {
  const TempDir folder;
  for (const char* file : {"cat/1.png", "cat/2.png", "dog/1.png"}) add(folder / file, plain(1));
  const DatasetPtr data = png_folder(folder.path());
  EXPECT_EQ(data->sample_name(1), "cat/2.png");
  EXPECT_EQ(png_folder(folder.path() / "")->sample_name(1), "cat/2.png");
  EXPECT_THROW((void)data->sample_name(3), ConfigError);
  const DatasetPtr some = subset(transformed(data, {Flip{1}}), {2, 0});
  EXPECT_EQ(some->sample_name(0), "dog/1.png");
  EXPECT_THROW((void)some->sample_name(2), ConfigError);
  const DatasetPtr mapped = map(some, [](Batch batch) { return batch; });
  for (const DatasetPtr& other : {mapped, transformed(mapped, {Flip{1}}), cache(mapped)})
    EXPECT_EQ(other->sample_name(1), "cat/1.png");
  EXPECT_EQ(cache(tensor_dataset(plain(1)))->sample_name(0), "") << "without a file";
}

TEST(PngFolder, ChannelsFollowTheFirstFileOrTheOptions) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7, 4, 6, 3));
  add(folder / "a/2.png", plain(8));
  EXPECT_THAT(png_folder(folder.path())->sample_shape(), ElementsAre(3, 4, 6));
  EXPECT_THAT(png_folder(folder.path(), {.channels = 1})->sample_shape(), ElementsAre(1, 4, 6));
}

TEST(PngFolder, SizesMustAgreeUnlessResized) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7));
  add(folder / "a/2.png", plain(8, 5, 6));
  try {
    (void)png_folder(folder.path());
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), (folder / "a/2.png").string());
    EXPECT_THAT(error.what(), HasSubstr("resize"));
  }
  const DatasetPtr data = png_folder(folder.path(), {.height = 3, .width = 2});
  EXPECT_THAT(data->sample_shape(), ElementsAre(1, 3, 2));
  EXPECT_TRUE(at::equal(first_pixels(data), at::tensor({7, 8}, at::kByte)));
}

TEST(PngFolder, WithoutSubfoldersThePicturesHaveNoLabels) {
  const TempDir folder;
  add(folder / "2.png", plain(2));
  add(folder / "1.png", plain(1));
  add(folder / ".3.png", plain(3));
  io::write_atomically(folder / "notes.txt", "no image");
  const DatasetPtr data = png_folder(folder.path());
  EXPECT_TRUE(data->labels().empty());
  EXPECT_FALSE(data->targets().defined());
  EXPECT_TRUE(at::equal(first_pixels(data), at::tensor({1, 2}, at::kByte)));
}

TEST(PngFolder, SaysHowItResizedItsFiles) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7));
  add(folder / "a/2.png", plain(8, 5, 6));
  const Resize resize{.height = 4, .width = 6, .round = true};
  const DatasetPtr data = png_folder(folder.path(), {.height = 4, .width = 6});
  ASSERT_NE(data->transforms(), nullptr);
  EXPECT_EQ(*data->transforms(), Transforms{resize});
  const DatasetPtr smaller = transformed(data, {Resize{2, 3}, Flip{1}});
  EXPECT_EQ(*smaller->transforms(), (Transforms{resize, Resize{2, 3}, Flip{1}}));
  const std::vector<int64_t> second{1};
  EXPECT_TRUE(at::equal(
      smaller->get({second}).input(),
      smaller->transforms()->apply(read_png(folder / "a/2.png").unsqueeze(0), {}, false)));
  io::remove_all(folder / "a/2.png");
  EXPECT_EQ(png_folder(folder.path(), {.height = 4, .width = 6})->transforms(), nullptr)
      << "every file has that size";
}

TEST(PngFolder, WrongFoldersAreRefused) {
  const TempDir folder;
  EXPECT_THROW((void)png_folder(folder / "missing"), IoError);
  EXPECT_THROW((void)png_folder(folder.path()), ConfigError);
  io::make_directories(folder / "empty");
  EXPECT_THROW((void)png_folder(folder.path()), ConfigError);
  io::write_atomically(folder / "empty/broken.png", "no image");
  EXPECT_THROW((void)png_folder(folder.path()), FormatError);
  EXPECT_THROW((void)png_folder(folder.path(), {.height = 3}), ConfigError);
  io::write_atomically(folder / "empty/broken.png", "");
  const auto problem = [&]() -> std::string {
    try {
      (void)png_folder(folder.path());
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

std::string warnings_of(const std::filesystem::path& folder, const PngFolderOptions& options = {}) {
  ::testing::internal::CaptureStderr();
  (void)png_folder(folder, options);
  return ::testing::internal::GetCapturedStderr();
}

TEST(PngFolder, SaysWhichFilesAreLeftOutAndWhichPicturesAreConverted) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7));
  add(folder / "a/2.png", plain(8));
  EXPECT_THAT(warnings_of(folder.path()), Not(HasSubstr("skipped")));
  add(folder / "b/3.png", plain(9, 4, 6, 3));
  io::write_atomically(folder / "a/notes.txt", "x");
  io::write_atomically(folder / "b/4.jpg", "x");
  io::write_atomically(folder / "b/.hidden", "x");
  const std::string text = warnings_of(folder.path());
  EXPECT_THAT(text, HasSubstr("2 files of " + folder.path().string() + " are skipped"));
  EXPECT_THAT(text, HasSubstr("only .png files are read: a/notes.txt, ..."));
  EXPECT_THAT(text, HasSubstr("1 of 3 pictures of " + folder.path().string() +
                              " are RGB and are converted to grey"));
  EXPECT_THAT(warnings_of(folder.path(), {.channels = 3}), Not(HasSubstr("converted")));
  add(folder / "a/deep/5.png", plain(1));
  EXPECT_THAT(warnings_of(folder.path()),
              HasSubstr("1 file of " + folder.path().string() +
                        " is skipped, because only files directly in the folder of a class are "
                        "read: a/deep/5.png"));
}

TEST(PngFolder, AFolderWithoutPicturesSaysWhichLayoutItWants) {
  const TempDir folder;
  try {
    (void)png_folder(folder.path());
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.field(), "folder");
    EXPECT_THAT(error.what(), HasSubstr((folder / "cat/1.png").string()));
  }
}

TEST(PngFolder, MemoryLimitHolds) {
  const TempDir folder;
  add(folder / "a/1.png", plain(7));
  add(folder / "a/2.png", plain(8));
  EXPECT_EQ(png_folder(folder.path(), {.limit_bytes = 48})->size(), 2);
  EXPECT_THROW((void)png_folder(folder.path(), {.limit_bytes = 47}), ConfigError);
}

}  // namespace
}  // namespace tare
