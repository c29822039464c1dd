// Tests that a run's files are read as they were written, and damage is found by file and key.
#include "tare/report/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "report/run_folder.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/report/json_fields.h"
#include "tare/report/run_tables.h"

namespace tare::report {
namespace {

using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace tare::testing;

/// Sets every listed field to a value of its own that is not its default, all lists to two items.
class Filler {
 public:
  template <class T>
  void operator()(const char*, T& value, Presence = Presence::always) {
    fill(value);
  }
  template <class T>
  void by_name(const char*, std::vector<T>& values) {
    for (int i = 0; i < 2; ++i) {
      T& each = values.emplace_back();
      fill(each.name);
      fill(each.value);
    }
  }
  template <class Enum, size_t N>
  void one_of(const char*, Enum& value, const std::array<const char*, N>&) {
    value = static_cast<Enum>(N - 1);
  }

 private:
  void fill(bool& value) { value = true; }
  void fill(int64_t& value) { value = ++count_; }
  void fill(double& value) { value = 0.125 + static_cast<double>(++count_); }
  void fill(std::string& value) { value = "text " + std::to_string(++count_); }
  void fill(std::filesystem::path& value) { value = "path/" + std::to_string(++count_); }
  template <class T>
  void fill(std::optional<T>& value) {
    fill(value.emplace());
  }
  template <class T>
  void fill(std::vector<T>& values) {
    for (int i = 0; i < 2; ++i) fill(values.emplace_back());
  }
  template <HasFields T>
  void fill(T& value) {
    visit_fields(*this, value);
  }

  int64_t count_ = 0;
};

RunFigures filled() {
  RunFigures run;
  Filler fill;
  visit_fields(fill, run);
  for (WorstSample& sample : run.classification->worst) sample.picture = "iVBORw0KGgoAAAA=";
  for (report::WorstRow& row : run.worst_rows) row.picture = "iVBORw0KGgoAAAA=";
  return run;
}

struct Counter {
  size_t fields = 0;
  void operator()(const char*, auto&, Presence = Presence::always) { ++fields; }
  void by_name(const char*, auto&) { ++fields; }
  void one_of(const char*, auto&, const auto&) { ++fields; }
};

/// How many fields visit_fields() lists.
template <class T>
size_t listed() {
  Counter count;
  T value{};
  visit_fields(count, value);
  return count.fields;
}

// A structured binding has as many names as the struct has members: one that is added and not
// listed does not compile here.
TEST(RunFiles, ListEveryMember) {
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f] = EpochRow{};
    EXPECT_EQ(listed<EpochRow>(), 6U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e] = ValidationRow{};
    EXPECT_EQ(listed<ValidationRow>(), 5U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f] = PhaseLeak{};
    EXPECT_EQ(listed<PhaseLeak>(), 6U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v,
                                  w, x] = PhaseReport{};
    EXPECT_EQ(listed<PhaseReport>(), 24U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d] = RankFigures{};
    EXPECT_EQ(listed<RankFigures>(), 4U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d] = DeviceFigures{};
    EXPECT_EQ(listed<DeviceFigures>(), 4U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f] = ScheduledStep{};
    EXPECT_EQ(listed<ScheduledStep>(), 6U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c] = ScheduleTable{};
    EXPECT_EQ(listed<ScheduleTable>(), 3U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h] = RateSearch{};
    EXPECT_EQ(listed<RateSearch>(), 8U);
  }
  {
    [[maybe_unused]] const auto& [a, b] = SplitFigures{};
    EXPECT_EQ(listed<SplitFigures>(), 2U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h, i] = WorstSample{};
    EXPECT_EQ(listed<WorstSample>(), 9U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d] = LabelCounts{};
    EXPECT_EQ(listed<LabelCounts>(), 4U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d] = Classification{};
    EXPECT_EQ(listed<Classification>(), 4U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f] = Machine{};
    EXPECT_EQ(listed<Machine>(), 6U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c] = ExportedBundle{};
    EXPECT_EQ(listed<ExportedBundle>(), 3U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c] = TrackerFigures{};
    EXPECT_EQ(listed<TrackerFigures>(), 3U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f] = report::WorstRow{};
    EXPECT_EQ(listed<report::WorstRow>(), 6U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] =
        RunFigures{};
    EXPECT_EQ(listed<RunFigures>(), 18U);
  }
}

