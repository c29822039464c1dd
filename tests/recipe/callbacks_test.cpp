// Callbacks and clipping that a recipe names: they act, they are checked early, they resume.
#include <ATen/core/Tensor.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "recipe/own_data.h"
#include "recipe/tiny.h"
#include "support/npy_file.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/callback/registry.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/inference/bundle.h"
#include "tare/recipe/export.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/resolve.h"
#include "tare/train/interrupt.h"
#include "tare/train/train_state.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Ends a fit after so many epochs.
struct StopAfterOptions {
  int64_t epochs = 1;
};
void visit_fields(auto& visit, StopAfterOptions& o) {
  visit("epochs", o.epochs, config::at_least(1));
}
class StopAfter final : public Callback {
 public:
  explicit StopAfter(const StopAfterOptions& options) : epochs_(options.epochs) {}
  [[nodiscard]] std::string name() const override { return "stop_after"; }
  Action after_epoch(FitContext& context) override {
    return context.epoch + 1 >= epochs_ ? Action::stop_fit : Action::proceed;
  }

 private:
  int64_t epochs_;
};

class RecipeCallbacks : public ::testing::Test {
 protected:
  [[nodiscard]] RecipeOptions recipe(const std::string& more) const {
    const std::string text =
        "name: tiny\nfolder: " + folder_.path().string() +
        "\nbatch: 32\nworkers: 0\ndevice: cpu\nsave_every: 0\n"
        "data: {name: generated_digits, count: 200, size: 12}\nmodel: {name: mlp, hidden: [8]}\n" +
        more;
    std::ofstream(folder_ / "r.yaml") << text;
    return read_recipe(folder_ / "r.yaml");
  }
  [[nodiscard]] std::string refusal(const std::string& more) const {
    return config_error_of([&] { (void)recipe(more); });
  }
  /// Returns how a run refuses the recipe with data that have no validation split.
  [[nodiscard]] std::string refusal_without_validation(const std::string& more) const {
    RecipeOptions r = recipe(more);
    r.data.train = 1;
    r.data.valid = 0;
    return config_error_of([&] { (void)run_recipe(r); });
  }
  /// Returns the recipe with 40 pictures as arrays; their targets are the file `labels`: the
  /// classes in y.npy, or three numbers each in values.npy.
  [[nodiscard]] RecipeOptions recipe_on_arrays(const std::string& more,
                                               const std::string& labels) const {
    write_arrays(folder_.path(), 40);
    write_npy(folder_ / "values.npy", at::rand({40, 3}));
    RecipeOptions r = recipe(more);
    r.data = {
        .name = "npy", .labels = (folder_ / labels).string(), .file = (folder_ / "x.npy").string()};
    return r;
  }
  TempDir folder_;
};

TEST_F(RecipeCallbacks, ActInEveryPhaseOrInTheirOwn) {
  callbacks::registry().add<StopAfterOptions>(
      "stop_after", "end a fit after some epochs",
      [](const StopAfterOptions& o) { return std::make_shared<StopAfter>(o); });
  const RunReport all = run_recipe(
      recipe("callbacks: [{stop_after: {epochs: 2}}]\nphases: [{epochs: 4}, {epochs: 3}]\n"));
  EXPECT_EQ(all.phases[0].epochs.size(), 2U);
  EXPECT_EQ(all.phases[1].epochs.size(), 2U);
  const RunReport second =
      run_recipe(recipe("phases: [{epochs: 3}, {epochs: 3, callbacks: [stop_after]}]\n"));
  EXPECT_EQ(second.phases[0].epochs.size(), 3U);
  EXPECT_EQ(second.phases[1].epochs.size(), 1U);
}

TEST_F(RecipeCallbacks, EarlyStoppingAndSaveBestEndWithTheBestWeights) {
  const RunReport report = run_recipe(
      recipe("callbacks: [{early_stopping: {monitor: train_loss, min_delta: 100, patience: 1}},\n"
             "            {save_best: {monitor: train_loss, min_delta: 100, checkpoint: first}},\n"
             "            memory_log, {csv_log: {file: all.csv}}]\n"
             "phases: [{name: only, epochs: 9, lr: 1.0e-2, save: last}]\n"));
  EXPECT_EQ(report.phases[0].epochs.size(), 3U) << "two epochs without improvement by 100";
  const auto weights = [&](const char* name) {
    return io::read_text(report.folder / name / "model.safetensors");
  };
  EXPECT_EQ(weights("first").substr(8), weights("last").substr(8)) << "those of the first epoch";
  EXPECT_THAT(io::read_text(report.folder / "all.csv"), HasSubstr("used_mib,peak_mib"));
  EXPECT_THAT(io::read_text(report.folder / "recipe.yaml"),
              AllOf(HasSubstr("early_stopping:"), HasSubstr("patience: 1")));
}

