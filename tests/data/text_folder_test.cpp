// Reading a folder of text files.
#include "tare/data/text_folder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/text_check.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    write("good/b.txt", "fine");
    write("good/a.TXT", "a\xff");
    write("bad/c.txt", "no");
    write("bad/notes.md", "left out");
  }
  void write(const std::string& name, const std::string& text) const {
    io::make_directories((folder_ / name).parent_path());
    io::write_atomically(folder_ / name, text);
  }
  [[nodiscard]] static Batch get(const DatasetPtr& data, const std::vector<int64_t>& indices) {
    return data->get({.indices = indices});
  }
  TempDir folder_;
};

TEST_F(TextFolder, GivesBytesWithLengthsAndClasses) {
  const DatasetPtr data = text_folder(folder_.path());
  EXPECT_THAT(data->labels(), ElementsAre("bad", "good"));
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(data->sample_name(1), "good/a.TXT");
  const Batch all = get(data, {0, 1, 2});
  EXPECT_TRUE(at::equal(all.target("label"), at::tensor({0, 1, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(all.input("lengths"), at::tensor({2, 2, 4}, at::kLong)));
  EXPECT_TRUE(at::equal(all.input("text")[1], at::tensor({97, 255, 0, 0}, at::kLong)));
  EXPECT_THAT(data->sample_shape(), ElementsAre(4));
}

TEST_F(TextFolder, CutsLongTextsAndTakesAnotherCollateFunction) {
  const DatasetPtr data =
      text_folder(folder_.path(), {.length = 3, .collate = pad({.with = "mask"})});
  const Batch last = get(data, {2});
  EXPECT_EQ(last.input().size(1), 3);
  EXPECT_TRUE(last.input("mask").all().item<bool>());
}

TEST_F(TextFolder, WithoutSubfoldersThereAreNoLabels) {
  const DatasetPtr data = text_folder(folder_ / "good");
  EXPECT_EQ(data->size(), 2);
  EXPECT_TRUE(get(data, {0}).targets.empty());
  EXPECT_EQ(text_files(folder_ / "good").size(), 2U);
}

TEST_F(TextFolder, IsCheckedFileByFile) {
  EXPECT_EQ(check_text_folder({.folder = folder_.path()}).problems.count, 0);
  write("good/empty.txt", "");
  write("bad/none.txt", "");
  std::filesystem::create_symlink("nowhere", folder_ / "bad/link.txt");
  const TextCheck check = check_text_folder({.folder = folder_.path()});
  ASSERT_EQ(check.problems.count, 3);
  EXPECT_THAT(check.problems.list[0].path, HasSubstr("bad/link.txt"));
  EXPECT_THAT(check.problems.list[1].path, HasSubstr("bad/none.txt"));
  EXPECT_EQ(check.problems.list[2].problem, "is empty: remove the file");
}

TEST_F(TextFolder, RefusesWhatIsNoText) {
  EXPECT_THROW((void)text_folder(folder_ / "missing"), IoError);
  write("good/empty.txt", "");
  EXPECT_THAT(outcome_of([&] { (void)text_folder(folder_.path()); }), HasSubstr("empty.txt"));
  write("other/notes.md", "no text");
  EXPECT_THAT(outcome_of([&] { (void)text_folder(folder_.path()); }),
              HasSubstr("has a class without text files"));
  EXPECT_THAT(outcome_of([&] { (void)text_folder(folder_ / "bad", {.length = -1}); }),
              HasSubstr("length must be >= 0"));
  EXPECT_THROW((void)text_folder(folder_ / "bad", {.limit_bytes = 1}), IoError);
}

class TextFolderSplits : public TextFolder {
 protected:
  void SetUp() override {
    for (const auto& [split, count] : {std::pair("train", 4), {"valid", 2}, {"test", 1}})
      for (const char* label : {"neg", "pos"})
        for (int i = 0; i < count; ++i)
          write(std::string(split) + '/' + label + '/' + std::to_string(i) + ".txt",
                std::string(split) + label);
  }
  [[nodiscard]] datasets::Named named(double train = 0.8, double test = 0) const {
    return datasets::make(
        {.name = "text_folder", .folder = folder_.path().string(), .train = train, .test = test});
  }
  [[nodiscard]] std::string problem() const {
    return outcome_of([&] { (void)named(); });
  }
};

TEST_F(TextFolderSplits, AreThoseOfTheFolder) {
  EXPECT_TRUE(has_text_splits(folder_.path()));
  const Splits splits = text_folder_splits(folder_.path());
  EXPECT_THAT(splits.train->labels(), ElementsAre("neg", "pos"));
  EXPECT_EQ(splits.train->size(), 8);
  EXPECT_EQ(splits.test->size(), 2);
  ASSERT_EQ(splits.valid->size(), 4);
  EXPECT_EQ(splits.valid->sample_name(2), "valid/pos/0.txt");
  EXPECT_TRUE(at::equal(splits.valid->targets(), at::tensor({0, 0, 1, 1}, at::kLong)));
  EXPECT_EQ(text_files(folder_.path()).size(), 14U);
  const datasets::Named all = named();
  EXPECT_EQ(all.splits.train->size(), 8);
  EXPECT_EQ(all.splits.valid->size(), 4);
  EXPECT_EQ(all.splits.test->size(), 2);
  EXPECT_THAT(all.description, HasSubstr("14 texts of"));
  EXPECT_EQ(text_folder(folder_ / "train")->size(), 8);
  EXPECT_THAT(outcome_of([&] { (void)text_folder(folder_.path()); }), HasSubstr("holds splits"));
  EXPECT_THAT(outcome_of([&] { (void)text_folder_splits(folder_ / "train"); }),
              HasSubstr("has no splits"));
  constexpr int64_t kTooFew = 14 * 7;  // a text has 7 or 8 bytes
  EXPECT_THROW((void)text_folder_splits(folder_.path(), {.limit_bytes = kTooFew}), IoError);
}

TEST_F(TextFolderSplits, WithoutAValidationSplitItIsCutFromTraining) {
  io::remove_all(folder_ / "valid");
  EXPECT_EQ(text_folder_splits(folder_.path()).valid, nullptr);
  const Splits splits = named(0.75).splits;
  EXPECT_EQ(splits.train->size(), 6);
  EXPECT_EQ(splits.valid->size(), 2);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_THAT(outcome_of([&] { (void)named(0.7, 0.1); }),
              HasSubstr("has no part in a folder that has the subfolder test"));
}

TEST_F(TextFolderSplits, ClassesThatDifferAreNamed) {
  write("test/odd/1.txt", "?");
  EXPECT_THAT(problem(), HasSubstr("has the class 'odd' in test, but not in train"));
  io::remove_all(folder_ / "test");
  io::remove_all(folder_ / "valid/pos");
  EXPECT_THAT(problem(), HasSubstr("has the class 'pos' in train, but not in valid"));
  io::remove_all(folder_ / "valid/neg");
  write("valid/1.txt", "?");
  EXPECT_THAT(problem(), HasSubstr("has classes in train, and texts without classes in valid"));
}

TEST_F(TextFolderSplits, TextsDirectlyInThemHaveNoClasses) {
  for (const char* split : {"train", "valid", "test"}) io::remove_all(folder_ / split);
  write("train/1.txt", "one");
  write("train/2.txt", "two");
  write("valid/3.txt", "three");
  const Splits splits = named().splits;
  EXPECT_EQ(splits.train->size(), 2);
  EXPECT_EQ(splits.valid->size(), 1);
  EXPECT_TRUE(splits.train->labels().empty());
}

TEST_F(TextFolderSplits, AreCheckedFileByFile) {
  EXPECT_EQ(check_text_folder({.folder = folder_.path()}).problems.count, 0);
  write("test/pos/empty.txt", "");
  const TextCheck check = check_text_folder({.folder = folder_.path()});
  ASSERT_EQ(check.problems.count, 1);
  EXPECT_THAT(check.problems.list[0].path, HasSubstr("test/pos/empty.txt"));
}

TEST_F(TextFolderSplits, AreTextsAndNoPictures) {
  EXPECT_TRUE(is_text_folder(folder_.path()));
  EXPECT_TRUE(is_text_folder(folder_ / "train"));
  EXPECT_TRUE(is_text_folder(folder_ / "train/neg"));
  io::remove_all(folder_ / "valid");
  io::remove_all(folder_ / "test");
  EXPECT_TRUE(is_text_folder(folder_.path())) << "the texts of train lie below its only folder";
  write("train/pos/1.png", "a picture");
  EXPECT_FALSE(is_text_folder(folder_.path()));
  io::remove_all(folder_ / "train");
  write("cat/1.bmp", "another picture");
  write("notes.txt", "beside the class");
  EXPECT_FALSE(is_text_folder(folder_.path()));
}

}  // namespace
}  // namespace tare::testing
