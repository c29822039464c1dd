// Tests what an Experiment measures, purges, destroys and reports.
#include "tare/experiment/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <type_traits>

#include "experiment/holder.h"
#include "support/sanitized.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/memory/host_allocator.h"

namespace tare {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Holder;
using testing::kSanitized;
using ::testing::Not;

static_assert(!std::is_copy_constructible_v<Experiment> &&
              !std::is_move_constructible_v<Experiment>);

ExperimentOptions quiet() { return {.enabled = true, .devices = {}, .out = nullptr}; }
int64_t live() { return memory::host_allocator::counters().live_bytes; }

DeviceReport host(const Experiment& experiment) { return experiment.data().at(0); }

TEST(Experiment, WeighsWhatIsTakenAndGivenBackInside) {
  const auto old = bytes_of(77);
  Experiment stage("stage", quiet());
  EXPECT_EQ(host(stage).consumed.allocated_bytes, 0);
  auto a = bytes_of(1000);
  EXPECT_EQ(host(stage).consumed.allocated_bytes, 1000);
  bytes_of(5000);
  EXPECT_EQ(host(stage).peak_bytes, 6000);
  EXPECT_EQ(host(stage).reclaimed.allocated_bytes, 0);
  EXPECT_GT(host(stage).available_bytes, 0);
  a.reset();
  EXPECT_EQ(host(stage).consumed.allocated_bytes, 0);
}

TEST(Experiment, CountsBelowTheBaselineAsNegative) {
  auto old = bytes_of(500);
  Experiment stage("stage", quiet());
  old.reset();
  EXPECT_EQ(host(stage).consumed.allocated_bytes, -500);
  EXPECT_EQ(host(stage).peak_bytes, 0);
}

TEST(Experiment, PurgesTheAttendedAndReportsTheirBytes) {
  Holder learner("learner");
  Experiment stage("stage", learner, quiet());
  learner.gradient = bytes_of(300);
  const auto report = stage.finish();
  EXPECT_EQ(report.on(c10::kCPU).consumed.allocated_bytes, 300);
  EXPECT_EQ(report.on(c10::kCPU).reclaimed.allocated_bytes, 300);
  EXPECT_EQ(report.on(c10::kCPU).residual_bytes(), 0);
  EXPECT_EQ(report.on(c10::kCPU).reclaimed_percent(), 100.0);
  ASSERT_EQ(report.released.size(), 1U);
  EXPECT_EQ(report.released[0].name, "learner");
  EXPECT_EQ(report.released[0].freed[Category::gradients], 300);
  EXPECT_TRUE(report.leaks.empty());
}

TEST(Experiment, AttendsSeveralObjects) {
  Holder teacher("teacher"), student("student");
  Experiment stage("stage", {teacher, student}, quiet());
  teacher.gradient = bytes_of(10);
  student.gradient = bytes_of(20);
  EXPECT_EQ(stage.finish().on(c10::kCPU).reclaimed.allocated_bytes, 30);
  EXPECT_EQ(teacher.purges + student.purges, 2);
}

TEST(Experiment, ForgetsAnAttendedObjectThatDied) {
  Experiment stage("stage", quiet());
  std::optional<Holder> short_lived(std::in_place, "first");
  stage.attend(*short_lived);
  short_lived.emplace("second");  // at the same address, never attended
  EXPECT_TRUE(stage.finish().released.empty());
  EXPECT_EQ(short_lived->purges, 0);
}

TEST(Experiment, ListsWhatCannotBePurgedNow) {
  Holder learner("learner");
  learner.busy = true;
  Experiment stage("stage", learner, quiet());
  const auto report = stage.finish();
  ASSERT_EQ(report.released.size(), 1U);
  EXPECT_THAT(report.released[0].problem, HasSubstr("[holder.purge]"));
  EXPECT_THAT(report.str(), HasSubstr("not purged"));
}

TEST(Experiment, ListsTheKeptTensorsThatAreAlive) {
  Experiment stage("stage", quiet());
  const auto kept = at::empty({125, 4}, at::kFloat);
  auto dead = bytes_of(100);
  stage.keep(kept);
  stage.keep(kept.view({500}));
  stage.keep(dead);
  dead.reset();
  const auto report = stage.finish();
  EXPECT_THAT(report.kept, ElementsAre("tensor [125, 4] (2 KiB on cpu)"));
  EXPECT_THAT(report.str(), HasSubstr("kept: tensor [125, 4] (2 KiB on cpu)\n"));
  EXPECT_TRUE(report.leaks.empty());
}

struct Noted {
  Noted(std::vector<int>& deaths, int number, int64_t bytes)
      : deaths_(deaths), number_(number), data(bytes_of(bytes)) {}
  ~Noted() { deaths_.push_back(number_); }
  std::vector<int>& deaths_;
  int number_;
  at::Tensor data;
};

TEST(Experiment, DestroysOwnedObjectsInReverse) {
  std::vector<int> deaths;
  Experiment stage("stage", quiet());
  stage.emplace<Noted>("a", deaths, 1, 100);
  EXPECT_EQ(stage.emplace<Noted>("b", deaths, 2, 200).number_, 2);
  const auto report = stage.finish();
  EXPECT_THAT(deaths, ElementsAre(2, 1));
  EXPECT_EQ(report.on(c10::kCPU).reclaimed.allocated_bytes, 300);
  EXPECT_EQ(report.released.at(0).name, "b");
  EXPECT_TRUE(report.leaks.empty());
}

TEST(Experiment, KeepsAnOwnedObjectUntilItsOwnEnd) {
  std::vector<int> deaths;
  {
    Experiment stage("stage", quiet());
    auto& kept = stage.emplace<Noted>("best", deaths, 1, 100);
    stage.emplace<Noted>("rest", deaths, 2, 200);
    stage.keep("best");
    const auto report = stage.finish();
    EXPECT_EQ(kept.data.nbytes(), 100U);
    EXPECT_THAT(report.kept, ElementsAre("best"));
    EXPECT_EQ(report.on(c10::kCPU).residual_bytes(), 100);
    EXPECT_TRUE(report.leaks.empty());
    EXPECT_THAT(deaths, ElementsAre(2));
  }
  EXPECT_THAT(deaths, ElementsAre(2, 1));
}

TEST(Experiment, RefusesNamesThatAreTakenOrUnknown) {
  Experiment stage("stage", quiet());
  stage.emplace<int>("a", 1);
  EXPECT_THROW(stage.emplace<int>("a", 2), ConfigError);
  EXPECT_THROW(stage.keep("b"), ConfigError);
}

TEST(Experiment, TakesNothingMoreAfterFinish) {
  Holder learner("learner");
  Experiment stage("stage", quiet());
  stage.finish();
  EXPECT_THROW(stage.emplace<int>("a", 1), StateError);
  EXPECT_THROW(stage.attend(learner), StateError);
}

TEST(Experiment, FinishesOnceHoweverOftenAsked) {
  Holder learner("learner");
  std::ostringstream out;
  {
    Experiment stage("stage", learner, {.enabled = true, .devices = {}, .out = &out});
    learner.gradient = bytes_of(300);
    const auto first = stage.finish();
    learner.gradient = bytes_of(400);
    EXPECT_EQ(stage.finish().str(), first.str());
    EXPECT_EQ(stage.data().at(0).reclaimed.allocated_bytes, 300);
  }
  EXPECT_EQ(learner.purges, 1);
  EXPECT_THAT(out.str(), Not(HasSubstr("reclaimed")));  // the caller has the report already
}

TEST(Experiment, FinishesAtTheEndOfTheScope) {
  Holder learner("learner");
  std::ostringstream out;
  { const Experiment stage("stage", learner, {.enabled = true, .devices = {}, .out = &out}); }
  EXPECT_EQ(learner.purges, 1);
  EXPECT_THAT(out.str(), HasSubstr("released: learner"));
}

TEST(Experiment, FinishesWhenAnExceptionPasses) {
  Holder learner("learner");
  const auto before = live();
  try {
    const Experiment stage("stage", learner, quiet());
    learner.gradient = bytes_of(300);
    throw std::runtime_error("training failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(learner.purges, 1);
  EXPECT_EQ(live(), before);
}

TEST(Experiment, FinishesTheOldOneBeforeTheNextBaseline) {
  Holder learner("learner");
  std::optional<Experiment> stage;
  stage.emplace("one", learner, quiet());
  learner.gradient = bytes_of(300);
  stage.emplace("two", learner, quiet());
  EXPECT_EQ(learner.purges, 1);
  EXPECT_EQ(host(*stage).consumed.allocated_bytes, 0);
}

TEST(Experiment, NestsAndOverlaps) {
  Experiment outer("outer", quiet());
  const auto a = bytes_of(100);
  Experiment inner("inner", quiet());
  const auto b = bytes_of(1000);
  EXPECT_EQ(host(outer).consumed.allocated_bytes, 1100);
  EXPECT_EQ(host(inner).consumed.allocated_bytes, 1000);
  outer.finish();
  EXPECT_EQ(host(inner).consumed.allocated_bytes, 1000);
}

TEST(Experiment, DoesNothingWhenNotEnabled) {
  Holder learner("learner");
  std::vector<int> deaths;
  std::ostringstream out;
  {
    Experiment stage("stage", learner, {.enabled = false, .devices = {}, .out = &out});
    stage.emplace<Noted>("a", deaths, 1, 100);
    EXPECT_TRUE(stage.data().empty());
    const auto report = stage.finish();
    EXPECT_FALSE(report.enabled);
    EXPECT_THAT(report.str(), HasSubstr("not enabled"));
  }
  EXPECT_THAT(deaths, ElementsAre(1));
  EXPECT_EQ(learner.purges, 0);
  EXPECT_EQ(out.str(), "");
}

TEST(Experiment, PrintsABannerWithItsDevices) {
  std::ostringstream out;
  const Experiment stage("head", {.enabled = true, .devices = {c10::kCPU}, .out = &out});
  EXPECT_THAT(out.str(),
              HasSubstr("Experiment 'head' on cpu (" + memory::backend(c10::kCPU).name()));
}

TEST(Experiment, RefusesADeviceThatIsNotThere) {
  ExperimentOptions options = quiet();
  options.devices = {c10::Device(c10::kCUDA, 99)};
  EXPECT_THROW(Experiment("stage", options), DeviceError);
}

TEST(Experiment, KeepsTheThreeFiguresApart) {
  Experiment stage("stage", quiet());
  {
    const auto touched = bytes_of(64_MiB).fill_(1);
    const auto now = host(stage);
    EXPECT_EQ(now.consumed.allocated_bytes, 64_MiB);
    EXPECT_EQ(now.consumed.reserved_bytes, 64_MiB);
    EXPECT_GE(now.consumed.process_bytes, 60_MiB);
  }
  const auto report = stage.finish();
  EXPECT_EQ(report.on(c10::kCPU).consumed.allocated_bytes, 0);
  if (kSanitized) GTEST_SKIP() << "the sanitizer keeps freed blocks resident";
  EXPECT_LT(
      report.on(c10::kCPU).consumed.process_bytes - report.on(c10::kCPU).reclaimed.process_bytes,
      16_MiB);
}

TEST(ExperimentReport, PrintsEveryPart) {
  Holder learner("learner");
  Experiment stage("stage", learner, quiet());
  learner.gradient = bytes_of(300);
  stage.emplace<int>("a", 1);
  stage.keep("a");
  std::ostringstream out;
  out << stage.finish();
  for (const char* part :
       {"Experiment 'stage'", "consumed", "reclaimed", "tracked", "reserved", "process", "300 B",
        "(100.0 %)", "released: learner (gradients 300 B)", "kept: a", "leaks: none"})
    EXPECT_THAT(out.str(), HasSubstr(part));
}

TEST(ExperimentReport, GivesZerosForADeviceNotWeighed) {
  EXPECT_EQ(ExperimentReport().on(c10::kCPU).reclaimed_percent(), 100.0);
}

}  // namespace
}  // namespace tare