TEST_F(RecipeCallbacks, SeeValidationsInsideEpochs) {
  const RecipeOptions every = recipe(
      "valid_every: 2\nexport: best.tare\ncallbacks: [{early_stopping: {min_delta: 100}}]\n"
      "phases: [{name: only, epochs: 3, lr: 1.0e-2, best: valid_loss}]\n");
  std::ostringstream out;
  const RunReport report = run_recipe(every, {.out = &out, .plan = true});
  const PhaseReport& phase = report.phases.at(0);
  ASSERT_EQ(phase.validations.size(), 2U);
  EXPECT_EQ(phase.validations[1].step, 4) << "the second is no improvement by 100";
  ASSERT_EQ(phase.epochs.size(), 1U);
  EXPECT_EQ(phase.epochs[0].valid_loss, phase.validations[1].valid_loss);
  EXPECT_EQ(phase.epochs[0].samples, 128);
  ASSERT_GT(phase.restored_step, 0);
  const size_t best = phase.restored_step == 2 ? 0 : 1;
  const auto figures = open_bundle(report.folder / "best.tare").manifest().metrics;
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].value, phase.validations[best].valid_loss);
  EXPECT_EQ(figures[1].value, phase.validations[best].metrics.at(0).value);
  const std::string step = std::to_string(phase.restored_step);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("step 2  valid_loss "), HasSubstr("step 4  valid_loss "),
                               HasSubstr("the weights are those of step " + step),
                               HasSubstr(", kept step " + step + " (valid_loss ")));
  EXPECT_THAT(io::read_text(report.folder / "recipe.yaml"), HasSubstr("valid_every: 2"));
  EXPECT_THAT(io::read_text(report.folder / "report.json"), HasSubstr("\"validations\""));
}

TEST_F(RecipeCallbacks, ValidationsInsideEpochsNeedAValidationSplit) {
  EXPECT_THAT(refusal_without_validation("valid_every: 3\nphases: [{epochs: 1}]\n"),
              AllOf(HasSubstr("r.yaml:9:14"), HasSubstr("valid_every needs a validation split")));
  EXPECT_THAT(refusal("valid_every: -1\nphases: [{epochs: 1}]\n"),
              HasSubstr("valid_every must be >= 0, got -1"));
}

TEST_F(RecipeCallbacks, SavingInTheBackgroundNeedsSomethingThatSaves) {
  const auto with = [&](const std::string& more) {
    return refusal("save_in_background: true\n" + more);
  };
  EXPECT_THAT(with("phases: [{epochs: 1}]\n"),
              HasSubstr("save_in_background has no effect, because nothing saves inside a phase"));
  EXPECT_EQ(with("phases: [{epochs: 1, best: accuracy}]\n"), "accepted");
  EXPECT_EQ(with("callbacks: [keep_checkpoints]\nphases: [{epochs: 1}]\n"), "accepted");
  EXPECT_EQ(with("phases: [{callbacks: [timed_save]}]\n"), "accepted");
}

