// Tables with the commands: check, validate, plan, run, kill and resume, inspect and predict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/program.h"
#include "support/temp_dir.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class TableCommands : public ::testing::Test {
 protected:
  TableCommands() {
    std::ofstream table(folder_ / "t.csv");
    table << "size;colour;kind\n";
    for (int i = 0; i < 60; ++i)
      table << (i % 9 == 0 ? "" : std::to_string(i % 10)) << ';' << (i % 2 == 0 ? "red" : "blue")
            << ';' << (i % 10 < 5 ? "small" : "large") << '\n';
    std::ofstream(folder_ / "r.yaml")
        << "name: t\ndevice: cpu\nbatch: 16\ndata: {name: csv, file: t.csv, target: kind}\n"
           "model: {name: tabular, hidden: [8]}\nphases: [{name: only, epochs: 10, lr: 0.03}]\n"
           "export: t.tare\n";
  }
  [[nodiscard]] ProgramResult tare(const std::vector<std::string>& words) const {
    return run_program("tare", words, folder_.path());
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  TempDir folder_;
};

TEST_F(TableCommands, PlanRunAndPredict) {
  EXPECT_EQ(tare({"validate", "r.yaml"}).status, 0);
  EXPECT_THAT(tare({"plan", "r.yaml"}).out, HasSubstr("fits"));
  const auto run = tare({"run", "r.yaml"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("(planned "));
  const auto inspected = tare({"inspect", "runs/t/t.tare"});
  EXPECT_THAT(inspected.out, HasSubstr("colour: 2 categories, blue, red"));
  EXPECT_THAT(inspected.out, HasSubstr("size: a number of mean"));
  write("new.csv", "id,colour,size\n1,red,9\n2,green,x\n3,blue,0\n4,red,1e300\n");
  const auto separated = tare({"predict", "runs/t", "new.csv"});
  EXPECT_EQ(separated.status, 2);
  EXPECT_THAT(separated.out, HasSubstr("new.csv:2: large "));
  EXPECT_THAT(separated.out, HasSubstr("new.csv:4: small "));
  EXPECT_THAT(separated.out, Not(HasSubstr("new.csv:3")));
  EXPECT_THAT(separated.err, HasSubstr("the model does not take id, which it ignores"));
  EXPECT_THAT(separated.err,
              HasSubstr("new.csv: line 3: has 'x' in the column 'size', which is of numbers"));
  EXPECT_THAT(separated.err, HasSubstr("new.csv: line 5: has '1e300' in the column 'size'"));
  write("lacks.csv", "id,size\n1,2\n");
  const auto lacks = tare({"predict", "runs/t", "lacks.csv"});
  EXPECT_NE(lacks.status, 0);
  EXPECT_THAT(lacks.err, HasSubstr("'lacks.csv' lacks the column colour of the model"));
  write("new.jsonl", "{\"colour\": \"red\", \"size\": 9}\n");
  const auto lines = tare({"predict", "runs/t", "new.jsonl", "--json"});
  ASSERT_EQ(lines.status, 0) << lines.err;
  EXPECT_EQ(nlohmann::json::parse(lines.out)[0]["predictions"][0]["label"], "large");
}

TEST_F(TableCommands, CheckATable) {
  const auto good = tare({"data", "check", "t.csv", "--target", "kind"});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("60 rows; 2 classes: large, small"));
  write("bad.csv", "a,b\n1,x\n2\n3,\n");
  const auto bad = tare({"data", "check", "bad.csv", "--target", "b"});
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.out, HasSubstr("error: line 3 has 1 field, and the head has 2"));
  EXPECT_THAT(bad.out, HasSubstr("error: line 4, column 'b' is missing, and it is the target"));
  const auto json = tare({"data", "check", "bad.csv", "--json", "--target", "b"});
  const auto page = nlohmann::json::parse(json.out);
  EXPECT_EQ(page["problem_count"], 2);
  EXPECT_EQ(page["problems"][0]["line"], 3);
  EXPECT_EQ(page["columns"][0]["name"], "a");
  const auto folder = tare({"data", "check", ".", "--target", "b"});
  EXPECT_EQ(folder.status, 2);
  EXPECT_THAT(folder.err, HasSubstr("--target is for the file of a table"));
  const auto make = tare({"data", "make", "generated_digits", "--target", "b"});
  EXPECT_THAT(make.err, HasSubstr("--target is an option of tare data check"));
}

TEST_F(TableCommands, RefuseBadTablesBeforeTheRun) {
  write("bad.csv", "a,b\n1,x\n2\n3,\n");
  for (const char* command : {"validate", "plan", "run"}) {
    const auto result = tare({command, "r.yaml", "data.file=bad.csv", "data.target=b"});
    EXPECT_NE(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("bad.csv: line 3: has 1 field, and the head has 2; 1 more "
                                      "problem: `tare data check bad.csv` lists them"))
        << command;
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  const auto typo = tare({"validate", "r.yaml", "data.target=kid"});
  EXPECT_EQ(typo.status, 2);
  EXPECT_THAT(typo.err, HasSubstr("data.target is no column of t.csv (did you mean \"kind\"?)"));
}

}  // namespace
}  // namespace tare::testing