/// Collects every listed value as text, so that two structs can be compared field by field.
class Values {
 public:
  template <class T>
  void operator()(const char* key, T& value, Presence = Presence::always) {
    add(key, value);
  }
  template <class T>
  void by_name(const char* key, std::vector<T>& values) {
    for (auto& each : values) add(std::string(key) + '.' + each.name, each.value);
  }
  template <class Enum, size_t N>
  void one_of(const char* key, Enum& value, const std::array<const char*, N>& names) {
    all.push_back(std::string(key) + '=' + names.at(static_cast<size_t>(value)));
  }

  std::vector<std::string> all{};

 private:
  void add(const std::string& key, const std::string& value) { all.push_back(key + '=' + value); }
  void add(const std::string& key, const std::filesystem::path& value) { add(key, value.string()); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(const std::string& key, const T& value) { add(key, std::to_string(value)); }
  template <class T>
  void add(const std::string& key, std::optional<T>& value) {
    if (value) add(key, *value);
  }
  template <class T>
  void add(const std::string& key, std::vector<T>& values) {
    for (T& value : values) add(key, value);
  }
  template <HasFields T>
  void add(const std::string& key, T& value) {
    all.push_back(key);
    visit_fields(*this, value);
  }
};

std::vector<std::string> values_of(RunFigures run) {
  Values values;
  visit_fields(values, run);
  return values.all;
}

TEST(RunFiles, KeepEveryFieldOfAReport) {
  const RunFigures run = filled();
  const std::string text = to_json(run);
  const RunFigures again = run_from_json(text, "report.json");
  EXPECT_GT(values_of(run).size(), 100U);
  EXPECT_EQ(values_of(again), values_of(run));
  EXPECT_EQ(to_json(again), text);
}

TEST(RunFiles, KeepNamesAndOrderOfTheirKeys) {
  const auto keys = [](const ordered_json& object) {
    std::string all;
    for (const auto& [key, value] : object.items()) all += key + ' ';
    return all;
  };
  const auto json = ordered_json::parse(to_json(filled()));
  EXPECT_EQ(keys(json),
            "name data device reason phases machine resumed_from resumes generated test valid "
            "classification worst_rows export residual_bytes process_bytes seconds tracker ");
  EXPECT_EQ(
      keys(json["phases"][0]),
      "name epochs validations seconds samples_per_s consumed_bytes data_bytes peak_bytes "
      "micro_batch overflows restored_epoch restored_step stopped_by reclaimed_bytes "
      "residual_bytes fragmented_bytes "
      "allocator_retries leaks planned_peak_bytes not_planned ranks devices lr_find schedule ");
  EXPECT_EQ(keys(json["phases"][0]["lr_find"]),
            "lr suggestion valley steepest minimum steps stopped_early seconds ");
  EXPECT_EQ(keys(json["phases"][0]["schedule"]), "steps relative points ");
  EXPECT_EQ(keys(json["phases"][0]["schedule"]["points"][0]),
            "step first_lr last_lr momentum beta2 weight_decay ");
  EXPECT_EQ(keys(json["phases"][0]["epochs"][0]),
            "epoch train_loss valid_loss metrics seconds samples ");
  EXPECT_EQ(keys(json["phases"][0]["validations"][0]), "step epoch train_loss valid_loss metrics ");
  EXPECT_EQ(keys(json["phases"][0]["leaks"][0]),
            "phase site blocks bytes youngest_steps oldest_steps ");
  EXPECT_EQ(keys(json["machine"]), "tare libtorch processor threads memory_bytes device ");
  EXPECT_EQ(keys(json["test"]), "loss metrics ");
  EXPECT_EQ(keys(json["classification"]), "labels counts worst label_counts ");
  EXPECT_EQ(keys(json["worst_rows"][0]), "name target predicted loss picture text ");
  EXPECT_EQ(keys(json["classification"]["worst"][0]),
            "index label predicted probability loss name picture text probabilities ");
  EXPECT_EQ(keys(json["export"]), "path bytes peak_bytes ");
  EXPECT_EQ(keys(json["tracker"]), "allocations ns_each share ");
}

TEST(RunFiles, LeaveOutWhatIsNotSet) {
  RunFigures run{.phases = {{.epochs = {{.valid_loss = NAN}}}}};
  const auto json = ordered_json::parse(to_json(run));
  for (const char* key :
       {"resumed_from", "resumes", "generated", "test", "valid", "classification", "export"})
    EXPECT_FALSE(json.contains(key)) << key;
  EXPECT_TRUE(json["phases"][0]["planned_peak_bytes"].is_null());
  EXPECT_TRUE(json["phases"][0]["epochs"][0]["valid_loss"].is_null());
  const RunFigures again = run_from_json(json.dump(), "report.json");
  EXPECT_TRUE(std::isnan(again.phases.at(0).epochs.at(0).valid_loss));
  EXPECT_FALSE(again.phases[0].planned_peak_bytes.has_value());
  EXPECT_FALSE(again.exported.has_value());
}

TEST(RunFiles, ReadAReportOfAnEarlierVersion) {
  const RunFigures run = run_from_json(
      R"({"name": "a", "data": "10 digits", "device": "cpu", "reason": "interrupted", "phases": [
           {"name": "all", "epochs": [], "seconds": 1, "samples_per_s": 2, "consumed_bytes": 3,
            "peak_bytes": 4, "reclaimed_bytes": 5, "residual_bytes": 6}],
          "resumed_from": "autosave-1", "residual_bytes": 0, "process_bytes": 7, "seconds": null,
          "a key of a later version": {}})",
      "report.json");
  EXPECT_EQ(run.reason, StopReason::interrupted);
  EXPECT_EQ(run.phases.at(0).peak_bytes, 4);
  EXPECT_EQ(run.phases[0].overflows, 0);
  EXPECT_EQ(run.resumed_from, "autosave-1");
  EXPECT_EQ(run.resumes, 0);
  EXPECT_TRUE(std::isnan(run.seconds));
  EXPECT_EQ(run.machine.tare, "");
}

