// Which folder a run takes, and which names a run's files may have.
#include <gmock/gmock.h>

#include <fstream>
#include <functional>

#include "recipe/tiny.h"
#include "support/files.h"
#include "tare/base/error.h"
#include "tare/base/folder_lock.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

RecipeOptions one_phase(const TempDir& folder) {
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  return recipe;
}

void expect_refused(const RecipeOptions& recipe, const RunOptions& options,
                    const std::string& piece) {
  try {
    (void)run_recipe(recipe, options);
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(piece));
  }
}

TEST(RunFolder, AFinishedRunIsNeverWrittenOver) {
  const TempDir folder;
  const RunReport first = run_recipe(one_phase(folder));
  EXPECT_EQ(first.folder, folder / "tiny");
  const std::string report = content_of(folder / "tiny/report.json");
  std::ostringstream out;
  EXPECT_EQ(run_recipe(one_phase(folder), {.out = &out}).folder, folder / "tiny-2");
  EXPECT_THAT(out.str(), HasSubstr("the folder of this run is " + (folder / "tiny-2").string()));
  EXPECT_EQ(run_recipe(one_phase(folder)).folder, folder / "tiny-3");
  EXPECT_EQ(content_of(folder / "tiny/report.json"), report);
  EXPECT_TRUE(fs::exists(folder / "tiny-3/tiny.tare"));
}

TEST(RunFolder, AnUnfinishedRunThatIsPassedByIsNamed) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder);
  recipe.save_every = 1;
  memory::host_allocator::fail_at(700);
  recipe.learner.micro_batch = recipe.batch;  // what does not fit is a crash
  EXPECT_THROW((void)run_recipe(recipe), OutOfMemory);
  memory::host_allocator::fail_at(0);
  const std::string unfinished =
      "an unfinished run is in " + (folder / "tiny").string() + ": --resume would continue it";
  std::ostringstream beside, continued, after;
  (void)run_recipe(recipe, {.out = &beside});
  EXPECT_THAT(beside.str(), HasSubstr(unfinished));
  (void)run_recipe(recipe, {.out = &continued, .resume = Resume::always});
  EXPECT_THAT(continued.str(),
              HasSubstr("continues the run in " + (folder / "tiny").string() + " from autosave-"));
  (void)run_recipe(recipe, {.out = &after});
  EXPECT_THAT(after.str(), Not(HasSubstr("an unfinished run")));
}

TEST(RunFolder, ARunOfAnotherRecipeIsNoneOfTheSeries) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder), other = one_phase(folder);
  other.name = "tiny-2";
  other.batch = *recipe.batch / 2;
  for (const RecipeOptions& each : {recipe, other}) {
    request_interrupt();
    ASSERT_EQ(run_recipe(each).reason, StopReason::interrupted);
  }
  EXPECT_EQ(run_recipe(recipe, {.resume = Resume::always}).folder, folder / "tiny");
  EXPECT_EQ(run_recipe(other, {.resume = Resume::always}).folder, folder / "tiny-2");
}

TEST(RunFolder, OverwriteTakesTheFirstAgain) {
  const TempDir folder;
  (void)run_recipe(one_phase(folder));
  const std::string report = content_of(folder / "tiny/report.json");
  EXPECT_EQ(run_recipe(one_phase(folder), {.overwrite = true}).folder, folder / "tiny");
  EXPECT_NE(content_of(folder / "tiny/report.json"), report);
  EXPECT_FALSE(fs::exists(folder / "tiny-2"));
  const RunOptions as_a_sweep{.resume = Resume::automatic, .overwrite = true};
  EXPECT_EQ(run_recipe(one_phase(folder), as_a_sweep).folder, folder / "tiny");
}

// Such as one that was killed before its first automatic checkpoint.
TEST(RunFolder, OfAnUnfinishedRunWithWeightsIsNotWrittenOver) {
  const TempDir folder;
  (void)run_recipe(one_phase(folder));
  fs::remove(folder / "tiny/report.json");
  EXPECT_EQ(run_recipe(one_phase(folder), {.resume = Resume::automatic}).folder, folder / "tiny-2");
  EXPECT_TRUE(fs::exists(folder / "tiny/first"));
  fs::remove_all(folder / "tiny-2");
  fs::remove_all(folder / "tiny/first");
  EXPECT_EQ(run_recipe(one_phase(folder), {.resume = Resume::automatic}).folder, folder / "tiny");
}

