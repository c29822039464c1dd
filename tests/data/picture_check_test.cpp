// What a check of a folder of pictures finds.
#include "tare/data/picture_check.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/image_folder.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TempDir;

void add(const fs::path& path, int64_t value, int64_t height = 4, int64_t channels = 1) {
  io::make_directories(path.parent_path());
  write_png(path, at::full({channels, height, 6}, value, at::kByte));
}

/// "path: problem" of each finding.
std::vector<std::string> lines_of(const std::vector<PictureFinding>& findings) {
  std::vector<std::string> lines;
  for (const auto& [path, problem] : findings) lines.push_back(path + ": " + problem);
  return lines;
}

TEST(PictureCheck, AGoodFolderHasNoFindings) {
  const TempDir folder;
  for (int i = 0; i < 3; ++i) add(folder / "cat" / (std::to_string(i) + ".png"), i);
  for (int i = 0; i < 2; ++i) add(folder / "dog" / (std::to_string(i) + ".png"), 10 + i);
  const PictureCheck check = check_pictures(folder.path() / "");
  EXPECT_THAT(lines_of(check.problems), IsEmpty());
  EXPECT_THAT(lines_of(check.warnings), IsEmpty());
  ASSERT_THAT(check.classes, SizeIs(2));
  EXPECT_EQ(check.classes[0].name, "cat");
  EXPECT_EQ(check.classes[0].pictures, 3);
  EXPECT_EQ(check.pictures, 5);
  EXPECT_EQ(check.formats.at("PNG"), 5);
  EXPECT_EQ(check.channels.at("grey"), 5);
}

TEST(PictureCheck, SizesAreSummedUp) {
  const TempDir folder;
  for (int i = 0; i < 4; ++i) add(folder / (std::to_string(i) + ".png"), i, 3 + i * i);
  const PictureCheck check = check_pictures(folder.path());
  EXPECT_EQ(check.height.least, 3);
  EXPECT_EQ(check.height.median, 4) << "the lower of the two in the middle";
  EXPECT_EQ(check.height.most, 12);
  EXPECT_EQ(check.width.median, 6);
  EXPECT_THAT(lines_of(check.warnings),
              ElementsAre(HasSubstr(".: has no subfolders: its pictures have no labels"),
                          HasSubstr("has pictures of several sizes: the data set needs `size`")));
}

