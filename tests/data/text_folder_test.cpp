// Reading a folder of text files.
#include "tare/data/text_folder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tare::testing