TEST(RunFolder, OverwriteLeavesNothingThatTellsOfTheEarlierRun) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder);
  (void)run_recipe(recipe);
  ASSERT_TRUE(fs::exists(folder / "tiny/tiny.tare"));
  recipe.learner.micro_batch = recipe.batch;  // what does not fit is a crash
  memory::host_allocator::fail_at(700);
  EXPECT_THROW((void)run_recipe(recipe, {.overwrite = true}), OutOfMemory);
  memory::host_allocator::fail_at(0);
  for (const char* file : {"tiny.tare", "report.json", "report.html", "first"})
    EXPECT_FALSE(fs::exists(folder / "tiny" / file)) << file;
}

TEST(RunFolder, OverwriteIsRefusedWhereItWouldRemoveTheWeightsThatTheRunStartsFrom) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder);
  (void)run_recipe(recipe);
  for (const char* weights : {"first/model.safetensors", "tiny.tare"}) {
    recipe.model.options.weights = (folder / "tiny" / weights).string();
    expect_refused(recipe, {.overwrite = true}, "a result of the earlier run");
    for (const char* file : {"first/model.safetensors", "tiny.tare", "report.json"})
      EXPECT_TRUE(fs::exists(folder / "tiny" / file)) << file;
  }
  EXPECT_EQ(run_recipe(recipe).folder, folder / "tiny-2");
}

TEST(RunFolder, OverwriteRemovesWhatTheEarlierRunWroteUnderNamesOfItsOwn) {
  const TempDir folder;
  RecipeOptions before = one_phase(folder), after = one_phase(folder);
  before.phases[0].save = "earlier";
  before.phases[0].name = "other";
  before.callbacks = {{{.name = "csv_log", .options = config::parse_text("{file: own.csv}", "")}}};
  after.export_to.reset();
  after.phases[0].save.clear();
  (void)run_recipe(before);
  const std::vector<std::string> files{"tiny.tare", "earlier", "other.csv", "other.steps.csv",
                                       "own.csv"};
  for (const auto& file : files) ASSERT_TRUE(fs::exists(folder / "tiny" / file)) << file;
  std::ofstream(folder / "tiny/notes.tare") << "mine";
  (void)run_recipe(after, {.overwrite = true});
  for (const auto& file : files) EXPECT_FALSE(fs::exists(folder / "tiny" / file)) << file;
  EXPECT_TRUE(fs::exists(folder / "tiny/notes.tare"));
}

TEST(RunFolder, OverwriteRemovesNothingForARecipeThatNoRunHasWritten) {
  for (const char* text : {"export: ../mine.tare\nphases: [{}]\n", "export: trial.json\n",
                           "exports: mine.tare\n", "export: [mine.tare\n", "name: tiny\n"}) {
    const TempDir folder;
    fs::create_directories(folder / "tiny");
    const std::vector<std::string> files{"mine.tare", "tiny/mine.tare", "tiny/tiny.tare",
                                         "tiny/trial.json"};
    for (const auto& file : files) std::ofstream(folder / file) << "mine";
    std::ofstream(folder / "tiny/recipe.yaml") << text;
    expect_refused(one_phase(folder), {.overwrite = true}, "holds 'recipe.yaml'");
    expect_refused(one_phase(folder), {.resume = Resume::automatic, .overwrite = true},
                   "holds 'recipe.yaml'");
    for (const auto& file : files) EXPECT_TRUE(fs::exists(folder / file)) << text << file;
    EXPECT_EQ(content_of(folder / "tiny/recipe.yaml"), text);
    EXPECT_EQ(run_recipe(one_phase(folder), {.resume = Resume::automatic}).folder,
              folder / "tiny-2");
  }
}

TEST(RunFolder, OverwriteIsRefusedForFilesThatNoRunHasWritten) {
  const TempDir folder;
  (void)run_recipe(one_phase(folder));
  const fs::path notes = folder / "tiny/notes/thesis.tex", bundle = folder / "tiny/other.tare";
  fs::create_directories(notes.parent_path());
  for (const fs::path& file : {notes, bundle}) std::ofstream(file) << "mine";
  RecipeOptions exports = one_phase(folder), saves = one_phase(folder);
  exports.export_to = "other.tare";
  saves.phases[0].save = "notes";
  for (const Resume resume : {Resume::never, Resume::automatic}) {
    expect_refused(exports, {.resume = resume, .overwrite = true}, "holds 'other.tare'");
    expect_refused(saves, {.resume = resume, .overwrite = true}, "holds 'notes'");
  }
  for (const fs::path& file : {notes, bundle}) EXPECT_EQ(content_of(file), "mine");
  for (const char* file : {"first", "tiny.tare", "report.json"})
    EXPECT_TRUE(fs::exists(folder / "tiny" / file)) << file;
}

