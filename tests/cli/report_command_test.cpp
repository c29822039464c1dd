// `tare report` and `tare compare` with their data as JSON and as tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/run_folder.h"
#include "support/program.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Reported : public ::testing::Test {
 protected:
  Reported() { write_run(folder_ / "run"); }
  [[nodiscard]] ProgramResult tare(const std::vector<std::string>& words) const {
    return run_program("tare", words, folder_.path());
  }
  [[nodiscard]] bool has(const char* file) const { return std::filesystem::exists(folder_ / file); }
  TempDir folder_;
};

TEST_F(Reported, AsJsonWritesNoPageUnlessItIsNamed) {
  const auto result = tare({"report", "run", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["phases"][1]["epochs"].size(), 2U);
  EXPECT_FALSE(has("run/report.html"));
  const auto both = tare({"report", "run", "--json", "--out", "page.html"});
  EXPECT_EQ(nlohmann::json::parse(both.out)["name"], "digits");
  EXPECT_TRUE(has("page.html"));
}

TEST_F(Reported, AsTablesWritesAFileForEach) {
  const auto result = tare({"report", "run", "--csv", "new/tables"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("new/tables/epochs.csv\nnew/tables/steps.csv\n"));
  EXPECT_TRUE(has("new/tables/phases.csv"));
  EXPECT_FALSE(has("run/report.html"));
  EXPECT_EQ(tare({"report", "run", "--csv", "new/tables"}).status, 0) << "the same again";
}

TEST_F(Reported, IsRefusedWhereItsTablesWouldReplaceThoseOfARun) {
  const auto into_run = tare({"report", "run", "--csv", "run"});
  EXPECT_EQ(into_run.status, 2);
  EXPECT_THAT(into_run.err, HasSubstr("--csv would write into 'run', which is the folder of a "
                                      "run: give another folder"));
  EXPECT_EQ(tare({"report", "run", "--csv", "tables", "--json"}).status, 2);
  EXPECT_FALSE(has("tables"));
}

TEST_F(Reported, ComparedRunsListNoDefaultsThatOneOfThemLacks) {
  write_run(folder_ / "longer", "all", "longer");
  write_file(folder_ / "longer" / "recipe.yaml",
             "name: longer\nbatch: 64\nphases:\n  - name: head\n    epochs: 3\n  - name: all\n"
             "  - {name: last, freeze_to: 0, micro_batch: null, best: '', epochs: 4, data: "
             "{name: digits, train: 0.5, valid: 0.2, fit: stretch}}\n");
  const auto result = tare({"compare", "run", "longer"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* there : {"\nphases ", "phases.2.name", "phases.2.epochs", "phases.2.data.train"})
    EXPECT_THAT(result.out, HasSubstr(there));
  for (const char* absent : {"freeze_to", "micro_batch", "best", "data.fit", "data.valid"})
    EXPECT_THAT(result.out, Not(HasSubstr(absent)));
  EXPECT_THAT(tare({"compare", "run", "longer", "--csv"}).out,
              StartsWith("kind,name,epoch,digits,longer\nsetting,phases,,2,3\n"));
  EXPECT_EQ(tare({"compare", "run", "longer", "--csv", "--json"}).status, 2);
}

}  // namespace
}  // namespace tare::testing