TEST_F(RecipeCallbacks, AreRefusedBeforeAnyWorkAtTheirPlace) {
  const auto with = [&](const std::string& list) {
    return refusal("callbacks: " + list + "\nphases: [{epochs: 1}]\n");
  };
  EXPECT_THAT(with("[early_stoping]"), AllOf(HasSubstr("r.yaml:9:13: callbacks.0 is no callback"),
                                             HasSubstr("did you mean \"early_stopping\"")));
  EXPECT_THAT(with("[{early_stopping: {patience: -1}}]"),
              HasSubstr("r.yaml:9:41: callbacks.0.early_stopping.patience must be >= 0, got -1"));
  EXPECT_THAT(
      with("[{early_stopping: {monitor: acuracy}}]"),
      AllOf(HasSubstr("watches what is not a column"), HasSubstr("did you mean \"accuracy\""),
            HasSubstr("callbacks.0.early_stopping")));
  EXPECT_THAT(with("[csv_log, csv_log]"), HasSubstr("callbacks.1.csv_log is given twice"));
  EXPECT_THAT(with("[{csv_log: {file: report.json}}]"),
              AllOf(HasSubstr("callbacks.0.csv_log.file would be 'report.json'"),
                    HasSubstr("a file of the run itself")));
  EXPECT_THAT(with("[{csv_log: {file: ../x.csv}}]"),
              HasSubstr("callbacks.0.csv_log.file must be a plain"));
  EXPECT_THAT(with("{early_stopping: {}}"), HasSubstr("callbacks must be a list"));
  EXPECT_THAT(refusal("phases: [{callbacks: [save_best]}, {callbacks: [save_best]}]\n"),
              AllOf(HasSubstr("phases.1.callbacks.0.save_best.checkpoint would be 'best'"),
                    HasSubstr("a file of the callback save_best:best")));
  EXPECT_EQ(with("[memory_log, {early_stopping: {monitor: peak_mib, lower_is_better: true}}]"),
            "accepted");
  EXPECT_THAT(with("[{early_stopping: {monitor: peak_mib, lower_is_better: true}}, memory_log]"),
              HasSubstr("callbacks.0.early_stopping watches a column that memory_log adds, which "
                        "comes behind it, got peak_mib; allowed: memory_log in front of it"));
}

TEST_F(RecipeCallbacks, OneOfThemAtMostRestoresTheBestWeights) {
  EXPECT_THAT(refusal("phases: [{best: accuracy, callbacks: [save_best]}]\n"),
              HasSubstr("phases.0.callbacks.0.save_best restores the best weights at the end of a "
                        "phase, as phases.0.best does"));
  EXPECT_THAT(refusal("callbacks: [save_best]\nphases: [{epochs: 1}, {best: accuracy}]\n"),
              HasSubstr("callbacks.0.save_best restores the best weights at the end of a phase, as "
                        "phases.1.best does"));
  EXPECT_THAT(refusal("callbacks: [save_best]\nphases: [{callbacks: [{save_best: {checkpoint: b, "
                      "monitor: accuracy}}]}]\n"),
              HasSubstr("phases.0.callbacks.0.save_best restores the best weights at the end of a "
                        "phase, as callbacks.0.save_best does"));
  EXPECT_EQ(refusal("phases: [{best: accuracy, callbacks: [{save_best: {restore: false}}]}]\n"),
            "accepted");
}

TEST_F(RecipeCallbacks, ACheckpointBehindALogHasTheRowOfItsEpoch) {
  (void)run_recipe(recipe("callbacks: [csv_log, keep_checkpoints]\nphases: [{epochs: 2}]\n"));
  const fs::path path = folder_ / "tiny/epoch-1";
  const auto loaded = checkpoint::load(path);
  std::string rows;
  for (const CallbackState& callback : train_state_from(loaded.state, loaded.extra, path).callbacks)
    if (callback.name == "csv_log:history.csv") rows = callback.state;
  EXPECT_THAT(rows, HasSubstr("\"rows\":\"1,"));
}

TEST_F(RecipeCallbacks, WatchingAValidationNeedsOne) {
  EXPECT_THAT(refusal_without_validation("callbacks: [early_stopping]\nphases: [{epochs: 1}]\n"),
              HasSubstr("callbacks.0.early_stopping needs a validation split"));
  const RecipeOptions of_a_target =
      recipe("callbacks: [{early_stopping: {monitor: accuracy.age}}]\nphases: [{epochs: 1}]\n");
  try {
    (void)run_recipe(of_a_target);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("callbacks.0.early_stopping watches a figure of one of "
                                        "several targets, and the data have one"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "tiny"));
}

TEST_F(RecipeCallbacks, ADryRunWritesNoneOfTheirFiles) {
  const RecipeOptions r =
      recipe("callbacks: [csv_log, save_best, memory_log]\nphases: [{epochs: 1}]\n");
  (void)run_recipe(r, {.dry_run = true});
  EXPECT_FALSE(fs::exists(folder_ / "tiny"));
}