TEST(RunFolder, AReportOfAnotherProgramMakesNoRun) {
  const TempDir folder;
  fs::create_directories(folder / "tiny");
  for (const char* file : {"report.json", "report.html", "tiny.tare"})
    std::ofstream(folder / "tiny" / file) << "mine";
  expect_refused(one_phase(folder), {.overwrite = true}, "holds 'report.json'");
  EXPECT_EQ(run_recipe(one_phase(folder), {.resume = Resume::automatic}).folder, folder / "tiny-2");
  for (const char* file : {"report.json", "report.html", "tiny.tare"})
    EXPECT_EQ(content_of(folder / "tiny" / file), "mine");
}

TEST(RunFolder, AFolderUnderTheNameOfACheckpointIsNoCheckpoint) {
  for (const char* name : {"autosave-0", "autosave-1", "before-autosave-0"}) {
    const TempDir folder;
    const fs::path mine = folder / "tiny" / name / "thesis.tex";
    fs::create_directories(mine.parent_path());
    std::ofstream(mine) << "mine";
    const std::string held = std::string("holds '") + name;
    expect_refused(one_phase(folder), {.overwrite = true}, held);
    expect_refused(one_phase(folder), {.resume = Resume::automatic, .overwrite = true}, held);
    expect_refused(one_phase(folder), {.resume = Resume::always}, "holds no unfinished run");
    EXPECT_EQ(run_recipe(one_phase(folder), {.resume = Resume::automatic}).folder,
              folder / "tiny-2");
    EXPECT_EQ(run_recipe(one_phase(folder)).folder, folder / "tiny-3");
    EXPECT_EQ(content_of(mine), "mine");
  }
}

TEST(RunFolder, ACheckpointWithoutAManifestIsNamedWhereTheRunCannotContinue) {
  const TempDir folder;
  request_interrupt();
  ASSERT_EQ(run_recipe(one_phase(folder)).reason, StopReason::interrupted);
  const bool first = fs::exists(folder / "tiny/autosave-0");
  const fs::path checkpoint = folder / "tiny" / (first ? "autosave-0" : "autosave-1");
  fs::remove(checkpoint / "manifest.json");
  expect_refused(one_phase(folder), {.resume = Resume::always},
                 checkpoint.string() + "' is not a whole checkpoint, because its manifest.json");
}

TEST(RunFolder, AnUnfinishedRunWithAFolderOfOthersIsNotContinued) {
  const TempDir folder;
  request_interrupt();
  ASSERT_EQ(run_recipe(one_phase(folder)).reason, StopReason::interrupted);
  const bool first = fs::exists(folder / "tiny/autosave-0");
  const std::string name = first ? "autosave-1" : "autosave-0";
  const fs::path mine = folder / "tiny" / name / "thesis.tex";
  fs::create_directories(mine.parent_path());
  std::ofstream(mine) << "mine";
  fs::create_directories(folder / "tiny/mine.partial");
  std::ofstream(folder / "tiny/mine.partial/model.safetensors") << "mine";
  for (const bool overwrite : {false, true})
    for (const Resume resume : {Resume::always, Resume::automatic})
      expect_refused(one_phase(folder), {.resume = resume, .overwrite = overwrite},
                     "holds '" + name);
  EXPECT_EQ(content_of(mine), "mine");
  fs::remove_all(mine.parent_path());
  EXPECT_FALSE(run_recipe(one_phase(folder), {.resume = Resume::always}).resumed_from.empty());
  EXPECT_EQ(content_of(folder / "tiny/mine.partial/model.safetensors"), "mine");
}

TEST(RunFolder, ARunThatWasKilledBeforeItsFirstCheckpointStartsAnew) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder);
  recipe.learner.micro_batch = recipe.batch;  // what does not fit is a crash
  memory::host_allocator::fail_at(700);
  EXPECT_THROW((void)run_recipe(recipe), OutOfMemory);
  memory::host_allocator::fail_at(0);
  fs::remove(folder / "tiny/report.json");
  EXPECT_EQ(run_recipe(recipe, {.resume = Resume::automatic}).folder, folder / "tiny");
}

TEST(RunFolder, AFolderWithoutARunIsTaken) {
  const TempDir folder;
  fs::create_directories(folder / "tiny");
  std::ofstream(folder / "tiny/notes.txt") << "mine";
  EXPECT_EQ(run_recipe(one_phase(folder)).folder, folder / "tiny");
}

