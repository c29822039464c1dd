// Tests what the data decides where a recipe says nothing, and what is refused before any work.
#include <gmock/gmock.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "recipe/own_data.h"
#include "recipe/without_workers.h"
#include "support/fault_file_system.h"
#include "support/files.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/inference/predictor.h"
#include "tare/recipe/export.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/position.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RecipeOptions digits_phase(const TempDir& folder) {
  RecipeOptions recipe = without_workers(folder);  // plans are exact
  recipe.phases.resize(1);
  recipe.phases[0].save.clear();
  return recipe;
}

RecipeOptions written(const TempDir& folder, const std::string& run = "tiny") {
  return config::read<RecipeOptions>(config::parse_file(folder / run / "recipe.yaml"));
}

std::string refusal(const RecipeOptions& recipe, const RunOptions& options = {}) {
  return config_error_of([&] { (void)run_recipe(recipe, options); });
}

TEST(DefaultBatch, GivesASmallDataSetEnoughSteps) {
  for (const auto& [samples, batch] : std::vector<std::pair<int64_t, int64_t>>{{1, 1},
                                                                               {5, 5},
                                                                               {8, 8},
                                                                               {96, 8},
                                                                               {191, 8},
                                                                               {192, 16},
                                                                               {240, 16},
                                                                               {1535, 64},
                                                                               {1536, 128},
                                                                               {60000, 128}})
    EXPECT_EQ(default_batch(samples), batch) << samples;
}

TEST(DefaultBatch, IsThatOfThePhasesDataAndWrittenOut) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);  // 160 samples to train on
  recipe.batch.reset();
  recipe.phases.resize(2);
  recipe.phases[1].data = recipe.data;
  recipe.phases[1].data->count = 400;
  const RecipePlan plan = plan_recipe(recipe, {.advice = false});
  EXPECT_EQ(plan.phases[0].batch, 8);
  EXPECT_EQ(plan.phases[1].batch, 16);
  (void)run_recipe(recipe);
  EXPECT_EQ(written(folder).batch, 8);
  EXPECT_EQ(written(folder).phases[1].batch, 16);
}

TEST(DefaultBatch, BoundsAMicroBatch) {
  const TempDir folder;
  RecipeOptions recipe = digits_phase(folder);
  recipe.batch.reset();
  recipe.learner.micro_batch = 9;
  EXPECT_THAT(refusal(recipe), HasSubstr("micro_batch is larger than the batch of phase 1"));
  EXPECT_THROW((void)plan_recipe(recipe), ConfigError);
}

TEST(Classes, AreCountedInTheLabels) {
  const TempDir folder, pictures;
  write_image_folder(pictures.path(), 60);
  for (const char* digit : {"3", "4", "5", "6", "7", "8", "9"}) fs::remove_all(pictures / digit);
  RecipeOptions recipe = digits_phase(folder);
  recipe.batch.reset();
  recipe.data = {.name = "image_folder", .folder = pictures.path().string()};
  const RunReport report = run_recipe(recipe, {.plan = true});
  EXPECT_EQ(written(folder).model.options.classes, 3);
  EXPECT_EQ(Predictor(report.exported->path).manifest().labels.size(), 3U);
  EXPECT_EQ(*report.phases[0].planned_peak_bytes, report.phases[0].peak_bytes);
  recipe.learner.metrics = {"top_5_accuracy"};
  EXPECT_THAT(refusal(recipe), AllOf(HasSubstr("metrics.0 does not take the targets of the data"),
                                     HasSubstr("3 outputs")));
  recipe.learner.metrics = {"accuracy"};
  recipe.model.options.classes = 2;
  EXPECT_THAT(refusal(recipe), HasSubstr("model.classes is less than the 3 classes of the data"));
}

TEST(Classes, AreAutoInTheDump) {
  const TempDir folder;
  const RecipeOptions recipe = tiny(folder);
  const std::string yaml = config::to_yaml(config::to_node(recipe));
  EXPECT_THAT(yaml, HasSubstr("classes: auto"));
  EXPECT_EQ(config::read<RecipeOptions>(config::parse_text(yaml, "dump")), recipe);
}

