// `lr: find` in a recipe, a search without a run, and schedules that are seen before training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "recipe/without_workers.h"
#include "support/files.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/memory/backend.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/optim/schedule_kinds.h"
#include "tare/recipe/find_rate.h"
#include "tare/recipe/plan.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

RecipeOptions searching(const TempDir& folder, size_t phase = 0) {
  RecipeOptions recipe = without_workers(folder);
  recipe.phases[phase].lr = LrFindOptions{.steps = 30};
  return recipe;
}

TEST(LrFindInARecipe, IsThePeakRateOfThePhaseAndInItsFiles) {
  const TempDir folder;
  const RecipeOptions recipe = searching(folder);
  std::ostringstream out;
  const RunReport report = run_recipe(recipe, {.out = &out});
  ASSERT_TRUE(report.phases[0].lr_find);
  const RateSearch& found = *report.phases[0].lr_find;
  EXPECT_FALSE(report.phases[1].lr_find);
  EXPECT_EQ(found.suggestion, "valley");
  EXPECT_EQ(found.lr, *found.valley);
  EXPECT_THAT(out.str(), HasSubstr("smoothed loss by learning rate"));
  EXPECT_THAT(out.str(), HasSubstr("the peak rate of this phase is "));
  const Json phase = Json::parse(io::read_text(report.folder / "report.json"))["phases"][0];
  EXPECT_EQ(phase["lr_find"]["lr"].get<double>(), found.lr);
  EXPECT_EQ(run_from_json(io::read_text(report.folder / "report.json"), "report.json")
                .phases[0]
                .lr_find->steps,
            found.steps);
  std::istringstream curve(io::read_text(report.folder / "first.lr_find.csv"));
  std::string line;
  std::getline(curve, line);
  EXPECT_EQ(line, "lr,loss,smoothed");
  int64_t rows = 0;
  while (std::getline(curve, line)) ++rows;
  EXPECT_EQ(rows, found.steps);
  // The rates of the steps rise to the peak.
  double peak = 0;
  std::istringstream steps(io::read_text(report.folder / "first.steps.csv"));
  std::getline(steps, line);
  while (std::getline(steps, line))
    peak = std::max(peak, std::stod(line.substr(line.rfind(',') + 1)));
  EXPECT_DOUBLE_EQ(peak, found.lr);
}

TEST(LrFindInARecipe, EqualsTheRateOfACommandThatWritesNothing) {
  const TempDir folder;
  const RecipeOptions recipe = searching(folder);
  const int64_t before = memory::backend(c10::kCPU).usage().allocated_bytes;
  const LrFindResult alone = find_rate(recipe);
  EXPECT_EQ(memory::backend(c10::kCPU).usage().allocated_bytes, before);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_EQ(run_recipe(recipe).phases[0].lr_find->lr, alone.lr());
  const Json value = Json::parse(to_json(alone, recipe, 0));
  EXPECT_EQ(value["lr"].get<double>(), alone.lr());
  EXPECT_EQ(value["points"].size(), alone.points.size());
  EXPECT_EQ(value["phase"], "first");
  EXPECT_GT(find_rate(recipe, 2).points.size(), 30U) << "with the options by default";
  EXPECT_THROW((void)find_rate(recipe, 3), ConfigError);
}

TEST(LrFindInARecipe, PeaksAsPlanned) {
  for (const size_t phase : {0U, 1U, 2U}) {
    const TempDir folder;
    RecipeOptions recipe = searching(folder, phase);
    recipe.phases[1].clear_opt = phase != 2;  // the search of the last begins with its state
    const RunReport report = run_recipe(recipe, {.plan = true});
    for (const PhaseReport& one : report.phases) {
      ASSERT_TRUE(one.planned_peak_bytes.has_value());
      EXPECT_EQ(*one.planned_peak_bytes, one.peak_bytes) << phase << ' ' << one.name;
    }
    EXPECT_EQ(report.residual_bytes, 0);
  }
}

TEST(LrFindInARecipe, TakesNoMoreOfACardThanThePhase) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  const RecipePlanOptions card{.device = "cuda:8GiB", .advice = false};
  const RecipePlan plain = plan_recipe(recipe, card);
  recipe.phases[0].lr = LrFindOptions{};
  EXPECT_EQ(plan_recipe(recipe, card).phases[0].peak_bytes, plain.phases[0].peak_bytes);
}

TEST(LrFindInARecipe, IsNotRepeatedByAResumedRunThatEqualsTheUndisturbedOne) {
  const TempDir straight_folder, folder;
  const auto recipe_in = [](const TempDir& where) {
    RecipeOptions recipe = searching(where);
    recipe.save_every = 2;
    recipe.learner.micro_batch = recipe.batch;
    recipe.model.options.dropout = 0.2;
    return recipe;
  };
  const RunReport straight = run_recipe(recipe_in(straight_folder));
  const RecipeOptions recipe = recipe_in(folder);
  int64_t crashes = 0, stops = 0;
  for (const uint64_t k : {3000U, 4000U, 900U, 1500U}) {
    memory::host_allocator::fail_at(k);
    try {
      (void)run_recipe(recipe, {.resume = Resume::automatic});
    } catch (const OutOfMemory&) {
      ++crashes;
    }
    memory::host_allocator::fail_at(0);
  }
  EXPECT_GE(crashes, 2);
  std::ostringstream out;
  RunReport report;
  do {
    if (stops < 2) request_interrupt();
    report = run_recipe(recipe, {.out = &out, .resume = Resume::automatic});
    stops += report.reason == StopReason::interrupted;
  } while (report.reason == StopReason::interrupted && stops < 5);
  EXPECT_EQ(report.phases[0].lr_find->lr, straight.phases[0].lr_find->lr);
  EXPECT_EQ(report.residual_bytes, 0);
  EXPECT_TRUE(content_of(folder / "tiny/tiny.tare") ==
              content_of(straight_folder / "tiny/tiny.tare"));
  for (const char* file : {"first.csv", "head.csv", "all.csv"})
    EXPECT_EQ(rows_without_time(folder / "tiny" / file),
              rows_without_time(straight_folder / "tiny" / file));
  EXPECT_EQ(content_of(folder / "tiny/first.lr_find.csv"),
            content_of(straight_folder / "tiny/first.lr_find.csv"));
}

