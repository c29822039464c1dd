// Lists of pictures, and what is wrong with some.
#include "tare/data/image_list.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/picture_check.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

/// A folder of grey pictures 1.png to 6.png, each of one value, and a list.
class ImageList : public ::testing::Test {
 protected:
  ImageList() {
    io::make_directories(folder_ / "pictures");
    for (int i = 1; i <= 6; ++i)
      write_png(folder_ / "pictures" / (std::to_string(i) + ".png"),
                at::full({1, 4, 6}, i, at::kByte));
  }
  [[nodiscard]] std::filesystem::path list(const std::string& rows) const {
    io::write_atomically(folder_ / "list.csv", rows);
    return folder_ / "list.csv";
  }
  [[nodiscard]] std::string error(const std::string& rows) const {
    try {
      (void)image_list(list(rows));
    } catch (const Error& found) {
      return found.what();
    }
    return "";
  }
  static at::Tensor pixels(const DatasetPtr& data) {
    return get_all(*data).input().flatten(1).select(1, 0).contiguous();
  }
  TempDir folder_;
};

TEST_F(ImageList, HasTheRowsInTheirOrderAndTheClassesByName) {
  const Splits splits = image_list(
      list("path,note,label\r\npictures/3.png,x,dog\r\n\r\npictures/1.png,,\"cat, \"\"old\"\"\"\r\n"
           "pictures/2.png,\"a\nb\",dog"));
  EXPECT_EQ(splits.valid, nullptr);
  EXPECT_EQ(splits.test, nullptr);
  EXPECT_THAT(splits.train->labels(), ElementsAre("cat, \"old\"", "dog"));
  EXPECT_TRUE(at::equal(splits.train->targets(), at::tensor({1, 0, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(pixels(splits.train), at::tensor({3, 1, 2}, at::kByte)));
  EXPECT_EQ(splits.train->sample_name(1), "pictures/1.png");
}

TEST_F(ImageList, HasSplitsOfItsOwn) {
  const auto file = list(
      "split,label,path\ntest,a,pictures/6.png\ntrain,b,pictures/1.png\nval,a,pictures/2.png\n"
      "train,a,pictures/3.png\n");
  const Splits splits = image_list(file);
  EXPECT_TRUE(at::equal(pixels(splits.train), at::tensor({1, 3}, at::kByte)));
  EXPECT_TRUE(at::equal(pixels(splits.valid), at::tensor({2}, at::kByte)));
  EXPECT_TRUE(at::equal(pixels(splits.test), at::tensor({6}, at::kByte)));
  EXPECT_TRUE(at::equal(splits.train->targets(), at::tensor({1, 0}, at::kLong)));
  EXPECT_THAT(splits.test->labels(), ElementsAre("a", "b"));
  const auto named = datasets::make({.name = "image_list", .size = 3, .file = file.string()});
  EXPECT_EQ(named.splits.train->size(), 2);
  EXPECT_EQ(named.splits.valid->size(), 1);
  EXPECT_EQ(named.splits.test->size(), 1);
  EXPECT_THAT(named.splits.train->sample_shape(), ElementsAre(1, 3, 3));
  EXPECT_THAT(named.description, HasSubstr("4 images of"));
  EXPECT_THROW((void)datasets::make({.name = "image_list", .file = file.string(), .test = 0.1}),
               ConfigError);
}

TEST_F(ImageList, WithoutLabelsHasNoTargets) {
  const Splits splits = image_list(list("path\npictures/3.png\npictures/1.png\n"));
  EXPECT_FALSE(splits.train->targets().defined());
  EXPECT_TRUE(splits.train->labels().empty());
  EXPECT_TRUE(at::equal(pixels(splits.train), at::tensor({3, 1}, at::kByte)));
}

TEST_F(ImageList, TakesAbsolutePaths) {
  const std::string path = (folder_ / "pictures/5.png").string();
  EXPECT_TRUE(at::equal(pixels(image_list(list("path,label\n" + path + ",a\n")).train),
                        at::tensor({5}, at::kByte)));
}

TEST_F(ImageList, SaysWhichLineIsWrong) {
  EXPECT_THAT(error(""), HasSubstr("the file is empty"));
  EXPECT_THAT(error("path,label\n"), HasSubstr("no line behind its head"));
  EXPECT_THAT(error("pictures/1.png,cat\npictures/2.png,dog\n"), HasSubstr("no column `path`"));
  EXPECT_THAT(error("path,label\npictures/1.png,a\npictures/9.png,a\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("9.png"), HasSubstr("not there")));
  EXPECT_THAT(error("path,label\npictures/1.png,a,b\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("3 fields")));
  EXPECT_THAT(error("path,label\npictures/1.png,a\npictures/1.png,a\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("again")));
  EXPECT_THAT(error("path,label\npictures/1.png,\n"), HasSubstr("no label"));
  EXPECT_THAT(error("path,label\n,a\n"), HasSubstr("no path"));
  EXPECT_THAT(error("path,label\n\"pictures/1.png,a\n"), HasSubstr("quote that is not closed"));
  EXPECT_THAT(error("path,label\n\"pictures/1.png\"x,a\n"), HasSubstr("behind the quote"));
  EXPECT_THAT(error("path,label,split\npictures/1.png,a,trian\n"),
              AllOf(HasSubstr("trian"), HasSubstr("train, valid")));
  EXPECT_THAT(error("path,label,split\npictures/1.png,a,valid\n"), HasSubstr("split train"));
  EXPECT_THAT(error("path,label,split\npictures/1.png,cat,train\npictures/2.png,cta,valid\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("'cta'"), HasSubstr("\"cat\"")));
  EXPECT_EQ(error("path,label,split\npictures/1.png,cat,train\npictures/2.png,cat,valid\n"), "");
}

TEST_F(ImageList, ACheckDecodesEveryPicture) {
  io::write_atomically(folder_ / "pictures/bad.png", "no picture");
  write_png(folder_ / "pictures/large.png", at::full({3, 9, 9}, 7, at::kByte));
  const PictureCheck check = check_listed_pictures(
      list("path,label,split\npictures/1.png,a,train\npictures/bad.png,a,train\n"
           "pictures/gone.png,a,train\npictures/large.png,b,valid\n"));
  EXPECT_EQ(check.pictures, 2);
  ASSERT_EQ(check.problems.size(), 3U);
  EXPECT_EQ(check.problems[0].path, "pictures/bad.png");
  EXPECT_THAT(check.problems[1].problem, HasSubstr("not there"));
  EXPECT_THAT(check.problems[2].problem, HasSubstr("'b' in valid"));
  ASSERT_EQ(check.classes.size(), 2U);
  EXPECT_EQ(check.classes[0].pictures, 1);
  EXPECT_EQ(check.classes[1].split, "valid");
  EXPECT_FALSE(check.warnings.empty());
}

}  // namespace
}  // namespace tare
