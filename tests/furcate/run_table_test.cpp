// run_data.csv with furcate's columns, read as RFC 4180 says.
#include "tare/furcate/run_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "sweep/shell_sweep.h"
#include "tare/furcate/configuration.h"
#include "tare/furcate/recorder.h"

namespace tare::testing {
namespace {

using furcate::RunTable;
using search::TrialState;
using sweep::Trial;
using ::testing::ElementsAre;

using Table = std::vector<std::vector<std::string>>;

/// Rows of fields; a field in quotes may have line breaks.
Table parsed(const std::string& text) {
  Table table;
  std::vector<std::string> row(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool twice = text.compare(i, 2, "\"\"") == 0;
    if (quoted && twice) {
      row.back() += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == ',' && !quoted) {
      row.emplace_back();
    } else if (text[i] == '\n' && !quoted) {
      table.push_back(std::exchange(row, {""}));
    } else {
      row.back() += text[i];
    }
  }
  EXPECT_FALSE(quoted);
  return table;
}

class RunTableTest : public ::testing::Test {
 protected:
  /// A run that has ended and left `run_data`; none if that is empty.
  Trial run(int64_t number, const std::string& run_data, TrialState state = TrialState::complete) {
    const Trial trial{
        .number = number, .state = state, .run_name = "r" + std::to_string(number), .cell = {}};
    io::make_directories(folder_ / trial.run_name);
    if (!run_data.empty())
      io::write_atomically(folder_ / trial.run_name / "run_data.json", run_data);
    return trial;
  }
  [[nodiscard]] Table table(const std::vector<Trial>& ended) { return parsed(table_.text(ended)); }

