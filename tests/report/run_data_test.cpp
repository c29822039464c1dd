// Tests what the page of a run draws, as JSON and as tables.
#include "tare/report/run_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/run_folder.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"

namespace tare::report {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace tare::testing;

/// A run with a search for a rate, a classification and a recording of its memory.
class DataOfARun : public ::testing::Test {
 protected:
  DataOfARun() {
    write_run(run());
    write_file(run() / "head.lr_find.csv", "lr,loss,smoothed\n0.001,2,2\n0.01,1,1.5\n");
    write_file(run() / "worst_rows.csv", "row,target,predicted,loss\nhouses.csv:7,2,1,1\n");
    auto report = nlohmann::json::parse(text_of(run() / "report.json"));
    report["classification"] = {{"labels", {"cat", "dog"}},
                                {"counts", {{5, 1}, {2, 4}}},
                                {"worst",
                                 {{{"index", 3},
                                   {"label", "dog"},
                                   {"predicted", "cat"},
                                   {"probability", 0.75},
                                   {"loss", 1.5},
                                   {"name", "dog/3.png"}}}}};
    write_file(run() / "report.json", report.dump());
    write_timeline(run() / "timeline.csv", 30);
  }
  [[nodiscard]] fs::path run() const { return folder_ / "run"; }
  static std::string text_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  [[nodiscard]] std::string table(const std::string& name) const {
    for (const DataFile& file : run_tables(run()))
      if (file.name == name) return file.text;
    return "none";
  }
  TempDir folder_;
};

TEST_F(DataOfARun, IsOneObject) {
  const auto json = nlohmann::json::parse(run_json(run()));
  EXPECT_EQ(json["name"], "digits");
  EXPECT_THAT(json["recipe"].get<std::string>(), HasSubstr("batch: 64"));
  EXPECT_EQ(json["phases"][0]["epochs"].size(), 3U);
  EXPECT_TRUE(json["phases"][0]["epochs"][2]["valid_loss"].is_null()) << "NaN";
  EXPECT_EQ(json["phases"][1]["steps"].size(), 90U);
  EXPECT_EQ(json["phases"][0]["rates"][1]["smoothed"], 1.5);
  EXPECT_EQ(json["report"]["classification"]["counts"][1][0], 2);
  EXPECT_EQ(json["worst_rows"][0]["name"], "houses.csv:7");
  const auto& memory = json["memory"];
  const size_t stretches = memory["lowest_bytes"].size();
  EXPECT_EQ(memory["time_s"].size(), stretches);
  EXPECT_EQ(memory["bytes"]["parameters"].size(), stretches);
  int64_t at_peak = 0;
  for (const auto& bytes : memory["at_peak"]) at_peak += bytes.get<int64_t>();
  EXPECT_EQ(at_peak, memory["peak_bytes"]);
  EXPECT_TRUE(json["missing"].empty());
}

TEST_F(DataOfARun, IsATableForEachPartOfThePage) {
  std::vector<std::string> names;
  for (const DataFile& file : run_tables(run())) names.push_back(file.name);
  EXPECT_THAT(names, ElementsAre("epochs.csv", "steps.csv", "rates.csv", "phases.csv", "memory.csv",
                                 "predictions.csv", "worst_samples.csv", "worst_rows.csv"));
  EXPECT_THAT(table("epochs.csv"),
              StartsWith("phase,epoch,train_loss,valid_loss,accuracy,seconds\n"
                         "head,0,2.1,2,0.31,1.5\nhead,1,1.2,1.3,0.55,1.5\nhead,2,0.8,,0.7,1.5\n"
                         "all,3,0.5,0.6,0.8,4\n"));
  EXPECT_EQ(std::ranges::count(table("steps.csv"), '\n'), 181);
  EXPECT_THAT(table("steps.csv"), StartsWith("phase,step,loss,lr\nhead,1,"));
  EXPECT_EQ(table("rates.csv"), "phase,lr,loss,smoothed\nhead,0.001,2,2\nhead,0.01,1,1.5\n");
  EXPECT_THAT(table("phases.csv"), HasSubstr("\nhead,5.5,1234.5,5000000,0,5000000,,5000000,0\n"));
  EXPECT_THAT(table("memory.csv"), StartsWith("time_s,lowest_bytes,"));
  EXPECT_EQ(table("predictions.csv"),
            "label,predicted,samples\ncat,cat,5\ncat,dog,1\ndog,cat,2\ndog,dog,4\n");
  EXPECT_EQ(table("worst_samples.csv"),
            "index,name,label,predicted,probability,loss\n3,dog/3.png,dog,cat,0.75,1.5\n");
}

TEST_F(DataOfARun, HasAColumnOfItsOwnForALabelThatIsCalledAsAnother) {
  auto report = nlohmann::json::parse(text_of(run() / "report.json"));
  const nlohmann::json counts = {
      {"true_positives", 1}, {"false_positives", 0}, {"false_negatives", 0}, {"true_negatives", 1}};
  report["classification"] = {{"labels", {"cat", "loss"}},
                              {"counts", nlohmann::json::array()},
                              {"worst",
                               {{{"index", 3},
                                 {"label", "cat"},
                                 {"predicted", "loss"},
                                 {"probability", nullptr},
                                 {"loss", 1.5},
                                 {"probabilities", {0.25, 0.75}}}}},
                              {"label_counts", {counts, counts}}};
  write_file(run() / "report.json", report.dump());
  EXPECT_EQ(table("worst_samples.csv"),
            "index,name,label,predicted,probability,loss,cat,label.loss\n"
            "3,,cat,loss,,1.5,0.25,0.75\n");
}

TEST_F(DataOfARun, SaysWhatIsMissing) {
  for (const char* file : {"report.json", "timeline.csv", "worst_rows.csv", "head.lr_find.csv"})
    fs::remove(run() / file);
  const auto json = nlohmann::json::parse(run_json(run()));
  EXPECT_TRUE(json["report"].is_null());
  EXPECT_TRUE(json["memory"].is_null());
  EXPECT_THAT(json["missing"][0].get<std::string>(), HasSubstr("has not ended"));
  std::vector<std::string> names;
  for (const DataFile& file : run_tables(run())) names.push_back(file.name);
  EXPECT_THAT(names, ElementsAre("epochs.csv", "steps.csv"));
}

TEST_F(DataOfARun, SaysWhyTheRunFailed) {
  EXPECT_TRUE(nlohmann::json::parse(run_json(run()))["failure"].is_null());
  fs::remove(run() / "report.json");
  write_file(run() / "failure.json",
             R"({"reason":"no room","phase":"all","epoch":2,"steps":9,"time_s":1795000000})");
  const auto json = nlohmann::json::parse(run_json(run()));
  EXPECT_EQ(json["failure"]["reason"], "no room");
  EXPECT_THAT(json["missing"][0].get<std::string>(),
              StartsWith("The run failed in phase all, epoch 2, after 9 steps, at 20"));
}

// Reads what the callbacks csv_log and steps_log of a program write, without a recipe.
TEST_F(DataOfARun, IsReadFromTheTablesOfAProgram) {
  const fs::path own = folder_ / "own";
  fs::create_directories(own);
  EXPECT_THROW((void)run_json(own), ConfigError);
  fs::copy(run() / "head.csv", own / "history.csv");
  fs::copy(run() / "head.steps.csv", own / "steps.csv");
  const auto json = nlohmann::json::parse(run_json(own));
  EXPECT_EQ(json["name"], "own");
  EXPECT_EQ(json["phases"][0]["name"], "history");
  EXPECT_EQ(json["phases"][0]["epochs"].size(), 3U);
  EXPECT_EQ(json["phases"][0]["steps"].size(), 90U);
  EXPECT_THAT(json["missing"][0].get<std::string>(), HasSubstr("history.csv"));
}

}  // namespace
}  // namespace tare::report