TEST_F(RecipeCallbacks, AStoppedRunContinuesAsIfItHadNotStopped) {
  const std::string text =
      "callbacks: [{early_stopping: {monitor: train_loss, min_delta: 100, patience: 3}}, csv_log,\n"
      "            {save_best: {monitor: train_loss}}]\nclip: {norm: 0.5}\n"
      "phases: [{name: only, epochs: 9, lr: 1.0e-2}]\n";
  const RunReport straight = run_recipe(recipe(text));
  RecipeOptions stopped = recipe(text);
  stopped.name = "stopped";
  int stops = 0;
  RunReport report;
  do {
    request_interrupt();
    report = run_recipe(stopped, {.resume = Resume::automatic});
  } while (report.reason == StopReason::interrupted && ++stops < 40);
  clear_interrupt();  // the last one came when nothing was left to do
  EXPECT_GT(stops, 5);
  ASSERT_EQ(straight.phases[0].epochs.size(), report.phases[0].epochs.size());
  for (size_t i = 0; i < straight.phases[0].epochs.size(); ++i)
    EXPECT_EQ(straight.phases[0].epochs[i].train_loss, report.phases[0].epochs[i].train_loss);
  EXPECT_EQ(straight.valid->loss, report.valid->loss);
}

TEST_F(RecipeCallbacks, ClippingActsAndIsPlannedToTheByte) {
  const std::string phases = "phases: [{name: only, epochs: 2, lr: 1.0e-1}]\n";
  double plain_loss = 0;
  for (const char* clip : {"", "clip: {norm: 0.01}\n", "clip: {value: 0.001}\n"}) {
    const RecipeOptions r = recipe(clip + phases);
    const RecipePlan plan = plan_recipe(r);
    const RunReport report = run_recipe(r);
    EXPECT_EQ(plan.phases[0].method, "meta") << clip << plan.phases[0].reason;
    EXPECT_EQ(plan.phases[0].peak_bytes, report.phases[0].peak_bytes) << clip;
    const double loss = report.phases[0].epochs.back().train_loss;
    if (*clip == '\0')
      plain_loss = loss;
    else
      EXPECT_NE(loss, plain_loss) << clip;
  }
  EXPECT_THAT(refusal("clip: {norm: 1, value: 1}\n" + phases),
              HasSubstr("clip.value contradicts norm"));
  EXPECT_THAT(refusal("clip: {norm: .inf}\n" + phases), HasSubstr("clip.norm must be finite"));
  EXPECT_THAT(refusal("clip: {norm: 1}\nstep_in_backward: true\n" + phases),
              HasSubstr("clip needs all gradients of a step"));
}

TEST_F(RecipeCallbacks, AveragesAreExportedAndPlannedToTheByte) {
  const std::string phases =
      "phases: [{name: only, epochs: 3, lr: 1.0e-2, save: last}]\nexport: a.tare\n";
  for (const char* list : {"[{ema: {decay: 0.9, warmup: 5}}, gradient_norm]", "[swa]"}) {
    const RecipeOptions r = recipe("callbacks: " + std::string(list) + "\n" + phases);
    const RecipePlan plan = plan_recipe(r);
    const RunReport report = run_recipe(r, {.overwrite = true});
    EXPECT_EQ(plan.phases[0].method, "meta") << list << plan.phases[0].reason;
    EXPECT_EQ(plan.phases[0].peak_bytes, report.phases[0].peak_bytes) << list;
    EXPECT_EQ(report.residual_bytes, 0) << list;
    ASSERT_TRUE(report.valid) << list;
    EXPECT_EQ(report.valid->loss, report.phases[0].epochs.back().valid_loss)
        << list << ": the exported weights are those that validated";
  }
}

// The run would end with these weights if it restored the checkpoint.
TEST_F(RecipeCallbacks, ExportOfACheckpointHasTheAveragesAndTheirFigures) {
  const std::string phases = "phases: [{epochs: 2, lr: 1.0e-2}]\nexport: end.tare\n";
  const RunReport report = run_recipe(
      recipe("callbacks: [{ema: {decay: 0.9}}, {save_best: {monitor: train_loss}}]\n" + phases));
  const auto made = export_bundle(report.folder / "best", report.folder / "made.tare");
  const Bundle best = open_bundle(made.bundle), end = open_bundle(report.folder / "end.tare");
  EXPECT_EQ(best.manifest().metrics, end.manifest().metrics);
  EXPECT_FALSE(best.manifest().metrics.empty());
  for (const auto& [name, tensor] : end.tensors())
    EXPECT_TRUE(tensor.equal(best.file().tensor(name))) << name;
}

