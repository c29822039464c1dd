// CSV fields and files, written, read and refused.
#include "tare/base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare {
namespace {

using tare::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& text) {
  const TempDir folder;
  io::write_atomically(folder / "a.csv", text);
  Rows rows;
  read_csv(folder / "a.csv", [&](const auto& fields, size_t) { rows.push_back(fields); });
  return rows;
}

TEST(CsvField, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_field("accuracy"), "accuracy");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("a \"b\""), "\"a \"\"b\"\"\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST(CsvField, DefusesFormulasAndKeepsARecordOnOneLine) {
  EXPECT_EQ(csv_field("=1+1"), "'=1+1");
  EXPECT_EQ(csv_field("@x,y"), "\"'@x,y\"");
  EXPECT_EQ(csv_field("a\nb"), "a\\nb");
}

TEST(CsvField, LeavesNumbersWithASignAsTheyAre) {
  for (const char* number : {"+1", "-0.5", "-1e-3", "+.5", "-12."}) {
    EXPECT_EQ(csv_field(number), number);
    EXPECT_EQ(csv_text(number), number);
  }
  for (const char* formula : {"+1+1", "-A1", "--1", "+", "-", "-1e", "+-1", "-inf", "-0x1", "=1",
                              "@1", "-2 apples", "+nan"}) {
    EXPECT_EQ(csv_field(formula), "'" + std::string(formula));
    EXPECT_EQ(csv_text(formula), "'" + std::string(formula));
  }
}

TEST(ReadCsv, GivesBackWhatWasWritten) {
  const std::vector<std::string> fields{"a", "b,c", "say \"d\"", "", "e"};
  std::string line;
  for (const auto& field : fields) line += (line.empty() ? "" : ",") + csv_field(field);
  EXPECT_EQ(rows_of(line + "\n1,2\r\n\n3"), (Rows{fields, {"1", "2"}, {"3"}}));
}

TEST(ReadCsv, NumbersLinesAcrossPieces) {
  const TempDir folder;
  std::string text;
  for (int i = 1; i <= 50'000; ++i) text += std::to_string(i) + ",abc\n";
  io::write_atomically(folder / "a.csv", text);
  size_t count = 0;
  read_csv(folder / "a.csv", [&](const auto& fields, size_t line) {
    ASSERT_THAT(fields, ElementsAre(std::to_string(line), "abc"));
    ++count;
  });
  EXPECT_EQ(count, 50'000U);
}

TEST(ReadCsv, RefusesWhatIsNoCsv) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      (void)rows_of(text);
    } catch (const FormatError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("a\n\"b\n"), HasSubstr("line 2: has a quote that is not closed"));
  EXPECT_THAT(message("a\n" + std::string(70'000, 'x')),
              HasSubstr("line 2: is longer than 64 KiB"));
  EXPECT_THAT(message(std::string(200'000, 'x') + "\na\n"), HasSubstr("line 1: is longer"));
  EXPECT_THROW(read_csv("absent.csv", [](const auto&, size_t) {}), IoError);
}

}  // namespace
}  // namespace tare
