// Values that are long or foreign, from the sweep's file to folder, store, tables and report.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sweep/shell_sweep.h"
#include "tare/report/sweep_report.h"
#include "tare/sweep/store_read.h"
#include "tare/sweep/sweep_page.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using sweep::SweepReport;

using ForeignTextTest = ShellSweepTest;

TEST_F(ForeignTextTest, LongAndForeignValuesAreWholeEverywhereAndNamesStayShort) {
  const std::string longest(500, 'q'), foreign = "Größe 模型,\"x\"";
  const std::string text = "parameters: {b.c: ['" + longest + "1', '" + longest + "2', '" +
                           foreign + "', \"two\\nlines\"]}\nresources: {jobs: 1}\n";
  const SweepReport report = run(text, "pause=0; train nan 0.5");
  EXPECT_EQ(report.complete, 4);
  const auto sweep = read(text);
  const std::string page =
      report::sweep_page(sweep::summary_of(sweep, sweep::read_store(store(), "s")));
  EXPECT_NE(page.find("Größe 模型"), page.npos);
  EXPECT_EQ(page.find("two\nlines"), page.npos);
  const auto trials = sweep::read_store(store(), "s").trials;
  ASSERT_EQ(trials.size(), 4U);
  EXPECT_EQ(trials[0].cell.find("b.c")->text, longest + '1');
  EXPECT_EQ(trials[2].cell.find("b.c")->text, foreign);
  EXPECT_EQ(trials[3].cell.find("b.c")->text, "two\nlines");
  std::set<std::string> names;
  for (const auto& trial : trials) {
    names.insert(trial.run_name);
    EXPECT_LE(trial.run_name.size() + 5, 255U) << "with .json";
    EXPECT_EQ(trial.value, 0.5);
    const std::string history = file(trial.run_name + "/history.json");
    EXPECT_NE(history.find("\"val_acc\":[null,0.5]"), history.npos) << history;
  }
  EXPECT_EQ(names.size(), 4U) << "unlike in their numbers";
  const std::string table = file("run_data.csv");
  EXPECT_NE(table.find(',' + longest + "1,"), table.npos);
  EXPECT_NE(table.find(",\"Größe 模型,\"\"x\"\"\","), table.npos);
  EXPECT_NE(table.find(",two\\nlines,"), table.npos) << "a record is one line";
  EXPECT_EQ(std::ranges::count(table, '\n'), 5);
}

}  // namespace
}  // namespace tare::testing
