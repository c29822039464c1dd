// TensorBoard and JsonlLog: what they write, how they thin out, and how a resumed fit continues.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "callback/events_of.h"
#include "callback/fake_learner.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/callback/growing_file.h"
#include "tare/callback/jsonl_log.h"
#include "tare/callback/tensorboard.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kEvents = "tensorboard/events.out.tfevents.tare";

/// A fit as callbacks see it, without training.
struct Fit {
  explicit Fit(const TempDir& folder) { learner.place = folder.path(); }
  void begin(Callback& log, int64_t step = 0) {
    c.step = step;
    log.before_fit(c);
    begin_epoch(log, 1);
  }
  void begin_epoch(Callback& log, int64_t epoch) {
    c.row = {.epoch = epoch, .seconds = 2, .samples = 100};
    log.before_epoch(c);
  }
  void steps(Callback& log, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      ++c.step;
      c.loss = at::full({}, 1.0 / static_cast<double>(c.step), at::kDouble);
      c.lr = 0.5;
      log.after_step(c);
    }
  }
  void validate_inside(Callback& log) {
    c.inside_epoch = true;
    log.before_validate(c);
    c.row.valid_loss = 0.125;
    c.row.metrics = {{"accuracy", 0.5}};
    log.after_validate(c);
    c.inside_epoch = false;
  }
  void end_epoch(Callback& log) {
    c.row.train_loss = 0.25;
    log.before_validate(c);
    c.row.valid_loss = 0.5;
    c.row.seconds = 3;
    c.row.metrics = {{"accuracy", 0.75}};
    log.after_epoch(c);
  }
  FakeLearner learner;
  FitContext c{.learner = learner};
};

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> all;
  std::istringstream text(content_of(path));
  for (std::string line; std::getline(text, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

std::vector<int64_t> steps_of(const std::vector<nlohmann::json>& lines) {
  std::vector<int64_t> steps;
  for (const auto& line : lines)
    if (line["type"] == "step") steps.push_back(line["step"].get<int64_t>());
  return steps;
}

TEST(TensorBoard, HasStepsAndFiguresOfEpochs) {
  const TempDir folder;
  Fit fit(folder);
  TensorBoard log;
  fit.begin(log);
  fit.steps(log, 2);
  fit.end_epoch(log);
  log.after_fit(fit.c);
  const auto seen = events_of(folder / kEvents);
  EXPECT_EQ(seen.at("").size(), 1U) << "the version";
  EXPECT_THAT(seen.at("train/loss"), ElementsAre(SeenValue{1, 1}, SeenValue{2, 0.5}));
  EXPECT_THAT(seen.at("train/lr"), ElementsAre(SeenValue{1, 0.5}, SeenValue{2, 0.5}));
  EXPECT_THAT(seen.at("epoch/train_loss"), ElementsAre(SeenValue{2, 0.25}));
  EXPECT_THAT(seen.at("epoch/valid_loss"), ElementsAre(SeenValue{2, 0.5}));
  EXPECT_THAT(seen.at("epoch/accuracy"), ElementsAre(SeenValue{2, 0.75}));
  EXPECT_THAT(seen.at("throughput/samples_per_s"), ElementsAre(SeenValue{2, 50}))
      << "100 samples in the two seconds before the validation";
  const double allocated = seen.at("memory/allocated_mib").at(0).value;
  EXPECT_GT(allocated, 0);
  EXPECT_GE(seen.at("memory/peak_mib").at(0).value, allocated);
  EXPECT_EQ(seen.size(), 9U);
}

TEST(TensorBoard, HasValidationsInsideEpochsAtTheirSteps) {
  const TempDir folder;
  Fit fit(folder);
  TensorBoard log;
  fit.begin(log);
  fit.steps(log, 2);
  fit.validate_inside(log);
  fit.steps(log, 1);
  fit.end_epoch(log);
  const auto seen = events_of(folder / kEvents);
  EXPECT_THAT(seen.at("valid/loss"), ElementsAre(SeenValue{2, 0.125}));
  EXPECT_THAT(seen.at("valid/accuracy"), ElementsAre(SeenValue{2, 0.5}));
  EXPECT_THAT(seen.at("epoch/valid_loss"), ElementsAre(SeenValue{3, 0.5}));
}

TEST(TensorBoard, AFitOfAMillionStepsStaysSmall) {
  const TempDir folder;
  Fit fit(folder);
  TensorBoard log;
  fit.begin(log);
  fit.steps(log, 1'000'000);
  fit.end_epoch(log);
  const auto steps = steps_of(events_of(folder / kEvents).at("train/loss"));
  EXPECT_LT(steps.size(), 11'000U);
  EXPECT_GT(steps.size(), 9'000U);
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(steps[static_cast<size_t>(i)], i + 1);
  EXPECT_EQ(steps[1000], 1002);
  EXPECT_LT(std::filesystem::file_size(folder / kEvents), 1'500'000U);
}

TEST(TensorBoard, TakesTheStepsThatItIsTold) {
  const TempDir folder;
  Fit fit(folder);
  TensorBoard log({.folder = "other", .every = 3});
  fit.begin(log);
  fit.steps(log, 10);
  log.after_fit(fit.c);
  const auto seen = events_of(folder / "other/events.out.tfevents.tare");
  EXPECT_THAT(steps_of(seen.at("train/loss")), ElementsAre(3, 6, 9));
}

// The process was killed after it had written two steps more than its last checkpoint has.
TEST(TensorBoard, AResumedFitHasNoStepTwice) {
  const TempDir folder;
  Fit fit(folder);
  std::string state;
  {
    TensorBoard log;
    fit.begin(log);
    fit.steps(log, 3);
    state = log.state();
    fit.steps(log, 2);
    fit.end_epoch(log);
  }
  TensorBoard log;
  log.load_state(state);
  fit.begin(log, 3);
  fit.steps(log, 2);
  fit.end_epoch(log);
  log.after_fit(fit.c);
  const auto seen = events_of(folder / kEvents);
  EXPECT_THAT(steps_of(seen.at("train/loss")), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(steps_of(seen.at("epoch/train_loss")), ElementsAre(5));
}

TEST(TensorBoard, ANewObjectBeginsAnewAndASecondFitGoesOn) {
  const TempDir folder;
  Fit fit(folder);
  TensorBoard first, second;
  fit.begin(first);
  fit.steps(first, 5);
  first.after_fit(fit.c);
  fit.begin(second);
  fit.steps(second, 2);
  second.after_fit(fit.c);
  fit.begin(second);
  fit.steps(second, 2);
  second.after_fit(fit.c);
  EXPECT_THAT(steps_of(events_of(folder / kEvents).at("train/loss")), ElementsAre(1, 2, 3, 4));
}

TEST(TensorBoard, RefusesOptionsAndStatesThatAreNone) {
  EXPECT_THROW(TensorBoard({.every = -1}), ConfigError);
  TensorBoard log;
  for (const char* state : {"", "{}", R"({"bytes":1})", R"({"bytes":"1","steps":{}})",
                            R"({"bytes":1,"steps":{"stride":0,"taken":0,"base":0,"last":0}})"})
    EXPECT_THROW(log.load_state(state), FormatError) << state;
}

TEST(JsonlLog, HasAnObjectForEachStepAndEpoch) {
  const TempDir folder;
  Fit fit(folder);
  JsonlLog log;
  fit.begin(log);
  fit.steps(log, 1);
  fit.c.row.valid_loss = 0;
  fit.end_epoch(log);
  auto lines = lines_of(folder / "log.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  for (auto& line : lines) {
    EXPECT_GT(line["time"].get<double>(), 1.6e9) << "seconds since 1970";
    line.erase("time");
  }
  EXPECT_EQ(lines[0],
            nlohmann::json::parse(R"({"type":"step","step":1,"epoch":1,"loss":1.0,"lr":0.5})"));
  EXPECT_EQ(lines[1],
            nlohmann::json::parse(R"({"type":"epoch","step":1,"epoch":1,"train_loss":0.25,)"
                                  R"("valid_loss":0.5,"metrics":{"accuracy":0.75},"seconds":3.0,)"
                                  R"("samples":100})"));
}

TEST(JsonlLog, HasValidationsInsideEpochsAtTheirSteps) {
  const TempDir folder;
  Fit fit(folder);
  JsonlLog log;
  fit.begin(log);
  fit.steps(log, 2);
  fit.validate_inside(log);
  fit.steps(log, 1);
  fit.end_epoch(log);
  const auto lines = lines_of(folder / "log.jsonl");
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[2]["type"], "validation") << "behind the steps before it";
  EXPECT_EQ(lines[2]["step"], 2);
  EXPECT_EQ(lines[2]["epoch"], 1);
  EXPECT_EQ(lines[2]["valid_loss"], 0.125);
  EXPECT_EQ(lines[2]["metrics"]["accuracy"], 0.5);
  EXPECT_EQ(lines[4]["type"], "epoch");
}

TEST(JsonlLog, ANumberThatIsNotFiniteIsNull) {
  const TempDir folder;
  Fit fit(folder);
  JsonlLog log({.file = "a.jsonl", .every = 2});
  fit.begin(log);
  fit.steps(log, 4);
  fit.c.row.train_loss = std::numeric_limits<double>::quiet_NaN();
  log.after_epoch(fit.c);
  const auto lines = lines_of(folder / "a.jsonl");
  EXPECT_THAT(steps_of(lines), ElementsAre(2, 4));
  EXPECT_TRUE(lines.back()["train_loss"].is_null());
}

TEST(JsonlLog, AResumedFitHasTheLinesOfOneThatWasNotStopped) {
  const TempDir folder;
  Fit fit(folder);
  std::string state;
  {
    JsonlLog log;
    fit.begin(log);
    fit.steps(log, 70);  // more than are written at a time
    state = log.state();
    fit.steps(log, 30);
    fit.end_epoch(log);
  }
  JsonlLog log;
  log.load_state(state);
  fit.begin(log, 70);
  fit.steps(log, 30);
  fit.end_epoch(log);
  const auto lines = lines_of(folder / "log.jsonl");
  ASSERT_EQ(lines.size(), 101U);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(lines[static_cast<size_t>(i)]["step"], i + 1);
  EXPECT_THROW(log.load_state("{}"), FormatError);
}

// A full disk must not end a fit, and half a line must not stay.
TEST(GrowingFile, CatchesUpAfterAWriteThatFailed) {
  const TempDir folder;
  GrowingFile file;
  file.open(folder / "log", "head\n");
  file.write(io::Flush::no);
  file.add("first\n");
  ::testing::internal::CaptureStderr();
  {
    std::filesystem::permissions(folder / "log", std::filesystem::perms::none);
    std::filesystem::rename(folder / "log", folder / "away");
    std::filesystem::create_directory(folder / "log");  // cannot be written to, by root neither
    file.write(io::Flush::no);
    std::filesystem::remove(folder / "log");
    std::filesystem::rename(folder / "away", folder / "log");
    std::filesystem::permissions(folder / "log", std::filesystem::perms::owner_all);
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a log is not up to date: "));
  {
    io::File torn(folder / "log", io::Mode::append);
    torn.write("fir");
    torn.close();
  }
  file.add("second\n");
  file.write(io::Flush::yes);
  EXPECT_EQ(content_of(folder / "log"), "head\nfirst\nsecond\n");
  EXPECT_EQ(file.bytes(), 18);
}

TEST(GrowingFile, BeginsAnewWhereTheFileIsGone) {
  const TempDir folder;
  GrowingFile file;
  file.continue_at(100);
  ::testing::internal::CaptureStderr();
  file.open(folder / "sub/log", "head\n");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("it begins anew"));
  file.write(io::Flush::no);
  EXPECT_EQ(content_of(folder / "sub/log"), "head\n");
}

}  // namespace
}  // namespace tare::testing