/// The key that run_from_json() refuses in a damaged report; "accepted" for none.
std::string refused_key(const ordered_json& damaged) {
  try {
    (void)run_from_json(damaged.dump(), "runs/a/report.json");
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), "runs/a/report.json");
    EXPECT_THAT(error.what(), HasSubstr("runs/a/report.json: " + error.part() + ": is "));
    return error.part();
  }
  return "accepted";
}

/// "phases[0].epochs[0].metrics.text 9" for "/phases/0/epochs/0/metrics/text 9".
std::string dotted(const std::string& pointer) {
  std::string key;
  size_t start = 1;
  while (start <= pointer.size()) {
    const size_t end = std::min(pointer.find('/', start), pointer.size());
    const std::string word = pointer.substr(start, end - start);
    if (word == "0" || word == "1")
      key += '[' + word + ']';
    else
      key += (key.empty() ? "" : ".") + word;
    start = end + 1;
  }
  return key;
}

TEST(RunFiles, NameTheKeyOfEveryDamagedValue) {
  const auto json = ordered_json::parse(to_json(filled()));
  const auto flat = json.flatten();
  size_t keys = 0;
  for (const auto& [pointer, value] : flat.items()) {
    auto damaged = json;
    damaged[ordered_json::json_pointer(pointer)] = ordered_json::array({"damage"});
    EXPECT_EQ(refused_key(damaged), dotted(pointer)) << value;
    ++keys;
  }
  EXPECT_GT(keys, 100U);
  for (const auto& [key, value] : json.items()) {
    auto damaged = json;
    damaged[key] = ordered_json::array({"damage"});
    EXPECT_EQ(refused_key(damaged).substr(0, key.size()), key) << value;
  }
}

