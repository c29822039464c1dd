// Tables with the commands: check, validate, plan, run, kill and resume, inspect and predict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/tare_folder.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class TableCommands : public ::testing::Test, protected TareFolder {
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
  write("new.json", "[{\"colour\": \"red\", \"size\": 9},\n {\"colour\": \"red\", \"size\": 1}]\n");
  const auto array = tare({"predict", "runs/t", "new.json", "--json"});
  ASSERT_EQ(array.status, 0) << array.err;
  EXPECT_EQ(nlohmann::json::parse(array.out)[0]["predictions"][0]["label"], "large");
  EXPECT_EQ(nlohmann::json::parse(array.out)[1]["line"], 2);
  const auto rows = tare({"predict", "runs/t", "new.jsonl", "--csv", "--top", "2"});
  EXPECT_THAT(rows.out,
              ContainsRegex("^path,line,output,index,label,value\nnew.jsonl,1,,[01],large,"
                            "0\\.[0-9]+\nnew.jsonl,1,,[01],small,0\\.[0-9e-]+\n$"));
  const auto both = tare({"predict", "runs/t", "new.jsonl", "--csv", "--json"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--json and --csv exclude each other"));
}

TEST_F(TableCommands, PredictSeveralLabels) {
  std::string text = "size;colour;small;red\n";
  for (int i = 0; i < 60; ++i)
    text += std::to_string(i % 10) + (i % 2 == 0 ? ";red;" : ";blue;") +
            (i % 10 < 5 ? "1;" : "0;") + (i % 2 == 0 ? "1\n" : "0\n");
  write("labels.csv", text);
  write("labels.yaml",
        "name: t\ndevice: cpu\nbatch: 16\ndata: {name: csv, file: labels.csv, targets: [small, "
        "red]}\nmodel: {name: tabular, hidden: [8]}\nloss: bce_with_logits\nmetrics: [{accuracy: "
        "{threshold: 0.5}}]\nphases: [{epochs: 20, lr: 0.05}]\nexport: t.tare\n");
  const auto check = tare({"data", "check", "labels.yaml"});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_THAT(check.out, ContainsRegex("small +label, target +0 +2 +0 +0.5 +1"));
  EXPECT_EQ(tare({"data", "check", "labels.csv", "targets=[small, red]"}).out, check.out);
  const auto run = tare({"run", "labels.yaml"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("(planned "));
  const auto predicted = tare({"predict", "runs/t", "labels.csv", "--json"});
  ASSERT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.err, Not(HasSubstr("ignores"))) << "the targets are in the file";
  for (const auto& one : nlohmann::json::parse(predicted.out).at(0).at("predictions")) {
    EXPECT_GT(one.at("probability"), 0.5) << one;  // a small red one
  }
  const auto inspected = tare({"inspect", "runs/t/t.tare"});
  EXPECT_THAT(inspected.out, ContainsRegex("targets +small, red"));
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
  EXPECT_FALSE(page["columns"][0]["target"]);
  const auto folder = tare({"data", "check", ".", "--target", "b"});
  EXPECT_EQ(folder.status, 2);
  EXPECT_THAT(folder.err, HasSubstr("--target is for the file of a table"));
  const auto make = tare({"data", "make", "generated_digits", "--target", "b"});
  EXPECT_THAT(make.err, HasSubstr("--target is an option of tare data check"));
}

TEST_F(TableCommands, CheckATableByTheOptionsOfItsDataSet) {
  write("bad.csv", "id|n|y\n1|1.5|a\n2|-|b\n3|2.5|a\n");
  const auto plain = tare({"data", "check", "bad.csv"});
  EXPECT_THAT(plain.out, HasSubstr("has one column only, 'id|n|y'"));
  const auto good = tare({"data", "check", "bad.csv", "target=y", "separator=\"|\"", "omit=[id]",
                          "data.missing_values=['-']", "--json"});
  ASSERT_EQ(good.status, 0) << good.err << good.out;
  const auto page = nlohmann::json::parse(good.out);
  ASSERT_EQ(page["columns"].size(), 2U);
  EXPECT_EQ(page["columns"][0]["kind"], "number");
  EXPECT_EQ(page["columns"][0]["missing"], 1);
  EXPECT_EQ(page["columns"][1]["name"], "y");
  EXPECT_EQ(page["columns"][1]["kind"], "class");
  EXPECT_EQ(page["columns"][1]["target"], true);
  EXPECT_THAT(tare({"data", "check", "bad.csv", "folder=x"}).err,
              HasSubstr("folder is not taken by the data set csv"));
  EXPECT_THAT(tare({"data", "check", "bad.csv", "file=t.csv"}).err,
              HasSubstr("file is the one that the command names"));
  EXPECT_THAT(
      tare({"data", "check", ".", "target=y"}).err,
      HasSubstr("'target=y' is for the file of a table or for a recipe, and '.' is neither"));
  EXPECT_THAT(tare({"data", "make", "generated_digits", "count=3"}).err,
              HasSubstr("'count=3' is one argument too many"));
}

TEST_F(TableCommands, CheckTheDataOfARecipe) {
  const auto good = tare({"data", "check", "r.yaml"});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("class, target"));
  EXPECT_THAT(good.out, HasSubstr("60 rows; 2 classes: large, small"));
  std::string text = "size;colour;kind\n";
  for (int i = 0; i < 1200; ++i) text += std::to_string(i) + ";red\n";
  for (int i = 0; i < 2; ++i) text += "1;red;k" + std::to_string(i) + '\n';
  write("bad.csv", text);
  const auto bad = tare({"data", "check", "r.yaml", "data.file=bad.csv"});
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.out, HasSubstr("error: line 1001 has 2 fields, and the head has 3\n"));
  EXPECT_THAT(bad.out, Not(HasSubstr("error: line 1002 ")));
  EXPECT_THAT(bad.out, HasSubstr("error: the first 1,000 of 1,200 are listed\n"));
  EXPECT_THAT(bad.out, HasSubstr("1,200 errors"));
  EXPECT_THAT(tare({"data", "check", "r.yaml", "--target", "kind"}).err,
              HasSubstr("'r.yaml' is a recipe: give data.target=COLUMN"));
}