TEST_F(RecipeCallbacks, ABundleHasNoFiguresOfWeightsThatItLacks) {
  const RunReport report =
      run_recipe(recipe("callbacks: [{ema: {decay: 0.9, restore: false}}, save_best]\n"
                        "phases: [{epochs: 2, lr: 1.0e-2, save: last}]\nexport: end.tare\n"));
  EXPECT_TRUE(open_bundle(report.folder / "end.tare").manifest().metrics.empty());
  for (const char* name : {"best", "last"}) {
    const auto made = export_bundle(report.folder / name, report.folder / "made.tare");
    EXPECT_TRUE(open_bundle(made.bundle).manifest().metrics.empty()) << name;
  }
}

TEST_F(RecipeCallbacks, AStopFileIsNoFileOfTheRunAndNoFolder) {
  const auto with = [&](const std::string& file) {
    return refusal("callbacks: [{stop_file: {file: " + file + "}}]\nphases: [{epochs: 1}]\n");
  };
  EXPECT_THAT(with("report.json"), HasSubstr("callbacks.0.stop_file.file would be 'report.json'"));
  for (const char* none : {"''", ".", "..", "stop/", "a/.."})
    EXPECT_THAT(with(none), HasSubstr("callbacks.0.stop_file.file names no file")) << none;
  EXPECT_THAT(with(fs::temp_directory_path().string()), HasSubstr("names a folder"));
  EXPECT_EQ(with("../stop"), "accepted");
}

TEST_F(RecipeCallbacks, DataThatACallbackCannotWorkOnAreFoundByTheCheckOfARecipe) {
  const auto checked = [&](const std::string& callbacks) -> std::string {
    const RecipeOptions r = recipe("phases: [{callbacks: [" + callbacks + "]}]\n");
    RecipeData data;
    return config_error_of([&] { check_run(r, data); });
  };
  EXPECT_THAT(checked("sample_text"), HasSubstr("phases.0.callbacks.0.sample_text needs texts"));
  EXPECT_EQ(checked("{tensorboard: {images: 3}}"), "accepted");
}

TEST_F(RecipeCallbacks, APromptThatTheVocabularyLacksIsRefusedBeforeTheRun) {
  write_text(folder_ / "book.txt", 200);
  const auto checked = [&](const std::string& prompt) -> std::string {
    RecipeOptions r =
        recipe("phases: [{callbacks: [{sample_text: {prompt: '" + prompt + "'}}]}]\n");
    r.data = {.name = "text", .file = (folder_ / "book.txt").string(), .context = 12};
    r.model = {.name = "gpt"};
    r.learner.metrics.clear();
    RecipeData data(datasets::Network::forbidden);
    return config_error_of([&] { (void)resolve_recipe(r, data); });
  };
  EXPECT_THAT(checked("line Q"),
              HasSubstr("phases.0.callbacks.0.sample_text.prompt has 'Q', which is no character of "
                        "the data, got line Q; allowed: a text of the characters "));
  EXPECT_EQ(checked("line a"), "accepted");
}

TEST_F(RecipeCallbacks, MixingTakesTheClassesOfDataThatNameNone) {
  RecipeOptions r = recipe_on_arrays("callbacks: [mixup]\nphases: [{epochs: 1}]\n", "y.npy");
  r.batch = 8;
  EXPECT_EQ(plan_recipe(r).phases[0].peak_bytes, run_recipe(r).phases[0].peak_bytes);
}

TEST_F(RecipeCallbacks, AModelHasAnOutputForEachNumberOfATarget) {
  const RecipeOptions r =
      recipe_on_arrays("loss: mse\nmetrics: []\nphases: [{epochs: 1}]\n", "values.npy");
  RecipeData data;
  EXPECT_EQ(resolve_recipe(r, data).recipe.model.options.classes, 3);
}

TEST_F(RecipeCallbacks, ProbabilitiesAsTargetsAreChecked) {
  const RecipeOptions r =
      recipe_on_arrays("loss: bce_with_logits\nmetrics: []\nphases: [{epochs: 1}]\n", "values.npy");
  RecipeData data;
  EXPECT_EQ(config_error_of([&] { check_run(r, data); }), "accepted");
}

TEST_F(RecipeCallbacks, ACheckpointBehindASearchTakesWhatIsPlanned) {
  RecipeOptions r = recipe("phases: [{epochs: 1, lr: {find: {steps: 40}}}]\n");
  r.model.options.hidden = {1};
  r.batch = 2;  // so small that the checkpoint is the peak
  r.save_every = 5;
  EXPECT_EQ(plan_recipe(r).phases[0].peak_bytes, run_recipe(r).phases[0].peak_bytes);
}