TEST(OptimizerRate, IsThatOfEveryPhaseWithoutOne) {
  const TempDir a, b, c;
  RecipeOptions recipe = digits_phase(a);
  recipe.phases[0].lr.reset();
  recipe.learner.optimizer.lr = 1e-2;
  const double by_default = run_recipe(recipe).phases[0].epochs[0].train_loss;
  recipe.folder = b.path();
  recipe.learner.optimizer.lr = 1e-5;
  const double slow = run_recipe(recipe).phases[0].epochs[0].train_loss;
  recipe.folder = c.path();
  recipe.learner.optimizer.lr = OptimizerOptions().lr;
  recipe.phases[0].lr = 1e-2;
  EXPECT_EQ(run_recipe(recipe).phases[0].epochs[0].train_loss, by_default) << "the phase's own";
  EXPECT_NE(slow, by_default);
}

TEST(BestWeights, AreThoseThatThePhaseEndsWith) {
  const TempDir folder;
  RecipeOptions recipe = digits_phase(folder);
  recipe.model = {.name = "mlp"};
  recipe.phases[0].epochs = 3;
  recipe.phases[0].schedule.kind = "constant";
  recipe.phases[0].best = "valid_loss";
  recipe.phases[0].save = "kept";
  recipe.export_to = "m.tare";
  bool another = false;                                // an epoch before the last was the best
  for (const double rate : {0.02, 0.03, 0.05, 0.1}) {  // the loss goes up and down
    recipe.phases[0].lr = rate;
    std::ostringstream out;
    const RunReport report = run_recipe(recipe, {.out = &out});
    double best = report.phases[0].epochs[0].valid_loss;
    for (const auto& row : report.phases[0].epochs) best = std::min(best, row.valid_loss);
    ASSERT_TRUE(report.valid);
    EXPECT_DOUBLE_EQ(report.valid->loss, best);
    const EpochRow& last = report.phases[0].epochs.back();
    const int64_t restored = report.phases[0].restored_epoch;
    EXPECT_EQ(report.phases[0].epochs.at(static_cast<size_t>(restored) - 1).valid_loss, best);
    EXPECT_EQ(open_bundle(report.exported->path).manifest().metrics.at(0).value, best);
    (void)export_bundle(report.folder / "kept", folder / "again.tare");
    EXPECT_EQ(open_bundle(folder / "again.tare").manifest().metrics.at(0).value, best);
    fs::remove(folder / "again.tare");
    another = another || best < last.valid_loss;
    EXPECT_NE(out.str().find("which has the best valid_loss"), std::string::npos);
    EXPECT_FALSE(fs::exists(report.folder / "best-0"));
  }
  EXPECT_TRUE(another);
}

TEST(BestWeights, AreTheSameAfterAnInterrupt) {
  const TempDir folder;
  RecipeOptions recipe = digits_phase(folder);
  recipe.phases[0].epochs = 3;
  recipe.phases[0].best = "accuracy";
  (void)run_recipe(recipe);
  recipe.name = "stopped";
  for (int i = 0; i < 8; ++i) {  // into the second epoch, behind the first best
    request_interrupt();
    ASSERT_EQ(run_recipe(recipe, {.resume = Resume::automatic}).reason, StopReason::interrupted);
  }
  (void)run_recipe(recipe, {.resume = Resume::always});
  EXPECT_TRUE(content_of(folder / "tiny/tiny.tare") == content_of(folder / "stopped/tiny.tare"));
}

// A sticky error is what a kill looks like from the disk.
TEST(BestWeights, LeaveNoCheckpointWhereverTheEndOfARunIsCut) {
  const auto recipe_in = [](const TempDir& folder) {
    RecipeOptions recipe = digits_phase(folder);
    recipe.phases[0].best = "valid_loss";
    return recipe;
  };
  int64_t calls = 0;
  {
    const TempDir folder;
    const FaultFileSystem counted;
    (void)run_recipe(recipe_in(folder));
    calls = counted.count();
  }
  int cut = 0;
  for (int64_t at = calls - 40; at <= calls; at += 4) {
    const TempDir folder;
    try {
      const FaultFileSystem fault({.at = at, .error_number = EIO, .sticky = true});
      (void)run_recipe(recipe_in(folder));
    } catch (const IoError&) {
      ++cut;
    }
    (void)run_recipe(recipe_in(folder), {.resume = Resume::automatic});
    for (const auto& entry : fs::directory_iterator(folder / "tiny"))
      EXPECT_FALSE(entry.is_directory()) << entry.path() << " after call " << at;
  }
  EXPECT_GT(cut, 5);
}

