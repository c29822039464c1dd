// Tables of text at every width.
#include "tare/base/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace tare {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::vector<TableColumn> kColumns{
    {.head = "phase"}, {.head = "planned peak", .figure = true}, {.head = "where", .whole = true}};
const std::vector<TableRow> kRows{{"head", "1.5 MiB", "backward of layer3.conv1"},
                                  {"all-the-layers", "128 MiB", "step"}};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TextTable, IsAsWideAsItsCellsWhereThereIsRoom) {
  const std::string text = text_table(kColumns, kRows);
  EXPECT_THAT(lines_of(text), ElementsAre("phase           planned peak  where",
                                          "head                 1.5 MiB  backward of layer3.conv1",
                                          "all-the-layers       128 MiB  step"));
  EXPECT_EQ(text_table(kColumns, kRows, 54), text) << "it just fits";
}

TEST(TextTable, FirstBreaksHeadsThenCells) {
  EXPECT_THAT(lines_of(text_table(kColumns, kRows, 49)),
              ElementsAre("                planned", "phase              peak  where",
                          "head            1.5 MiB  backward of layer3.conv1",
                          "all-the-layers  128 MiB  step"));
  EXPECT_THAT(lines_of(text_table(kColumns, kRows, 37)),
              ElementsAre("               planned", "phase             peak  where",
                          "head           1.5 MiB  backward of",
                          "                        layer3.conv1", "all-the-lay..  128 MiB  step"));
}

TEST(TextTable, PutsTheLastCellBelowItsRowWhereThatHelps) {
  EXPECT_THAT(lines_of(text_table(kColumns, kRows, 24)),
              ElementsAre("                planned", "phase              peak", "  where",
                          "head            1.5 MiB", "  backward of", "  layer3.conv1",
                          "all-the-layers  128 MiB", "  step"));
}

TEST(TextTable, BecomesBlocksWhereNoColumnCanBeNarrower) {
  std::vector<TableColumn> columns = kColumns;
  columns.back().whole = false;
  EXPECT_THAT(
      lines_of(text_table(columns, kRows, 26)),
      ElementsAre("phase         head", "planned peak  1.5 MiB", "where         backward of",
                  "              layer3.conv1", "", "phase         all-the-",
                  "              layers", "planned peak  128 MiB", "where         step"));
}

TEST(TextTable, NeverExceedsTheWidth) {
  for (size_t width = 24; width < 60; ++width)
    for (const auto& line : lines_of(text_table(kColumns, kRows, width)))
      EXPECT_LE(line.size(), width) << line;
}

TEST(TextTable, CountsLettersNotBytesAndCutsNoneInHalf) {
  std::string accents;
  for (int i = 0; i < 20; ++i) accents += "\u00e9";
  const std::vector<TableColumn> columns{{.head = "name"}, {.head = "n", .figure = true}};
  EXPECT_THAT(lines_of(text_table(columns, {{accents, "1"}}, 23)).at(1),
              HasSubstr(accents + "  1"));
  const std::string cut = lines_of(text_table(columns, {{accents, "1"}}, 13)).at(1);
  EXPECT_EQ(cut, accents.substr(0, 16) + "..  1");
}

TEST(CellLines, BreakBetweenWordsAndBehindMarks) {
  EXPECT_THAT(cell_lines("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(cell_lines("layer3.downsample.1", 10), ElementsAre("layer3.", "downsample", ".1"));
  EXPECT_THAT(cell_lines("abcdefghij", 4), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(cell_lines("", 4), ElementsAre(""));
}

TEST(TextList, WrapsTextsAndPutsThemBelowTheirNamesWhereItIsNarrow) {
  const std::vector<ListEntry> entries{{"mlp", "layers of numbers that are all connected"},
                                       {"resnet9", "small"}};
  EXPECT_EQ(text_list(entries, 2),
            "  mlp      layers of numbers that are all connected\n"
            "  resnet9  small\n");
  EXPECT_EQ(text_list(entries, 2, 42),
            "  mlp      layers of numbers that are all\n"
            "           connected\n"
            "  resnet9  small\n");
  EXPECT_EQ(text_list(entries, 2, 36),
            "  mlp\n      layers of numbers that are all\n"
            "      connected\n  resnet9\n      small\n");
}

}  // namespace
}  // namespace tare
