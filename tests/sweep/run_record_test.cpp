// The files of a finished run.
#include "tare/sweep/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "report/run_folder.h"
#include "support/fault_file_system.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"

namespace tare::sweep {
namespace {

using nlohmann::ordered_json;
using std::chrono::microseconds;
using std::chrono::system_clock;
using tare::testing::Fault;
using tare::testing::FaultFileSystem;
using tare::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::IsNan;

/// Local time two hours east of Greenwich.
class TwoHoursEast {
 public:
  TwoHoursEast() {
    if (const char* before = std::getenv("TZ")) before_ = before;
    set("EET-2");
  }
  ~TwoHoursEast() { set(before_.c_str()); }
  TwoHoursEast(const TwoHoursEast&) = delete;
  TwoHoursEast& operator=(const TwoHoursEast&) = delete;

 private:
  static void set(const char* zone) {
    if (*zone == '\0')
      ::unsetenv("TZ");
    else
      ::setenv("TZ", zone, 1);
    ::tzset();
  }
  std::string before_;
};

system_clock::time_point at(int64_t microseconds_since_1970) {
  return system_clock::time_point(microseconds(microseconds_since_1970));
}

config::Node config_of(const std::string& text) { return config::parse_text(text, "run.yaml"); }

/// Two epochs, from 2020-12-07 20:00:34.123456 UTC on, for 65.5 s.
RunRecord record(const std::string& config = "{epochs: 2}") {
  return {.config = config_of(config),
          .start = at(1607371234'123456),
          .end = at(1607371299'623456),
          .history = {{"accuracy", {0.25, 0.5}, {0.5, NAN}}, {"loss", {2, 1}, {INFINITY, 1.5}}},
          .results = {}};
}

ordered_json data_of(const RunRecord& run) {
  return ordered_json::parse(run_data_json(run)).at("meta").at("data");
}

TEST(RunRecord, WritesTheHistoryByMetric) {
  EXPECT_EQ(history_json(record()),
            "{\"accuracy\":[0.25,0.5],\"val_accuracy\":[0.5,null],\"loss\":[2.0,1.0],"
            "\"val_loss\":[null,1.5]}\n");
  EXPECT_EQ(history_json({.history = {{"loss", {1}, {}}, {"f1", {}, {0.5}}, {"none", {}, {}}}}),
            "{\"loss\":[1.0],\"val_f1\":[0.5]}\n");
  EXPECT_EQ(history_json({}), "{}\n");
}

TEST(RunRecord, KeepsTheConfigurationTyped) {
  const auto json = ordered_json::parse(run_data_json(record(
      "{lr: 1e-3, whole: 1.0, n: 32, on: true, none: null, name: adam, digits: '32', "
      "list: [1, 2.5, 'x', [true]], map: {b: 1, a: {c: null}}, big: 100000000000000000000}")));
  EXPECT_EQ(json.begin().key(), "lr");
  EXPECT_EQ(json.at("lr"), 0.001);
  EXPECT_TRUE(json.at("whole").is_number_float());
  EXPECT_TRUE(json.at("n").is_number_integer());
  EXPECT_EQ(json.at("on"), true);
  EXPECT_TRUE(json.at("none").is_null());
  EXPECT_EQ(json.at("name"), "adam");
  EXPECT_EQ(json.at("digits"), "32");
  EXPECT_EQ(json.at("list").dump(), "[1,2.5,\"x\",[true]]");
  EXPECT_EQ(json.at("map").dump(), "{\"b\":1,\"a\":{\"c\":null}}");
  EXPECT_EQ(json.at("big"), 1e20);
}

TEST(RunRecord, HoldsTimesAndLastValues) {
  const TwoHoursEast zone;
  const auto data = data_of(record());
  std::vector<std::string> keys;
  for (const auto& [key, value] : data.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("start_time", "start_time_string", "end_time", "end_time_string",
                                "total_time", "total_time_string", "train_accuracy", "val_accuracy",
                                "train_loss", "val_loss", "epochs"));
  EXPECT_EQ(data.at("start_time").dump(), "1607371234.123456");
  EXPECT_EQ(data.at("start_time_string"), "2020-12-07 22:00:34");
  EXPECT_EQ(data.at("end_time").dump(), "1607371299.623456");
  EXPECT_EQ(data.at("end_time_string"), "2020-12-07 22:01:39");
  EXPECT_EQ(data.at("total_time"), 65.5);
  EXPECT_EQ(data.at("total_time_string"), "1m 5s");
  EXPECT_EQ(data.at("train_accuracy"), 0.5);
  EXPECT_TRUE(data.at("val_accuracy").is_null());
  EXPECT_EQ(data.at("val_loss"), 1.5);
  EXPECT_EQ(data.at("epochs"), 2);
}

TEST(RunRecord, AddsTheResultsOfATest) {
  RunRecord run = record();
  run.results = {{"loss", 0.5}, {"accuracy", NAN}};
  EXPECT_EQ(data_of(run).at("results").dump(), "{\"loss\":0.5,\"accuracy\":null}");
}

TEST(RunRecord, AddsPeakAndWhatElseIsKnown) {
  RunRecord known = record();
  EXPECT_FALSE(ordered_json::parse(run_data_json(known))["meta"]["data"].contains("peak_bytes"));
  known.peak_bytes = 4096;
  known.more = {{"epochs", 7}, {"mine", 0.5}};
  const auto data = ordered_json::parse(run_data_json(known))["meta"]["data"];
  EXPECT_EQ(data["peak_bytes"].dump(), "4096");
  EXPECT_EQ(data["epochs"], 7);
  EXPECT_EQ(data["mine"], 0.5);
}

TEST(RunRecord, KeepsWhatMetaHas) {
  const auto meta_of = [](const char* config) {
    return ordered_json::parse(run_data_json(record(config))).at("meta");
  };
  const auto meta = meta_of("{meta: {max_threads: 4, data: {results: 7}, m: {x: 1}}, lr: 1}");
  EXPECT_EQ(meta.at("max_threads"), 4);
  EXPECT_EQ(meta.at("m").at("x"), 1);
  EXPECT_FALSE(meta.at("data").contains("results")) << "of an earlier run";
  EXPECT_EQ(meta.at("data").at("epochs"), 2);
  for (const char* config : {"{meta: null}", "{meta: text}", "{meta: [1]}", "{}"})
    EXPECT_EQ(meta_of(config).at("data").at("epochs"), 2) << config;
}

TEST(RunRecord, RefusesAConfigurationThatIsNoMap) {
  RunRecord run = record();
  run.config = config_of("[1, 2]");
  EXPECT_THROW((void)run_data_json(run), ConfigError);
}

TEST(RunRecord, TakesAClockThatWasSetBackAndNoEpochs) {
  RunRecord run = record();
  std::swap(run.start, run.end);
  run.history.clear();
  const auto data = data_of(run);
  EXPECT_EQ(data.at("total_time"), 0);
  EXPECT_EQ(data.at("total_time_string"), "0s");
  EXPECT_EQ(data.at("epochs"), 0);
}

TEST(RunRecord, WritesDurationsAsFurcateDoes) {
  // From furcate's seconds_to_string() at HEAD, in Python 3.11.
  const std::vector<std::pair<double, const char*>> cases{{0, "0s"},
                                                          {0.4, "0s"},
                                                          {59.9, "59s"},
                                                          {60, "1m 0s"},
                                                          {61, "1m 1s"},
                                                          {3599.999, "59m 59s"},
                                                          {3600, "1h 0m 0s"},
                                                          {3661, "1h 1m 1s"},
                                                          {86399, "23h 59m 59s"},
                                                          {86400, "1d 0h 0m 0s"},
                                                          {172800, "2d 0h 0m 0s"},
                                                          {176461.5, "2d 1h 1m 1s"}};
  for (const auto& [seconds, text] : cases)
    EXPECT_EQ(duration_text(microseconds(std::llround(seconds * 1e6))), text);
}

TEST(RunRecord, WritesEveryFile) {
  const TempDir folder;
  RunRecord run = record("{text: '\xc3\xa4'}");
  run.history.push_back({"top 5/\xff", {}, {0.5, 0.75}});
  run.history.push_back({"once", {}, {0.5}});
  write_run_files(folder.path(), run);
  EXPECT_EQ(io::read_text(folder / "history.json"), history_json(run));
  EXPECT_EQ(io::read_text(folder / "run_data.json"), run_data_json(run));
  size_t svg = 0, png = 0, all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    svg += entry.path().extension() == ".svg" ? 1 : 0;
    png += entry.path().extension() == ".png" ? 1 : 0;
    ++all;
  }
  EXPECT_EQ(svg, 3U);
  EXPECT_EQ(png, 3U);
  EXPECT_EQ(all, 8U);
  EXPECT_TRUE(std::filesystem::exists(folder / "loss.svg"));
  EXPECT_EQ(io::read_text(folder / "accuracy.png").substr(1, 3), "PNG");
}

TEST(RunRecord, HasNoRunDataUntilAllElseIsThere) {
  const TempDir folder;
  int64_t calls = 0;
  {
    const FaultFileSystem counting;
    write_run_files(folder.path(), record());
    calls = counting.count();
  }
  std::filesystem::remove(folder / "run_data.json");
  for (int64_t call : {int64_t{1}, calls / 2}) {
    const FaultFileSystem full({.at = call, .error_number = ENOSPC, .sticky = true});
    EXPECT_THROW(write_run_files(folder.path(), record()), IoError) << call;
    EXPECT_FALSE(std::filesystem::exists(folder / "run_data.json")) << call;
  }
}

TEST(RunRecord, IsReadFromTheFilesThatItWrote) {
  const TempDir folder;
  EXPECT_FALSE(read_run_data(folder.path()).has_value());
  EXPECT_TRUE(read_history(folder.path(), "loss").empty());
  RunRecord run = record();
  run.peak_bytes = 4096;
  write_run_files(folder.path(), run);
  const auto data = read_run_data(folder.path());
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(data->find("start_time"), 1607371234.123456);
  EXPECT_EQ(data->find("end_time"), 1607371299.623456);
  EXPECT_EQ(data->find("peak_bytes"), 4096);
  EXPECT_EQ(data->find("val_loss"), 1.5);
  EXPECT_THAT(data->find("val_accuracy").value(), IsNan());
  EXPECT_FALSE(data->find("val_f1").has_value());
  EXPECT_THAT(read_history(folder.path(), "val_accuracy"), ElementsAre(0.5, IsNan()));
  EXPECT_TRUE(read_history(folder.path(), "val_f1").empty());
  for (const char* other : {"{", "[]", "{\"meta\": 3}", "{\"meta\": {\"data\": []}}"}) {
    io::write_atomically(folder / "run_data.json", other);
    EXPECT_FALSE(read_run_data(folder.path()).has_value()) << other;
  }
}

TEST(RunRecord, IsMadeFromTheFilesOfARun) {
  const TempDir folder;
  tare::testing::write_run(folder / "digits");
  const auto files = report::read_run(folder / "digits", folder / "digits");
  const RunRecord run = record_of(files, config_of("{a: 1}"), at(1), at(2));
  ASSERT_EQ(run.history.size(), 2U);
  EXPECT_EQ(run.history[0].name, "loss");
  EXPECT_THAT(run.history[0].train, ElementsAre(2.1, 1.2, 0.8, 0.5, 0.3));
  EXPECT_THAT(run.history[0].valid, ElementsAre(2, 1.3, IsNan(), 0.6, 0.4));
  EXPECT_EQ(run.history[1].name, "accuracy");
  EXPECT_TRUE(run.history[1].train.empty());
  EXPECT_THAT(run.history[1].valid, ElementsAre(0.31, 0.55, 0.7, 0.8, 0.9));
  ASSERT_EQ(run.results.size(), 2U);
  EXPECT_EQ(run.results[1].name, "accuracy");
  EXPECT_EQ(run.results[1].value, 0.913);
  EXPECT_EQ(run.start, at(1));
  EXPECT_EQ(run.end, at(2));
}

TEST(RunRecord, AlignsTheMetricsOfPhases) {
  const report::RunFiles files{
      .phases = {
          {.name = "a", .epochs = {{.train_loss = 1, .valid_loss = NAN, .metrics = {{"f1", 0.5}}}}},
          {.name = "b",
           .epochs = {
               {.train_loss = 0.5, .valid_loss = NAN, .metrics = {{"auc", 0.75}, {"f1", 0.25}}}}}}};
  const RunRecord run = record_of(files, config::Node::map(), at(0), at(0));
  EXPECT_TRUE(run.history[0].valid.empty()) << "no validation loss was measured";
  EXPECT_THAT(run.history[1].valid, ElementsAre(0.5, 0.25));
  EXPECT_EQ(run.history[2].name, "auc");
  EXPECT_THAT(run.history[2].valid, ElementsAre(IsNan(), 0.75));
  EXPECT_TRUE(run.results.empty());
}

}  // namespace
}  // namespace tare::sweep
