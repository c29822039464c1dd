// Lists of pictures, and what is wrong with some.
#include "tare/data/image_list.h"

#include <ATen/Parallel.h>
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

TEST_F(ImageList, HasNumbersInPlaceOfLabels) {
  const auto file = list(
      "path,label,age,height,split\npictures/1.png,a,1.5,-2,train\npictures/2.png,b,3,1e2,valid\n"
      "pictures/3.png,a,7,0,train\n");
  const Splits one = image_list(file, {}, {"age"});
  EXPECT_TRUE(at::equal(one.train->targets(), at::tensor({1.5F, 7.F}).view({2, 1})));
  EXPECT_TRUE(one.train->labels().empty());
  const Splits two = image_list(file, {.cache_bytes = 0}, {"height", "age"});
  EXPECT_TRUE(at::equal(two.valid->targets(), at::tensor({100.F, 3.F}).view({1, 2})));
  EXPECT_TRUE(
      at::equal(get_all(*two.train).target(), at::tensor({-2.F, 1.5F, 0.F, 7.F}).view({2, 2})))
      << "streamed";
  const auto named =
      datasets::make({.name = "image_list", .file = file.string(), .targets = {"age", "height"}});
  EXPECT_THAT(named.description, HasSubstr("(numbers age, height)"));
  const PictureCheck check = check_listed_pictures(file, {"age"});
  ASSERT_EQ(check.targets.size(), 1U);
  EXPECT_EQ(check.targets[0].least, 1.5);
  EXPECT_NEAR(check.targets[0].mean, 11.5 / 3, 1e-12);
  EXPECT_EQ(check.targets[0].most, 7);
  EXPECT_TRUE(check.problems.empty());
}

TEST_F(ImageList, ColumnsOfZerosAndOnesAreLabels) {
  const auto file =
      list("path,cat,dog\npictures/1.png,1,0\npictures/2.png,1.0,1\npictures/3.png,0,0\n");
  const Splits splits = image_list(file, {}, {"cat", "dog"});
  EXPECT_THAT(splits.train->labels(), ElementsAre("cat", "dog"));
  EXPECT_TRUE(
      at::equal(splits.train->targets(), at::tensor({1.F, 0.F, 1.F, 1.F, 0.F, 0.F}).view({3, 2})));
  EXPECT_THAT(
      datasets::make({.name = "image_list", .file = file.string(), .targets = {"dog"}}).description,
      HasSubstr("(labels dog)"));
}

TEST_F(ImageList, SaysWhichNumberIsWrong) {
  const auto problem = [&](const std::string& rows, const std::vector<std::string>& targets) {
    try {
      (void)image_list(list(rows), {}, targets);
    } catch (const Error& found) {
      return std::string(found.what());
    }
    return std::string();
  };
  const std::string two = "path,age\npictures/1.png,1\npictures/2.png,";
  EXPECT_EQ(problem(two + "2\n", {"age"}), "");
  EXPECT_THAT(problem(two + "2\n", {"aeg"}),
              AllOf(HasSubstr("no column 'aeg'"), HasSubstr("\"age\"")));
  EXPECT_THAT(
      problem(two + "old\n", {"age"}),
      AllOf(HasSubstr("line 3"), HasSubstr("has 'old' in the column 'age', where a number")));
  EXPECT_THAT(problem(two + "\n", {"age"}), HasSubstr("write one, or remove the row"));
  EXPECT_THAT(problem(two + "\"1,5\"\n", {"age"}), HasSubstr("decimal point"));
  EXPECT_THAT(problem(two + "1\n", {"age"}), HasSubstr("which has one value only, 1"));
  EXPECT_THAT(problem(two + "2\n", {"age", "age"}), HasSubstr("each once"));
  EXPECT_THAT(problem(two + "2\n", {"path"}), HasSubstr("columns other than path and split"));
  EXPECT_THAT(problem("path,age\npictures/1.png,1000000000\npictures/2.png,1000000001\n", {"age"}),
              HasSubstr("subtract a constant"));
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

TEST_F(ImageList, ACheckNamesEveryRowThatIsWrong) {
  const auto problems = [&](const std::string& rows, const std::vector<std::string>& targets) {
    std::vector<std::string> lines;
    for (const auto& [path, problem] : check_listed_pictures(list(rows), targets).problems)
      lines.push_back(path + ": " + problem);
    return lines;
  };
  EXPECT_THAT(
      problems("path,label,split\n,a,train\npictures/1.png,a\npictures/1.png,,train\n"
               "pictures/2.png,a,trian\npictures/3.png,a,train\n",
               {}),
      ElementsAre(HasSubstr(".csv: line 3 has 2 fields"), HasSubstr(".csv: line 2 has no path"),
                  HasSubstr("line 4 has no label"), HasSubstr("line 5 has the split 'trian'")));
  EXPECT_THAT(problems("path,age\npictures/1.png,old\npictures/2.png,\n", {"age"}),
              ElementsAre(HasSubstr("line 2 has 'old' in the column 'age'"),
                          HasSubstr("line 3 has '' in the column 'age'")));
}

TEST_F(ImageList, ACheckWarnsOfPicturesWithoutLabels) {
  const auto warnings = [&](const std::vector<std::string>& targets) {
    return check_listed_pictures(list("path,age\npictures/1.png,1\npictures/2.png,2\n"), targets)
        .warnings;
  };
  ASSERT_EQ(warnings({}).size(), 1U);
  EXPECT_THAT(warnings({})[0].problem,
              HasSubstr("the list has no column `label` (there are path, age): give the column of "
                        "the classes that name"));
  EXPECT_TRUE(warnings({"age"}).empty());
}

/// Uses so many threads in operators, until its end.
struct ThreadsOfOperators {
  explicit ThreadsOfOperators(int count) { at::set_num_threads(count); }
  ~ThreadsOfOperators() { at::set_num_threads(before); }
  ThreadsOfOperators(const ThreadsOfOperators&) = delete;
  ThreadsOfOperators& operator=(const ThreadsOfOperators&) = delete;
  int before = at::get_num_threads();
};

TEST_F(ImageList, NamesTheFirstDamagedPictureOfABatchWithAnyNumberOfThreads) {
  std::string rows = "path\n";
  for (int i = 1; i <= 6; ++i) rows += "pictures/" + std::to_string(i) + ".png\n";
  const DatasetPtr data = image_list(list(rows), {.cache_bytes = 0}).train;
  for (const char* damaged : {"pictures/3.png", "pictures/4.png"})
    io::write_atomically(folder_ / damaged, "no picture");
  const ThreadsOfOperators two(2);
  for (int i = 0; i < 50; ++i) {
    try {
      (void)get_all(*data);
      FAIL();
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr("pictures/3.png"));
    }
  }
}

}  // namespace
}  // namespace tare