TEST_F(RecipeCallbacks, GradientsOfAStepAreNotThereToReadWithStepInBackward) {
  EXPECT_THAT(refusal("step_in_backward: true\nphases: [{callbacks: [gradient_norm]}]\n"),
              HasSubstr("phases.0.callbacks.0.gradient_norm needs the gradients of a whole step"));
}

TEST_F(RecipeCallbacks, ASecondCallbackThatAveragesIsRefused) {
  EXPECT_THAT(refusal("callbacks: [ema]\nphases: [{callbacks: [swa]}]\n"),
              HasSubstr("phases.0.callbacks.0.swa is the second callback that puts weights into "
                        "the validation"));
  EXPECT_THAT(refusal("callbacks: [ema]\nphases: [{}, {}]\n"), HasSubstr("accepted"));
}

TEST_F(RecipeCallbacks, CheckpointsOfEpochsHaveNamesOfTheirOwn) {
  EXPECT_THAT(refusal("callbacks: [keep_checkpoints]\nphases: [{epochs: 2, save: epoch-2}]\n"),
              HasSubstr("'epoch-2' in the run's folder"));
  EXPECT_EQ(refusal("callbacks: [keep_checkpoints]\nphases: [{epochs: 2, save: epoch-3}]\n"),
            "accepted");
  EXPECT_THAT(refusal("callbacks: [keep_checkpoints]\n"
                      "phases: [{duration: {steps: 9}, save: epoch-2}]\n"),
              HasSubstr("'epoch-2' in the run's folder"));
  const RunReport report = run_recipe(
      recipe("callbacks: [{keep_checkpoints: {last: 2}}]\nphases: [{epochs: 2}, {epochs: 2}]\n"));
  for (const char* name : {"epoch-3", "epoch-4"}) EXPECT_TRUE(fs::exists(report.folder / name));
  for (const char* name : {"epoch-1", "epoch-2"}) EXPECT_FALSE(fs::exists(report.folder / name));
}

TEST_F(RecipeCallbacks, ADryRunWritesNothingOfTheLoggersAndSavers) {
  const RecipeOptions r = recipe(
      "callbacks: [tensorboard, jsonl_log, keep_checkpoints, {timed_save: {minutes: 1.0e-9}},\n"
      "            ema, throughput, stop_file]\nphases: [{epochs: 1}]\n");
  (void)run_recipe(r, {.dry_run = true});
  EXPECT_FALSE(fs::exists(folder_ / "tiny"));
}

TEST_F(RecipeCallbacks, LoggersAndAveragesContinueWhereARunWasStopped) {
  const std::string text =
      "callbacks: [{ema: {decay: 0.9}}, {jsonl_log: {every: 1}}, gradient_norm,\n"
      "            {reduce_on_plateau: {monitor: train_loss, min_delta: 100, patience: 1}}]\n"
      "phases: [{epochs: 3, lr: 1.0e-2, callbacks: [{tensorboard: {every: 1}}]},\n"
      "         {epochs: 2, lr: 1.0e-3}]\n";
  const RunReport straight = run_recipe(recipe(text));
  RecipeOptions stopped = recipe(text);
  stopped.name = "stopped";
  int stops = 0;
  RunReport report;
  do {
    request_interrupt();
    report = run_recipe(stopped, {.resume = Resume::automatic});
  } while (report.reason == StopReason::interrupted && ++stops < 60);
  clear_interrupt();
  EXPECT_GT(stops, 5);
  EXPECT_EQ(straight.valid->loss, report.valid->loss);
  const auto events = [&](const RunReport& run) {
    return fs::file_size(run.folder / "tensorboard/events.out.tfevents.tare");
  };
  EXPECT_EQ(events(straight), events(report));
  const auto lines = [&](const RunReport& run) {
    std::vector<nlohmann::json> all;
    std::ifstream file(run.folder / "log.jsonl");
    for (std::string line; std::getline(file, line);) {
      all.push_back(nlohmann::json::parse(line));
      all.back().erase("time");
      all.back().erase("seconds");
    }
    return all;
  };
  EXPECT_EQ(lines(straight), lines(report));
  EXPECT_EQ(lines(straight).back()["epoch"], 5);
}

}  // namespace
}  // namespace tare::testing