TEST(BestWeights, NeedAFigureThatThereIs) {
  const TempDir folder;
  RecipeOptions recipe = digits_phase(folder);
  recipe.phases[0].best = "acuracy";
  EXPECT_THAT(
      refusal(recipe),
      HasSubstr("phases.0.best is not a figure of this recipe (did you mean \"accuracy\"?)"));
  recipe.phases[0].best = "accuracy";
  recipe.data.valid = 0;
  EXPECT_THAT(refusal(recipe), HasSubstr("phases.0.best needs a validation split"));
}

TEST(EarlyChecks, AreMadeBeforeAnyWorkByRunAndPlan) {
  const TempDir folder;
  const auto expect = [&](const char* piece, const auto& spoil) {
    RecipeOptions recipe = tiny(folder);
    spoil(recipe);
    EXPECT_THAT(refusal(recipe), HasSubstr(piece));
    try {
      (void)plan_recipe(recipe, {.advice = false});
      ADD_FAILURE() << "planned: " << piece;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(piece));
    }
    EXPECT_TRUE(fs::is_empty(folder.path())) << piece;
  };
  expect("phases.2.freeze_to is not a layer group", [](auto& r) { r.phases[2].freeze_to = 9; });
  expect("loss does not take the targets of the data", [](auto& r) { r.learner.loss = "mse"; });
  expect("metrics.0 does not take the targets of the data",
         [](auto& r) { r.learner.metrics = {"mae"}; });
  expect("phases.2.data.folder is not there", [](auto& r) {
    r.phases[2].data = DataOptions{.name = "image_folder", .folder = "absent"};
  });
  expect("model.classes is less than the 10 classes", [](auto& r) { r.model.options.classes = 9; });
}

TEST(EarlyChecks, NameTheNearestFolder) {
  const TempDir folder, pictures;
  write_image_folder(pictures / "images", 20);
  RecipeOptions recipe = digits_phase(folder);
  recipe.data = {.name = "image_folder", .folder = (pictures / "imagse").string()};
  EXPECT_THAT(refusal(recipe),
              AllOf(HasSubstr("data.folder is not there"), HasSubstr("did you mean \"images\"")));
}

TEST(TestSplit, IsNeverTheValidationSplitUnderAnotherName) {
  const TempDir folder;
  RecipeOptions recipe = digits_phase(folder);
  std::ostringstream out;
  const RunReport without = run_recipe(recipe, {.out = &out});
  EXPECT_FALSE(without.test);
  ASSERT_TRUE(without.valid);
  EXPECT_EQ(without.valid->loss, without.phases[0].epochs.back().valid_loss);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("valid (there is no test split), on generated data: "),
                               Not(HasSubstr("\ntest"))));
  const auto json = nlohmann::json::parse(to_json(without));
  EXPECT_FALSE(json.contains("test"));
  EXPECT_TRUE(json.at("valid").at("metrics").at("accuracy").is_number());
  EXPECT_EQ(json.at("generated"), true);
  recipe.data.train = 0.7;
  recipe.data.test = 0.1;
  const RunReport with = run_recipe(recipe);
  EXPECT_TRUE(with.test);
  EXPECT_FALSE(with.valid);
}

/// A run on own pictures that was stopped after its first step.
class StoppedRun : public ::testing::Test {
 protected:
  StoppedRun() {
    write_image_folder(pictures_.path(), 60);
    recipe_ = digits_phase(folder_);
    recipe_.batch.reset();
    recipe_.data = {.name = "image_folder", .folder = pictures_.path().string()};
    request_interrupt();
    EXPECT_EQ(run_recipe(recipe_).reason, StopReason::interrupted);
  }
  [[nodiscard]] std::string resumed() const { return refusal(recipe_, {.resume = Resume::always}); }

  TempDir folder_, pictures_;
  RecipeOptions recipe_;
};

TEST_F(StoppedRun, GoesOnOnlyWithItsData) {
  fs::copy(pictures_ / "3", pictures_ / "new");
  EXPECT_THAT(resumed(), HasSubstr("was begun with other data")) << "a class more";
  fs::remove_all(pictures_ / "new");
  fs::copy_file(fs::directory_iterator(pictures_ / "3")->path(), pictures_ / "3/more.png");
  EXPECT_THAT(resumed(), AllOf(HasSubstr("was begun with other data of phase 1: 60 images of"),
                               HasSubstr("61 images of"), HasSubstr("start anew")));
  fs::remove(pictures_ / "3/more.png");
  EXPECT_EQ(resumed(), "accepted");
}

