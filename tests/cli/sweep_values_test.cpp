// Tests the messages of `tare sweep` about values and combinations before anything runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/tiny_sweep.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The deepest batch norm sees one value per channel of an image of 8 x 8 pixels.
TEST(SweepValues, PlanRefusesALastBatchThatTheRunsWouldRefuse) {
  const Sweep sweep;
  const auto plan = sweep.tare({"plan", "sweep.yaml",
                                "set={data.size: 8, data.train: 129, data.valid: 40, drop_last: "
                                "false, phases.0.epochs: 1}"});
  EXPECT_EQ(plan.status, 2) << plan.out;
  EXPECT_THAT(plan.err,
              HasSubstr("the last batch of an epoch has 1 sample (129 in batches of 32)"));
}

TEST(SweepValues, StagesAreRefusedBecauseARunHasOneDevice) {
  const Sweep sweep;
  const auto plan = sweep.tare({"plan", "sweep.yaml", "set={device: auto, stages: [cpu, cpu]}"});
  EXPECT_EQ(plan.status, 2) << plan.out;
  EXPECT_THAT(plan.err, HasSubstr("stages divide a model over several devices, and a sweep gives"));
}

// Before any run, with the key and the line of the sweep's own file.
TEST(SweepValues, AWrongValueIsReportedAtItsPlace) {
  const Sweep sweep;
  const auto message = [&](const std::string& file, const std::string& text) {
    std::ofstream(sweep.folder / file) << text;
    const auto run = sweep.tare({"run", file});
    EXPECT_EQ(run.status, 2) << text;
    EXPECT_FALSE(fs::exists(sweep.folder / "runs/w")) << text;
    return run.err;
  };
  const std::string head = "name: w\nrecipe: recipe.yaml\n";
  EXPECT_THAT(message("w.yaml", head + "set: {phases.0.epochs: 0}\nparameters: {batch: [8]}\n"),
              HasSubstr("w.yaml:3:24: set.phases.0.epochs must be from 1 to 1000000000"));
  EXPECT_THAT(message("w.yaml", head + "parameters:\n  batch: [8, 16]\n  phases.0.lr:\n"
                                       "    - 1.0e-3\n    - fast\n"),
              HasSubstr("w.yaml:7:7: parameters.phases.0.lr.1 must be"));
  EXPECT_THAT(message("w.yaml", head + "parameters: {model.name: [resnet9, resnet9k]}\n"),
              HasSubstr("w.yaml:3:36: parameters.model.name.1 is not known"));
  EXPECT_THAT(message("w.yaml", head + "parameters: {batch: {values: [8, 16, 0]}}\n"),
              HasSubstr("w.yaml:3:38: parameters.batch.2 must be >= 1, got 0"));
  EXPECT_THAT(message("w.yaml", head + "parameters: {model.widht: [4]}\n"),
              HasSubstr("w.yaml:3:28: parameters.model.widht is not a known key"));
  EXPECT_THAT(message("w.yaml", head + "method: random\ntrials: 2\n"
                                       "parameters: {phases.0.lr: {min: -1, max: 1}}\n"),
              HasSubstr("w.yaml:5:27: parameters.phases.0.lr must be > 0"));
  EXPECT_THAT(message("w.yaml", head + "metric: {name: accuracy}\nparameters: {batch: [8]}\n"),
              HasSubstr("metric.goal is the wrong one for accuracy, of which higher is better"));
  EXPECT_THAT(message("w.yaml", head + "metric: {name: acuracy}\nparameters: {batch: [8]}\n"),
              HasSubstr("w.yaml:3:16: metric.name is not a metric of the recipe"));
  EXPECT_THAT(message("w.yaml", head + "parameters: {phases.0.lr: {min: 0.1, max: 1}}\n"),
              HasSubstr("w.yaml:3:27: parameters.phases.0.lr cannot be counted for a grid"));
  EXPECT_THAT(message("w.yaml", head + "parameters: {batch: [8]}\nexclude: [{batch: 8}]\n"),
              HasSubstr("w.yaml:4:11: exclude.0 and what follows exclude every combination"));
  EXPECT_THAT(message("w.yaml", "name: w\nrecipe: gone.yaml\nparameters: {batch: [8]}\n"),
              HasSubstr("w.yaml:2:9: recipe is not there, got gone.yaml"));
  // Files that the sweep itself writes to the folder of a run.
  EXPECT_THAT(message("w.yaml", head + "set: {export: loss.svg}\nparameters: {batch: [8]}\n"),
              HasSubstr("w.yaml:3:15: set.export would be 'loss.svg'"));
  EXPECT_THAT(message("w.yaml", head + "parameters: {phases.0.save: [a, accuracy.png]}\n"),
              HasSubstr("w.yaml:3:33: parameters.phases.0.save.1 would be 'accuracy.png"));
  EXPECT_THAT(message("w.yaml", head + "parameters: {export: [w.log, w12_x.err]}\n"),
              HasSubstr("w.yaml:3:30: parameters.export.1 would be written to 'w12_x.err'"));
  // An option of what the recipe names: the error is about all of its options.
  EXPECT_THAT(message("w.yaml", head + "set: {callbacks: [{save_best: {}}]}\n"
                                       "parameters:\n  callbacks.0.save_best.monitor: [valid_loss, "
                                       "nope]\n"),
              HasSubstr("w.yaml:5:47: parameters.callbacks.0.save_best.monitor"));
  // The data or the model refuse the following settings.
  EXPECT_THAT(message("w.yaml", head + "set: {phases.0.freeze_to: 9}\nparameters: {batch: [8]}\n"),
              HasSubstr("w.yaml:3:27: set.phases.0.freeze_to is not a layer group of the model"));
  EXPECT_THAT(message("w.yaml", head + "parameters: {batch: [8, 5000]}\n"),
              HasSubstr("w.yaml:3:25: parameters.batch.1 is larger than the training split"));
  EXPECT_THAT(message("w.yaml", head + "parameters: {loss: [cross_entropy, mse]}\n"),
              HasSubstr("w.yaml:3:36: parameters.loss.1 does not take the targets of the data"));
  EXPECT_THAT(message("w.yaml", head + "set: {data.name: image_folder, data.folder: gone}\n"
                                       "parameters: {phases.0.lr: [0.1]}\n"),
              HasSubstr("set.data.folder is not there, got gone"));
  EXPECT_THAT(message("w.yaml", head + "set: {data.name: image_folder}\n"
                                       "parameters: {data.folder: [\".\", gone]}\n"),
              HasSubstr("parameters.data.folder.1 is not there, got gone"));
  const std::string furcate =
      "{\"data_name\": \"w\", \"data_dir\": \"d\", \"recipe\": \"recipe.yaml\", \"log_dir\": "
      "\"runs/w\",\n \"meta\": {\"allow_cpu\": true},\n ";
  EXPECT_THAT(message("w.json", furcate + "\"epochs\": 1, \"batch_size\": [8, 0]}"),
              HasSubstr("w.json:3:33: batch_size.1 must be >= 1"));
  EXPECT_THAT(message("w.json", furcate + "\"epochs\": \"x\", \"batch_size\": [8]}"),
              HasSubstr("w.json:3:12: epochs must be"));
  EXPECT_THAT(
      message("w.json", furcate + "\"epochs\": 1, \"batch_size\": [8],\n "
                                  "\"optimizer_name\": [\"SGD\", \"Addam\"]}"),
      AllOf(HasSubstr("w.json:4:28: optimizer_name.1 is not known"), HasSubstr("got Addam")));
  EXPECT_THAT(message("w.json", furcate + "\"epochs\": 1, \"batch_size\": [8],\n "
                                          "\"export\": \"w0.log\"}"),
              HasSubstr("w.json:4:12: export would be written to 'w0.log'"));
  EXPECT_THAT(
      message("w.json", furcate + "\"epochs\": 1, \"batch_sze\": [8], \"batch_size\": 8}"),
      HasSubstr("w.json:3:15: batch_sze is not a key of furcate or of a recipe (did you mean "
                "\"batch_size\"?)"));
}