TEST(RunFiles, NameEveryKeyThatIsMissing) {
  const auto json = ordered_json::parse(to_json(filled()));
  const auto without = [&json](const char* place, const std::string& key) {
    auto damaged = json;
    damaged[ordered_json::json_pointer(place)].erase(key);
    return refused_key(damaged);
  };
  for (const char* key :
       {"name", "data", "device", "reason", "phases", "residual_bytes", "process_bytes", "seconds"})
    EXPECT_EQ(without("", key), key);
  for (const char* key : {"name", "epochs", "seconds", "samples_per_s", "consumed_bytes",
                          "peak_bytes", "reclaimed_bytes", "residual_bytes"})
    EXPECT_EQ(without("/phases/1", key), std::string("phases[1].") + key);
  for (const char* key : {"data_bytes", "micro_batch", "overflows", "restored_epoch", "stopped_by",
                          "leaks", "validations", "fragmented_bytes", "allocator_retries",
                          "planned_peak_bytes", "not_planned"})
    EXPECT_EQ(without("/phases/1", key), "accepted") << key;
  for (const char* key :
       {"machine", "tracker", "test", "valid", "classification", "worst_rows", "export"})
    EXPECT_EQ(without("", key), "accepted") << key;
}

TEST(RunFiles, SayWhatAReasonMayBe) {
  auto json = ordered_json::parse(to_json(filled()));
  json["reason"] = "bored";
  try {
    (void)run_from_json(json.dump(), "report.json");
    FAIL() << "accepted";
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("report.json: reason: is not one of finished, callback, "
                                        "interrupted, got \"bored\""));
  }
}

TEST(RunTables, KeepEveryColumn) {
  const TempDir folder;
  const EpochRow row{.epoch = 3,
                     .train_loss = 1.0 / 3,
                     .valid_loss = NAN,
                     .metrics = {{"top,5", 0.75}, {"f1", 0.1}},
                     .seconds = 2.5};
  EXPECT_EQ(csv_header(row), "epoch,train_loss,valid_loss,\"top,5\",f1,seconds\n");
  write_file(folder / "a.csv", csv_header(row) + csv_line(row));
  const auto rows = read_epochs(folder / "a.csv");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].epoch, 3);
  EXPECT_EQ(rows[0].train_loss, 1.0 / 3);
  EXPECT_TRUE(std::isnan(rows[0].valid_loss));
  ASSERT_EQ(rows[0].metrics.size(), 2U);
  EXPECT_EQ(rows[0].metrics[0].name, "top,5");
  EXPECT_EQ(rows[0].metrics[1].value, 0.1);
  EXPECT_EQ(rows[0].seconds, 2.5);

  write_file(folder / "a.steps.csv", kStepsHeader + csv_line(StepRow{7, 0.1, 1e-3}));
  const auto steps = read_steps(folder / "a.steps.csv");
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].step, 7);
  EXPECT_EQ(steps[0].loss, 0.1);
  EXPECT_EQ(steps[0].lr, 1e-3);
}

TEST(RunTables, RefuseARowThatBeginsWithNoWholeNumber) {
  const TempDir folder;
  for (const char* count : {"1.5", "-1", "nan", "1e300"}) {
    write_file(folder / "a.csv", kStepsHeader + std::string("1,2,3\n") + count + ",2,3\n");
    try {
      (void)read_steps(folder / "a.csv");
      ADD_FAILURE() << count;
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr("a.csv: line 3: does not begin with a whole number"));
    }
  }
}

}  // namespace
}  // namespace tare::report