TEST_F(StoppedRun, IsContinuedWithItsDataInAnotherPlace) {
  fs::copy(pictures_.path(), folder_ / "moved", fs::copy_options::recursive);
  recipe_.data.folder = (folder_ / "moved").string();
  EXPECT_EQ(resumed(), "accepted");
}

TEST_F(StoppedRun, IsNotContinuedWithOtherPicturesUnderTheSameNames) {
  const fs::path picture = fs::directory_iterator(pictures_ / "3")->path();
  const at::Tensor before = read_png(picture, 1);
  at::Tensor other = before.clone();
  other.mutable_data_ptr<uint8_t>()[5] ^= 1;
  write_png(picture, other);
  EXPECT_THAT(resumed(), AllOf(HasSubstr("was begun with other contents of the data of phase 1"),
                               HasSubstr("has the same names and labels as then"),
                               HasSubstr("give it the old data, or start anew")));
  write_png(picture, before);
  EXPECT_EQ(resumed(), "accepted");
}

TEST_F(StoppedRun, IsComparedWithItsCheckpointWhereItsRecipeIsGone) {
  fs::remove(folder_ / "tiny/recipe.yaml");
  recipe_.phases[0].epochs = 7;
  EXPECT_THAT(resumed(), HasSubstr("phases.0.epochs is 1 there, 7 here"));
  recipe_.phases[0].epochs = 1;
  EXPECT_EQ(resumed(), "accepted");
}

TEST(Position, KeepsTheOriginOfItsRun) {
  Position position({.recipe = "name: a\n", .data = {{"60 images", {60, "ab", "cd"}}}});
  const Origin origin = Position::origin_in(position.state());
  EXPECT_EQ(origin.recipe, "name: a\n");
  ASSERT_EQ(origin.data.size(), 1U);
  EXPECT_EQ(origin.data[0].identity, (datasets::Identity{60, "ab", "cd"}));
  const Origin earlier = Position::origin_in(
      R"({"origin": {"recipe": "a", "data": [{"description": "", "samples": 6, "digest": "ab"}]}})");
  EXPECT_EQ(earlier.data.at(0).identity.content, "") << "which is then not compared";
  EXPECT_EQ(Position::origin_in(R"({"phases": []})").recipe, "") << "of an earlier version";
  EXPECT_THROW((void)Position::origin_in(R"({"phases": [], "origin": 3})"), FormatError);
}

TEST(Position, ReturnsItsPhasesAndCountsAResume) {
  Position position;
  position.add({.name = "head",
                .epochs = {{.epoch = 3, .valid_loss = NAN, .metrics = {{"accuracy", 0.5}}}},
                .seconds = 2,
                .leaks = {{.phase = "forward", .blocks = 1, .bytes = 64}},
                .planned_peak_bytes = 4096});
  Position again;
  again.load_state(position.state());
  EXPECT_EQ(again.resumes(), 1);
  again.load_state(again.state());
  EXPECT_EQ(again.resumes(), 2);
  ASSERT_EQ(again.done().size(), 1U);
  const PhaseReport& phase = again.done()[0];
  EXPECT_EQ(phase.name, "head");
  EXPECT_EQ(phase.epochs.at(0).epoch, 3);
  EXPECT_TRUE(std::isnan(phase.epochs[0].valid_loss)) << "null in JSON";
  EXPECT_EQ(phase.epochs[0].metrics.at(0).value, 0.5);
  EXPECT_EQ(phase.leaks.at(0).bytes, 64);
  EXPECT_EQ(phase.planned_peak_bytes, 4096);
}

TEST(Position, NamesTheKeyOfADamagedState) {
  Position position;
  position.add({.name = "head", .epochs = {{.epoch = 3}}});
  std::string state = position.state();
  state.replace(state.find("\"epoch\":3"), 9, "\"epoch\":x");
  EXPECT_THROW(position.load_state(state), FormatError);
  state.replace(state.find("\"epoch\":x"), 9, "\"epoch\":{}");
  try {
    position.load_state(state);
    FAIL() << "accepted";
  } catch (const FormatError& error) {
    EXPECT_EQ(error.part(), "phases[0].epochs[0].epoch");
    EXPECT_THAT(error.what(),
                HasSubstr("the checkpoint: phases[0].epochs[0].epoch: is not a whole"));
  }
  EXPECT_EQ(position.done().size(), 1U) << "it stays as it was";
}

}  // namespace
}  // namespace tare::testing