TEST(RunFolder, FilesOfOthersUnderTheNamesOfARunAreNeverWrittenOver) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder);
  recipe.phases[0].save = "model";
  const fs::path mine = folder / "tiny/model/thesis.tex", bundle = folder / "tiny/tiny.tare";
  fs::create_directories(mine.parent_path());
  for (const fs::path& file : {mine, bundle}) std::ofstream(file) << "mine";
  EXPECT_EQ(run_recipe(recipe).folder, folder / "tiny-2");
  EXPECT_EQ(run_recipe(recipe, {.resume = Resume::automatic}).folder, folder / "tiny-3");
  EXPECT_THROW((void)run_recipe(recipe, {.overwrite = true}), ConfigError);
  EXPECT_THROW((void)run_recipe(recipe, {.resume = Resume::automatic, .overwrite = true}),
               ConfigError);
  for (const fs::path& file : {mine, bundle}) EXPECT_EQ(fs::file_size(file), 4) << file;
}

TEST(RunFolder, AFolderThatAnotherProcessHasIsPassedUnlessItMustBeTaken) {
  const TempDir folder;
  fs::create_directories(folder / "tiny");
  const io::FolderLock lock(folder / "tiny");
  EXPECT_THROW((void)run_recipe(one_phase(folder), {.overwrite = true}), StateError);
  EXPECT_THROW((void)run_recipe(one_phase(folder), {.resume = Resume::always}), StateError);
  EXPECT_EQ(run_recipe(one_phase(folder)).folder, folder / "tiny-2");
}

TEST(RunFolder, ResumeContinuesTheLastUnfinishedRun) {
  const TempDir folder;
  (void)run_recipe(one_phase(folder));
  request_interrupt();
  const RunReport stopped = run_recipe(one_phase(folder));
  ASSERT_EQ(stopped.reason, StopReason::interrupted);
  EXPECT_EQ(stopped.folder, folder / "tiny-2");
  EXPECT_EQ(run_recipe(one_phase(folder)).folder, folder / "tiny-3") << "a new run";
  const RunReport resumed = run_recipe(one_phase(folder), {.resume = Resume::always});
  EXPECT_EQ(resumed.folder, folder / "tiny-2");
  EXPECT_FALSE(resumed.resumed_from.empty());
  EXPECT_THROW((void)run_recipe(one_phase(folder), {.resume = Resume::always}), ConfigError);
  EXPECT_EQ(run_recipe(one_phase(folder), {.resume = Resume::automatic}).folder, folder / "tiny-4");
}

struct Clash {
  const char* name;
  std::function<void(RecipeOptions&)> spoil;
  const char* piece;
};
void PrintTo(const Clash& clash, std::ostream* out) { *out << clash.name; }

class NamesOfFiles : public ::testing::TestWithParam<Clash> {};

TEST_P(NamesOfFiles, ThatWouldDestroyOneAnotherAreRefusedBeforeAnyWork) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  GetParam().spoil(recipe);
  expect_refused(recipe, {}, GetParam().piece);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

INSTANTIATE_TEST_SUITE_P(
    Clashes, NamesOfFiles,
    ::testing::Values(
        Clash{"Partial", [](auto& r) { r.export_to = "a.partial"; }, "export ends in .partial"},
        Clash{"Old", [](auto& r) { r.phases[0].save = r.phases[1].load = "b.old"; },
              "phases.0.save ends in .old"},
        Clash{"Report", [](auto& r) { r.export_to = "report.json"; },
              "export would be 'report.json'"},
        Clash{"Recipe", [](auto& r) { r.phases[0].save = r.phases[1].load = "recipe.yaml"; },
              "phases.0.save would be 'recipe.yaml'"},
        Clash{"Autosave", [](auto& r) { r.export_to = "autosave-0"; }, "a file of the run itself"},
        Clash{"SetAside", [](auto& r) { r.phases[1].save = "before-autosave-1"; },
              "a file of the run itself"},
        Clash{"HalfWritten", [](auto& r) { r.export_to = "report.json.partial"; },
              "a file of the run itself"},
        Clash{"Page", [](auto& r) { r.export_to = "report.html"; }, "a file of the run itself"},
        Clash{"Plot", [](auto& r) { r.export_to = "loss.svg"; }, "a file of the run itself"},
        Clash{"PlotOfAMetric",
              [](auto& r) { r.phases[0].save = r.phases[1].load = "accuracy.png"; },
              "a file of the run itself"},
        Clash{"StepsOfAnother", [](auto& r) { r.phases[1].name = "all.steps"; }, "'all.steps.csv'"},
        Clash{"TableOfAPhase", [](auto& r) { r.export_to = "head.csv"; }, "the table of phase 2"},
        Clash{"SavedTwice", [](auto& r) { r.phases[1].save = "first"; },
              "the checkpoint of phase 1"},
        Clash{"ExportAndSave", [](auto& r) { r.export_to = "first"; }, "the checkpoint of phase 1"},
        Clash{"BestWeights",
              [](auto& r) {
                r.phases[1].best = "accuracy";
                r.export_to = "best-1";
              },
              "a file of the run itself"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tare::testing