TEST(LrFindInARecipe, ContinuesAfterAnInterruptInTheSearch) {
  const TempDir straight_folder, folder;
  const RunReport straight = run_recipe(searching(straight_folder));
  const RecipeOptions recipe = searching(folder);
  request_interrupt();  // seen after the first step of the search
  std::ostringstream out;
  const RunReport begun = run_recipe(recipe, {.out = &out, .resume = Resume::automatic});
  EXPECT_EQ(begun.reason, StopReason::interrupted);
  EXPECT_THAT(out.str(), Not(HasSubstr("the peak rate of this phase")));
  const RunReport report = run_recipe(recipe, {.resume = Resume::always});
  EXPECT_EQ(report.phases[0].lr_find->lr, straight.phases[0].lr_find->lr);
  EXPECT_TRUE(content_of(folder / "tiny/tiny.tare") ==
              content_of(straight_folder / "tiny/tiny.tare"));
}

TEST(SchedulePreview, IsInADryRunAndInAPlan) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases[0].epochs = 3;
  recipe.phases[1].schedule = {.kind = "step"};
  recipe.phases[1].schedules.weight_decay = HyperSchedule{.kind = "linear"};
  std::ostringstream out;
  const RunReport report = run_recipe(recipe, {.out = &out, .dry_run = true});
  EXPECT_THAT(out.str(), HasSubstr("schedule of first: one_cycle over 15 steps"));
  EXPECT_THAT(out.str(), HasSubstr("schedule of head: step over 5 steps"));
  ASSERT_TRUE(report.phases[0].schedule && report.phases[1].schedule);
  const ScheduleTable& first = *report.phases[0].schedule;
  ASSERT_EQ(first.points.size(), 11U);
  EXPECT_EQ(first.points.front().step, 0);
  EXPECT_EQ(first.points.back().step, 14);
  for (const ScheduledStep& point : first.points) {
    EXPECT_DOUBLE_EQ(point.last_lr, one_cycle_lr(point.step, 15, 1e-2));
    EXPECT_DOUBLE_EQ(*point.momentum, one_cycle_momentum(point.step, 15));
    EXPECT_FALSE(point.weight_decay);
  }
  const ScheduledStep& last = report.phases[1].schedule->points.back();
  EXPECT_DOUBLE_EQ(last.last_lr, 1e-2 * 0.01);
  EXPECT_DOUBLE_EQ(*last.weight_decay, 0.01 * (1 - 4.0 / 5));
  const ScheduledStep& range = report.phases[2].schedule->points.front();
  EXPECT_NEAR(range.first_lr / range.last_lr, 0.1, 1e-9);

  const RecipePlan plan = plan_recipe(recipe, {.advice = false, .schedule = true});
  ASSERT_EQ(plan.schedules.size(), 3U);
  std::ostringstream printed;
  print(printed, plan);
  EXPECT_THAT(printed.str(), HasSubstr("schedule of all: one_cycle over 5 steps"));
  const Json value = Json::parse(to_json(plan));
  EXPECT_EQ(value["phases"][0]["schedule"]["points"][10]["last_lr"].get<double>(),
            first.points.back().last_lr);
  EXPECT_FALSE(Json::parse(to_json(plan_recipe(recipe, {.advice = false})))["phases"][0].contains(
      "schedule"));
}

TEST(SchedulePreview, OfASearchHasShares) {
  const TempDir folder;
  const RecipePlan plan = plan_recipe(searching(folder), {.advice = false, .schedule = true});
  EXPECT_TRUE(plan.schedules[0].table.relative);
  EXPECT_NEAR(plan.schedules[0].table.points[1].last_lr, 1, 1e-9) << "the peak";
  EXPECT_FALSE(plan.schedules[1].table.relative);
  EXPECT_THAT(plan.schedules[0].str(), HasSubstr("share of the"));
}

TEST(SchedulesInARecipe, AreRefusedWithTheirPlace) {
  const TempDir folder;
  const auto message = [&](const std::string& schedules, const std::string& optimizer) {
    std::ofstream(folder / "r.yaml")
        << "model: mlp\noptimizer: " << optimizer
        << "\nphases: [{schedule: cosine, schedules: " << schedules << "}]\n";
    try {
      (void)read_recipe(folder / "r.yaml");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("{momentum: linear}", "sgd"), "");
  EXPECT_THAT(message("{momentum: linear}", "{kind: sgd, momentum: 0}"),
              HasSubstr("phases.0.schedules.momentum has no effect"));
  EXPECT_THAT(message("{weight_decay: linear}", "{kind: sgd, weight_decay: 0}"),
              HasSubstr("phases.0.schedules.weight_decay has no effect"));
  EXPECT_THAT(message("{momentum: one_cycle}", "sgd"),
              HasSubstr("phases.0.schedules.momentum.kind is a schedule of the rate"));
  EXPECT_THAT(message("{momentum: {kind: step, options: {gamma: 0}}}", "sgd"),
              HasSubstr("r.yaml:3:"));
}

}  // namespace
}  // namespace tare::testing