  TempDir folder_;
  RunTable table_{folder_.path()};
};

TEST_F(RunTableTest, HasEveryKeyThenTheDataAndMetaWithoutThem) {
  const auto all = table({run(0, R"({"log_dir": "logs/r0", "learning_rate": 1e-05, "cache": false,
      "meta": {"allow_cpu": true, "max_threads": -1, "data": {"start_time": 1607371234.123456,
        "results": {"loss": 0.5}, "val_loss": null, "epochs": 2}}, "framework": "tare",
      "sizes": [1, 2.0, "x"], "none": null})")});
  EXPECT_THAT(all[0],
              ElementsAre("log_dir", "learning_rate", "cache", "meta", "framework", "sizes", "none",
                          "run_start_time", "run_results", "run_val_loss", "run_epochs"));
  EXPECT_THAT(all[1], ElementsAre("logs/r0", "1e-05", "False",
                                  "{'allow_cpu': True, 'max_threads': -1}", "tare", "[1, 2.0, 'x']",
                                  "", "1607371234.123456", "{'loss': 0.5}", "", "2"));
}

TEST_F(RunTableTest, KeepsTheColumnsOfTheFirstRowAndAddsWhatOthersHave) {
  const auto all = table({run(0, R"({"b": 1, "a": 2, "meta": {"data": {"x": 1}}})"),
                          run(1, R"({"new": 7, "a": 3, "meta": {"data": {"y": 4}}})")});
  EXPECT_THAT(all[0], ElementsAre("b", "a", "meta", "run_x", "new", "run_y"));
  EXPECT_THAT(all[1], ElementsAre("1", "2", "{}", "1", "", ""));
  EXPECT_THAT(all[2], ElementsAre("", "3", "{}", "", "7", "4"));
}

TEST_F(RunTableTest, KeepsWhatTextHolds) {
  const std::string all_bytes(500, 'q');
  const auto all = table({run(0, R"({"comma,": "a,b", "quote": "say \"it\"", "lines": "one\ntwo\r",
      "text": "Größe 模型", "digits": "007", "formula": "=1+1", "minus": -2, "long": ")" +
                                     all_bytes + R"(", "meta": {}})")});
  EXPECT_THAT(all[0], ElementsAre("comma,", "quote", "lines", "text", "digits", "formula", "minus",
                                  "long", "meta"));
  EXPECT_THAT(all[1], ElementsAre("a,b", "say \"it\"", "one\ntwo\r", "Größe 模型", "007", "'=1+1",
                                  "-2", all_bytes, "{}"));
}

TEST_F(RunTableTest, HasNoRowWithoutRunData) {
  const auto failed = run(0, R"({"a": 1, "meta": {}})", TrialState::failed);
  const auto not_yet = run(1, ""), damaged = run(2, R"({"a": )"), other = run(3, "[]");
  EXPECT_THAT(table({failed, not_yet, damaged, other}), ElementsAre(ElementsAre("")));
  (void)run(1, R"({"a": 1, "meta": {}})");
  (void)run(2, R"({"a": 2, "meta": {}})");
  EXPECT_THAT(
      table({failed, not_yet, damaged, other}),
      ElementsAre(ElementsAre("a", "meta"), ElementsAre("1", "{}"), ElementsAre("2", "{}")));
}

TEST_F(RunTableTest, KeepsEachRowOfTheFileOfWhichNothingNewIsKnown) {
  const std::string header = "log_dir,lr,\"a,b\",run_val_loss\n";
  const std::string first = "logs/r0/,1e-03,\"say \"\"it\"\",\nfor me\",0.50\n";
  const std::string second = "\"logs/r1\",0.10,,\n", failed = "logs/r2,1,,0.5\n";
  const std::string other = "logs/other7,1.0,x,\n";
  const auto file = folder_ / "run_data.csv";
  io::write_atomically(file, header + other + first + second + failed);
  const auto runs = {run(0, ""), run(1, ""), run(2, "", TrialState::failed)};
  EXPECT_EQ(table_.text(runs), header + first + second + other);
  EXPECT_EQ(table_.text({}), header + other + first + second + failed) << "they may still wait";
  (void)run(1, R"({"log_dir": "logs/r1", "lr": 2, "more": 3, "meta": {}})");
  EXPECT_THAT(parsed(RunTable(folder_.path()).text(runs)).at(2),
              ElementsAre("logs/r1", "2", "", "", "3", "{}"));
}

TEST_F(RunTableTest, WarnsOfRowsOfTheFileThatItCannotKeep) {
  io::write_atomically(folder_ / "run_data.csv", "log_dir,lr\nlogs/r0,1\n\nlogs/r1\nlogs/r2,\"1\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(table_.text({}), "log_dir,lr\nlogs/r0,1\n") << "rows behind would be part of the field";
  const std::string warned = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(warned, ::testing::HasSubstr("row 2 of"));
  EXPECT_THAT(warned, ::testing::HasSubstr("row 3 of"));
}

class FurcateSweepTest : public ShellSweepTest {
 protected:
  [[nodiscard]] sweep::SweepOptions config(const std::string& keys) const {
    (void)read("parameters: {a: [1]}\n");  // the recipe's folder
    const auto folder = files_.log_dir().parent_path();
    io::write_atomically(folder / "config.json",
                         R"({"data_name": "e", "data_dir": "foo/", "batch_size": 8, "epochs": 2,
        "meta": {"allow_cpu": true, "max_threads": 2}, "recipe": ")" +
                             (folder / "recipe.yaml").string() + R"(", "log_dir": ")" +
                             files_.log_dir().string() + "\", " + keys + "}");
    return furcate::read_sweep(folder / "config.json", {});
  }
};

TEST_F(FurcateSweepTest, ARecipesSweepHasFurcatesColumns) {
  const auto sweep = config(R"("a": [3, 4])");
  auto host = host_of(sweep, "test $a = 4 && echo no >&2 && exit 1; pause=0; train 0.5 0.25");
  const auto recorder = furcate::recorder_of(sweep);
  host.recorder = recorder.get();
  EXPECT_EQ(sweep::run_sweep(sweep, host).failed, 1);
  const auto all = parsed(file("run_data.csv"));
  ASSERT_EQ(all.size(), 2U) << "one that has failed has no row";
  std::vector<std::string> header = all[0];
  ASSERT_GT(header.size(), 16U);
  const std::vector<std::string> data(header.begin() + 16, header.end());
  header.resize(16);
  EXPECT_THAT(header,
              ElementsAre("log_dir", "learning_rate", "verbose", "cache", "seed", "prefetch",
                          "meta", "data_name", "data_dir", "batch_size", "epochs", "recipe", "a",
                          "train_prefix", "valid_prefix", "test_prefix"));
  EXPECT_THAT(data, ElementsAre("gpu_id", "run_start_time", "run_start_time_string", "run_end_time",
                                "run_end_time_string", "run_total_time", "run_total_time_string",
                                "run_train_loss", "run_val_loss", "run_val_acc", "run_epochs"));
  EXPECT_EQ(all[1][0], (files_.log_dir() / "e0_foo_a3").string());
  EXPECT_EQ(all[1][6].substr(0, 34), "{'allow_cpu': True, 'max_threads':");
  EXPECT_EQ(all[1][12], "3");
  EXPECT_EQ(all[1][16], "-1");
  EXPECT_EQ(all[1][25], "0.25");
}

TEST_F(FurcateSweepTest, TheLogCountsRunsThatWereStoppedAmongThoseThatRemain) {
  const auto sweep = config(R"("a": [1, 2, 3])");
  auto host =
      host_of(sweep, "trap 'exit 143' TERM; : > $folder/begun; while :; do sleep 0.01; done");
  const auto recorder = furcate::recorder_of(sweep);
  host.recorder = recorder.get();
  host.predict = [](const auto&) { return std::optional<int64_t>(1); };  // two at a time
  host.interrupted = [this] {
    return std::filesystem::exists(files_.log_dir() / "e0_foo_a1/begun") &&
           std::filesystem::exists(files_.log_dir() / "e1_foo_a2/begun");
  };
  EXPECT_TRUE(sweep::run_sweep(sweep, host).interrupted);
  const std::string log = file("furcate.log");
  EXPECT_THAT(log, ::testing::ContainsRegex("e0_foo_a1 has ended[^\n]*; 3 runs remain"));
  EXPECT_THAT(log, ::testing::ContainsRegex("e1_foo_a2 has ended[^\n]*; 3 runs remain"));
}

}  // namespace
}  // namespace tare::testing