TEST(PictureCheck, WhatTheDataSetRefusesIsAProblem) {
  const TempDir folder;
  add(folder / "cat/1.png", 1);
  add(folder / "dog/1.png", 2);
  const auto problems = [&] { return lines_of(check_pictures(folder.path()).problems); };
  const auto refused = [&] {
    try {
      (void)image_folder(folder.path());
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused());
  const std::string whole = io::read_text(fs::path(TARE_GOLDEN) / "pictures/sampled.jpg");
  io::write_atomically(folder / "cat/cut.jpg", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(problems(), ElementsAre("cat/cut.jpg: header: Premature end of JPEG file"));
  EXPECT_TRUE(refused());
  io::remove_all(folder / "cat/cut.jpg");
  fs::create_symlink("gone.png", folder / "dog/link.png");
  EXPECT_THAT(problems(), ElementsAre("dog/link.png: is a link to nothing"));
  EXPECT_TRUE(refused());
  io::remove_all(folder / "dog/link.png");
  fs::create_symlink("gone", folder / "fox");
  EXPECT_THAT(problems(), ElementsAre("fox: is a link to nothing"));
  EXPECT_TRUE(refused());
  io::remove_all(folder / "fox");
  io::make_directories(folder / "hen");
  EXPECT_THAT(problems(), ElementsAre("hen: is a class without PNG, JPEG or WebP files"));
  EXPECT_TRUE(refused());
  io::remove_all(folder / "hen");
  EXPECT_THAT(problems(), IsEmpty());
}

TEST(PictureCheck, WhatIsReadOrSkippedAllTheSameIsAWarning) {
  const TempDir folder;
  const fs::path golden = fs::path(TARE_GOLDEN) / "pictures";
  add(folder / "cat/1.png", 1, 29, 3);
  fs::copy(golden / "rgb.png", folder / "cat/2.jpg");
  fs::copy(golden / "sampled.jpg", folder / "cat/3.txt");
  io::write_atomically(folder / "cat/notes.txt", "no picture");
  add(folder / "cat/deep/4.png", 4);
  add(folder / "beside.png", 5);
  const PictureCheck check = check_pictures(folder.path());
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_THAT(
      lines_of(check.warnings),
      ElementsAre("beside.png: is skipped: it lies beside the folders of the classes",
                  "cat/2.jpg: is a PNG file, in spite of its extension",
                  "cat/3.txt: is skipped: it is a JPEG file without an extension of one",
                  "cat/deep: is skipped: only files directly in the folder of a class are read",
                  ".: has one class: a model that is trained on it always answers with that class",
                  ".: has pictures of several sizes: the data set needs `size`, to which `fit` "
                  "stretches, crops or pads them"));
}

TEST(PictureCheck, OrientationsThatAreNotAppliedAreOneWarning) {
  const TempDir folder;
  const fs::path golden = fs::path(TARE_GOLDEN) / "pictures";
  for (const char* name : {"a", "b"}) {
    io::make_directories(folder / name);
    fs::copy(golden / "sampled.jpg", folder / name / "1.jpg");
  }
  EXPECT_THAT(check_pictures(folder.path()).warnings,
              ::testing::Each(
                  ::testing::Field(&PictureFinding::problem, ::testing::Not(HasSubstr("EXIF")))));
  fs::copy(golden / "rotated.jpg", folder / "b/2.jpg");
  fs::copy(golden / "rotated.jpg", folder / "b/3.jpg");
  EXPECT_THAT(
      lines_of(check_pictures(folder.path()).warnings),
      ::testing::Contains(
          "b/2.jpg: has the EXIF orientation 6 (pictures with another one than 1: 2 of 4): Tare "
          "reads the pixels as they are stored; `mogrify -auto-orient *.jpg` or `exiftran "
          "-ai *.jpg` bakes the rotation in"));
}

TEST(PictureCheck, FilesOfOtherKindsAreCountedAndAreNoFindings) {
  const TempDir folder;
  for (const char* split : {"train", "valid"})
    for (const char* label : {"cat", "dog"})
      add(folder / split / label / "1.png", split[0] == 't' ? label[0] : 100 + label[0]);
  for (int i = 0; i < 5; ++i)
    io::write_atomically(folder / "train/cat" / (std::to_string(i) + ".GIF"), "GIF89a");
  io::write_atomically(folder / "valid/list.csv", "path");
  io::write_atomically(folder / "train/dog/readme", "a text");
  io::write_atomically(folder / "train/dog/.hidden", "a text");
  const PictureCheck check = check_pictures(folder.path());
  EXPECT_THAT(lines_of(check.problems), IsEmpty());
  EXPECT_THAT(lines_of(check.warnings), IsEmpty());
  ASSERT_THAT(check.skipped, SizeIs(3));
  EXPECT_EQ(check.skipped.at(".gif").files, 5);
  EXPECT_THAT(check.skipped.at(".gif").first,
              ElementsAre("train/cat/0.GIF", "train/cat/1.GIF", "train/cat/2.GIF"));
  EXPECT_THAT(check.skipped.at(".csv").first, ElementsAre("valid/list.csv"));
  EXPECT_EQ(check.skipped.at("").files, 1);
}

TEST(PictureCheck, AFolderOfArraysNamesTheirDataSet) {
  const TempDir folder;
  io::write_atomically(folder / "x.npy", "an array");
  EXPECT_THAT(lines_of(check_pictures(folder.path()).problems),
              ElementsAre(HasSubstr("arrays of NumPy are the data set npy, and `tare data check "
                                    "FILE.npy`")));
}

TEST(PictureCheck, OtherChannelsAndEqualFilesAreWarnings) {
  const TempDir folder;
  add(folder / "train/cat/1.png", 1);
  add(folder / "train/dog/1.png", 2);
  add(folder / "train/dog/2.png", 1);
  add(folder / "valid/cat/1.png", 3, 4, 3);
  add(folder / "valid/dog/1.png", 2);
  const PictureCheck check = check_pictures(folder.path());
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_THAT(
      lines_of(check.warnings),
      ElementsAre("train/dog/2.png: has the content of train/cat/1.png, which is of another class",
                  "valid/dog/1.png: has the content of train/dog/1.png",
                  "valid/cat/1.png: is RGB, and the first picture is grey: 1 of 5 are converted "
                  "unless `channels` says what all shall be"));
  EXPECT_EQ(check.classes.front().split, "train");
}

TEST(PictureCheck, ClassesOfSplitsMustAgree) {
  const TempDir folder;
  add(folder / "train/cat/1.png", 1);
  add(folder / "train/dog/1.png", 2);
  add(folder / "valid/cat/1.png", 3);
  add(folder / "valid/fox/1.png", 4);
  EXPECT_THAT(lines_of(check_pictures(folder.path()).problems),
              ElementsAre("valid: lacks the class 'dog' of train",
                          "train: lacks the class 'fox' of valid"));
  io::remove_all(folder / "valid");
  add(folder / "valid/1.png", 3);
  EXPECT_THAT(lines_of(check_pictures(folder.path()).problems), SizeIs(3));
}

TEST(PictureCheck, AFolderWithoutPicturesIsAProblem) {
  const TempDir folder;
  EXPECT_THAT(lines_of(check_pictures(folder.path()).problems),
              ElementsAre(".: has no PNG, JPEG or WebP file"));
  EXPECT_THROW((void)check_pictures(folder / "absent"), IoError);
}

}  // namespace
}  // namespace tare