TEST_F(TableCommands, WarnOfTextsThatTheTrainingDidNotHave) {
  ASSERT_EQ(tare({"run", "r.yaml", "phases.0.epochs=1"}).status, 0);
  write("new.csv", "colour,size\nred,9\ngreen,1\nblue,0\npink,2\n");
  const auto predicted = tare({"predict", "runs/t", "new.csv"});
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(
      predicted.err,
      HasSubstr("new.csv: the column 'colour' has 2 fields with a text that the training did "
                "not have, such as 'green': the model takes each as unknown"));
  write("new.csv", "colour;size\nred;\nblue;1,5\nblue;2024-01-31\n");
  const auto refused = tare({"predict", "runs/t", "new.csv"});
  EXPECT_THAT(refused.err, Not(HasSubstr("the training did not have")));
  EXPECT_THAT(
      refused.err,
      HasSubstr("line 3: has '1,5' in the column 'size', which is of numbers: a number has a "
                "decimal point and no comma"));
  EXPECT_THAT(refused.err, HasSubstr("line 4: has '2024-01-31' in the column 'size', which is of "
                                     "numbers: it looks like a date"));
}

TEST_F(TableCommands, RefuseTopForAModelOfValues) {
  const auto run = tare({"run", "r.yaml", "data.target=size", "data.numbers=[size]", "loss=mse",
                         "metrics=[mae]", "data.file=s.csv", "phases.0.epochs=1"});
  EXPECT_THAT(run.err, HasSubstr("data.file is not there"));
  std::string text = "size;colour;kind\n";
  for (int i = 0; i < 60; ++i)
    text += std::to_string(i) + (i % 2 == 0 ? ";red;small\n" : ";blue;large\n");
  write("s.csv", text);
  ASSERT_EQ(tare({"run", "r.yaml", "data.target=size", "data.numbers=[size]", "loss=mse",
                  "metrics=[mae]", "data.file=s.csv", "phases.0.epochs=1"})
                .status,
            0);
  const auto top = tare({"predict", "runs/t", "s.csv", "--top", "2"});
  EXPECT_EQ(top.status, 2);
  EXPECT_EQ(top.out, "");
  EXPECT_THAT(top.err, HasSubstr("--top is for a model of classes, and the outputs of this one are "
                                 "values: omit it"));
  EXPECT_EQ(tare({"predict", "runs/t", "s.csv"}).status, 0);
  EXPECT_THAT(tare({"predict", "runs/t", "s.csv", "--csv"}).out,
              ContainsRegex("^path,line,output,index,label,value\ns.csv,2,,0,size,-?[0-9.e-]+\n"));
}

TEST_F(TableCommands, NameSeveralTargetsInPredictions) {
  std::string text = "size,price,age\n";
  for (int i = 0; i < 60; ++i)
    text += std::to_string(i) + ',' + std::to_string(i % 7) + ',' + std::to_string(i % 5) + '\n';
  write("several.csv", text);
  const auto run =
      tare({"run", "r.yaml", "data={name: csv, file: several.csv, targets: [price, age]}",
            "loss=mse", "metrics=[mae]", "phases.0.epochs=1"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(tare({"predict", "runs/t", "several.csv", "--csv"}).out,
              ContainsRegex("\nseveral.csv,2,,0,price,-?[0-9.e-]+\n"
                            "several.csv,2,,1,age,-?[0-9.e-]+\n"));
  const auto json = tare({"predict", "runs/t", "several.csv", "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out).at(0).at("targets"), nlohmann::json({"price", "age"}));
}

TEST_F(TableCommands, NameTheRecipeInTheFolderOfARun) {
  ASSERT_EQ(tare({"run", "r.yaml", "phases.0.epochs=1"}).status, 0);
  const auto folder = tare({"run", "runs/t", "--resume"});
  EXPECT_EQ(folder.status, 2);
  EXPECT_THAT(
      folder.err,
      HasSubstr("'runs/t' is a folder: name the file of a recipe, here runs/t/recipe.yaml; "
                "`tare run runs/t/recipe.yaml --resume` continues an unfinished run of it"));
  EXPECT_THAT(tare({"validate", "runs"}).err,
              HasSubstr("'runs' is a folder: name the file of a recipe"));
}

TEST_F(TableCommands, RefuseBadTablesBeforeTheRun) {
  write("bad.csv", "a,b\n1,x\n2\n3,\n");
  for (const char* command : {"validate", "plan", "run"}) {
    const auto result = tare({command, "r.yaml", "data.file=bad.csv", "data.target=b"});
    EXPECT_NE(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("bad.csv: line 3: has 1 field, and the head has 2; 1 more "
                                      "problem: `tare data check bad.csv name=csv target=b` "
                                      "lists them"))
        << command;
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  const auto typo = tare({"validate", "r.yaml", "data.target=kid"});
  EXPECT_EQ(typo.status, 2);
  EXPECT_THAT(typo.err, HasSubstr("data.target is no column of t.csv (did you mean \"kind\"?)"));
}

}  // namespace
}  // namespace tare::testing
