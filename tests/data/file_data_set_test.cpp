// Which data set reads a file.
#include "tare/data/file_data_set.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "tare/base/io.h"

namespace tare::testing {
namespace {

class FileDataSet : public ::testing::Test {
 protected:
  [[nodiscard]] std::string of(const std::string& name, const std::string& text,
                               const std::vector<std::string>& options = {}) const {
    io::write_atomically(folder_ / name, text);
    return data_set_of(folder_ / name, options);
  }
  const std::string table_ = "a,b\n1,2\n3,4\n", prose_ = "A story.\nIt has, as here, commas.\n";
  TempDir folder_;
};

TEST_F(FileDataSet, IsChosenByTheExtension) {
  EXPECT_EQ(of("x.NPY", ""), "npy");
  EXPECT_EQ(of("rows.jsonl", ""), "jsonl");
  EXPECT_EQ(of("rows.json", ""), "jsonl");
  EXPECT_EQ(of("rows.tsv", table_), "csv");
  EXPECT_EQ(of("story.md", prose_), "csv");
}

TEST_F(FileDataSet, IsAListOfPicturesByItsColumns) {
  const std::string list = "path,label\n1.png,cat\n";
  EXPECT_EQ(of("list.csv", list), "image_list");
  EXPECT_EQ(of("list.csv", list, {"targets"}), "image_list");
  EXPECT_EQ(of("list.csv", list, {"target"}), "csv");
}

TEST_F(FileDataSet, OfATxtFileIsTextUnlessItIsATable) {
  EXPECT_EQ(of("in.txt", prose_), "text");
  EXPECT_EQ(of("in.txt", ""), "text");
  EXPECT_EQ(of("in.txt", table_), "csv");
  EXPECT_EQ(of("in.txt", prose_, {"train"}), "text") << "every data set has the option";
}

TEST_F(FileDataSet, OfATxtFileIsChosenByItsOptions) {
  for (const char* option : {"tokenizer", "context", "vocabulary"}) {
    EXPECT_EQ(of("in.txt", prose_, {option}), "text");
    EXPECT_EQ(of("in.txt", table_, {"train", option}), "text");
    EXPECT_EQ(of("in.csv", table_, {option}), "csv");
  }
  for (const char* option : {"target", "omit", "separator"})
    EXPECT_EQ(of("in.txt", prose_, {option}), "csv");
}

}  // namespace
}  // namespace tare::testing