TEST(SweepValues, AValueThatNoCombinationAcceptsIsReportedAtItsPlace) {
  const Sweep sweep;
  const auto message = [&](const std::string& text) {
    std::ofstream(sweep.folder / "w.yaml") << "name: w\nrecipe: recipe.yaml\n" << text;
    const auto plan = sweep.tare({"plan", "w.yaml"});
    EXPECT_EQ(plan.status, 2) << text;
    return plan.err;
  };
  EXPECT_THAT(message("parameters: {batch: [16, 32], micro_batch: [16, 64]}\n"),
              HasSubstr("w.yaml:3:49: parameters.micro_batch.1 is larger than the batch"));
  const std::string one_left = "set: {data.size: 8, data.train: 129, data.valid: 40}\n";
  EXPECT_THAT(message(one_left + "parameters: {phases.0.lr: [0.1], drop_last: [true, false]}\n"),
              HasSubstr("w.yaml:4:52: parameters.drop_last.1 is refused: the last batch"));
  // The recipe refuses other values because of this one.
  EXPECT_THAT(message("set: {batch: 64}\nparameters: {phases.0.lr: [0.1], data.train: [60]}\n"),
              HasSubstr("w.yaml:3:14: set.batch is larger than the training split"));
  EXPECT_THAT(message("parameters: {batch: [16, 32], micro_batch: [32]}\n"),
              HasSubstr("w.yaml:3:22: parameters.batch.0 is refused by the recipe: micro_batch is "
                        "larger than the batch"));
  std::ofstream(sweep.folder / "recipe.yaml", std::ios::app) << "micro_batch: 16\n";
  EXPECT_THAT(message("parameters: {phases.0.lr: [0.1], batch: [32, 8]}\n"),
              HasSubstr("w.yaml:3:46: parameters.batch.1 is refused by the recipe: micro_batch is "
                        "larger than the batch of phase 1"));
}

