// Rows of a run_data.csv, whole or damaged.
#include "tare/sweep/run_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "tare/base/io.h"

namespace tare::testing {
namespace {

using sweep::RunRow;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class RunRowsTest : public ::testing::Test {
 protected:
  std::vector<RunRow> read(const std::string& text) {
    io::write_atomically(folder_ / "run_data.csv", text);
    ::testing::internal::CaptureStderr();
    auto rows = sweep::run_rows(folder_.path());
    warnings_ = ::testing::internal::GetCapturedStderr();
    return rows;
  }
  static std::vector<std::string> runs(const std::vector<RunRow>& rows) {
    std::vector<std::string> names;
    for (const RunRow& row : rows) names.push_back(row.run);
    return names;
  }

  TempDir folder_;
  std::string warnings_;
};

TEST_F(RunRowsTest, AreNamedByTheirFolderOrTheirName) {
  EXPECT_THAT(sweep::run_rows(folder_.path()), IsEmpty()) << "no such file";
  EXPECT_THAT(runs(read("log_dir,name,x\nlogs/r0/,a,1\n,b,2\r\n\"c,d\",e,3")),
              ElementsAre("r0", "b", "c,d"));
  EXPECT_EQ(warnings_, "");
}

TEST_F(RunRowsTest, KeepFieldsAsTheyAreWritten) {
  const auto rows = read("log_dir,\"a\nb\"\nr0,\"one\n\"\"two\"\", \"\nr1,\n");
  ASSERT_THAT(runs(rows), ElementsAre("r0", "r1"));
  EXPECT_THAT(rows[0].fields,
              ElementsAre(Pair("log_dir", "r0"), Pair("\"a\nb\"", "\"one\n\"\"two\"\", \"")));
  EXPECT_EQ(sweep::text_of_field(rows[0].fields[1].second), "one\n\"two\", ");
  EXPECT_EQ(warnings_, "");
}

TEST_F(RunRowsTest, ThatAreDamagedAreLeftOutWithAWarning) {
  EXPECT_THAT(runs(read("name,x\nr0,1\nr1\nr2,2,3\n,4\nr3,5\nr4,\"6\n")), ElementsAre("r0", "r3"));
  for (const char* problem :
       {"row 2 of ", "has 1 fields, and the header has 2: it is ignored\n", "row 3 of ",
        "has 3 fields", "row 4 of ", "names no run in a column log_dir or name", "row 6 of ",
        "has a quote that is not closed"})
    EXPECT_THAT(warnings_, HasSubstr(problem));
  EXPECT_THAT(runs(read("name,\"x\nr0,1\n")), IsEmpty());
  EXPECT_THAT(warnings_, HasSubstr("the header of "));
}

TEST_F(RunRowsTest, OfOneRunTheLastCounts) {
  const auto rows = read("name,x\nr0,1\nr1,2\nr0,3\n");
  ASSERT_THAT(runs(rows), ElementsAre("r0", "r1"));
  EXPECT_THAT(rows[0].fields, ElementsAre(Pair("name", "r0"), Pair("x", "3")));
  EXPECT_THAT(warnings_, HasSubstr("row 3 of "));
  EXPECT_THAT(warnings_, HasSubstr("is not the first one of the run 'r0': the last one counts"));
}

}  // namespace
}  // namespace tare::testing