TEST(SweepValues, AValueOfTheCommandLineHasItsIndex) {
  const Sweep sweep;
  const auto plan = sweep.tare({"plan", "sweep.yaml", "parameters.phases.0.lr=[0.1, x]"});
  EXPECT_EQ(plan.status, 2);
  EXPECT_THAT(plan.err, HasSubstr("parameters.phases.0.lr.1 must be"));
}

TEST(SweepValues, ASharedValueThatEveryCombinationMakesValidIsAccepted) {
  const Sweep sweep;  // its recipe has batches of 32
  const auto run = sweep.tare({"run", "sweep.yaml", "set={micro_batch: 64, phases.0.epochs: 1}",
                               "parameters={batch: [64, 96]}"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("tiny: 2 complete, 0 failed"));
}

TEST(SweepValues, ACombinationThatIsInvalidOnlyTogetherIsNamedAndFailsAlone) {
  const Sweep sweep;
  for (const char* batches : {"[32, 64]", "[64, 32]"}) {
    const std::string parameters =
        std::string("parameters={batch: ") + batches + ", micro_batch: [16, 64]}";
    const auto plan = sweep.tare({"plan", "sweep.yaml", parameters});
    EXPECT_EQ(plan.status, 0) << plan.err;
    EXPECT_THAT(plan.out, ::testing::ContainsRegex("tiny[13]_b32_mb64  is refused: [^\n]*"
                                                   "micro_batch is larger than the batch"));
    EXPECT_THAT(plan.out, ::testing::ContainsRegex("tiny[13]_b64_mb64  round [12]  planned"));
  }
  const std::string parameters = "parameters={batch: [32, 64], micro_batch: [16, 64]}";
  const auto run = sweep.tare({"run", "sweep.yaml", parameters});
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("the combination {batch: 32, micro_batch: 64} fails: "),
                             HasSubstr("add the combination to `exclude` to skip it")));
  EXPECT_THAT(run.out, HasSubstr("tiny: 3 complete, 1 failed"));
  const auto without =
      sweep.tare({"plan", "sweep.yaml", parameters, "exclude=[{batch: 32, micro_batch: 64}]"});
  EXPECT_EQ(without.err, "");
  EXPECT_THAT(without.out, HasSubstr("tiny: 3 runs"));
}

}  // namespace
}  // namespace tare::testing
