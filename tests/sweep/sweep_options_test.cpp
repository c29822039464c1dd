// Reading sweeps, and the message for every mistake.
#include "tare/sweep/sweep_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep/support.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/search/sampler.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

TEST(SweepOptions, ReadsEveryKey) {
  const SweepFiles files;
  const auto sweep = files.read(
      "method: grid\n"
      "metric: {name: accuracy, goal: maximize}\n"
      "trials: 7\n"
      "set: {b.c: 5}\n"
      "parameters:\n"
      "  a: [1, 2]\n"
      "  x: {values: [sgd, adam]}\n"
      "  lr: {min: 1e-5, max: 1e-1, log: true}\n"
      "  layers: {min: 1, max: 9, step: 2}\n"
      "exclude: [{a: 1, layers: 9}]\n"
      "when: [{param: lr, if: {x: sgd}}]\n"
      "resources: {jobs: 3, total: 2GiB, memory: 100MiB}\n"
      "on_failure: {max_retries: 2, max_failed: 10}\n",
      {"trials=6"});
  EXPECT_EQ(sweep.name, "s");
  EXPECT_TRUE(sweep.recipe.is_absolute());
  EXPECT_EQ(sweep.metric.goal, "maximize");
  EXPECT_EQ(sweep.trials, 6);
  ASSERT_EQ(sweep.parameters.parameters.size(), 4U);
  const auto& lr = *sweep.parameters.find("lr")->range;
  EXPECT_EQ(lr, (search::Range{.low = 1e-5, .high = 1e-1, .log = true}));
  const auto& layers = *sweep.parameters.find("layers")->range;
  EXPECT_EQ(layers, (search::Range{.low = 1, .high = 9, .step = 2, .integer = true}));
  EXPECT_EQ(sweep.resources.total.bytes, 2_GiB);
  EXPECT_EQ(sweep.resources.memory.bytes, 100_MiB);
  EXPECT_EQ(sweep.on_failure.max_failed, 10);
  EXPECT_EQ(sweep.when.front().param, "lr");
}

TEST(SweepOptions, ReadsWhereRunsAre) {
  const SweepFiles files;
  const auto read = [&](const std::string& text) {
    return files.read("parameters: {a: [1]}\n" + text).executor;
  };
  EXPECT_EQ(read("").name, "local");
  EXPECT_EQ(read("executor: slurm\n").name, "slurm");
  const auto executor = read(
      "executor: {type: slurm, options: ['--gres=gpu:1'], setup: [module load cuda], "
      "save_before_s: 30}\n");
  EXPECT_EQ(config::to_yaml(config::to_node(executor)),
            "type: slurm\noptions: [--gres=gpu:1]\nsetup: [module load cuda]\nsave_before_s: 30\n");
  const std::map<std::string, std::string> wrong{
      {"executor: ray\n", "sweep.yaml:5:11: executor.type is no executor, got ray"},
      {"executor: {type: slurm, options: [gpu]}\n", "has an entry that is not an option of sbatch"},
      {"executor: {type: slurm, options: [--array=1]}\n",
       "has an option that the sweep sets itself"},
      {"executor: {type: slurm, options: [-a, 1]}\n", "has an option that the sweep sets itself"},
      {"executor: {type: slurm, options: [-Jmine]}\n", "has an option that the sweep sets itself"},
      {"executor: {type: slurm, options: [--job-n=x]}\n",
       "has an option that the sweep sets itself"},
      {"executor: {options: [--exclusive]}\n",
       "executor.options is not a known key; there are no options"},
      {"executor: slurm\nmethod: random\ntrials: 4\n",
       "resources.jobs is missing; allowed: how many runs may run at a time"}};
  for (const auto& [text, message] : wrong) {
    try {
      (void)read(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }
}

TEST(SweepOptions, OfTheTreeAllRead) {
  const std::filesystem::path root =
      std::filesystem::path(std::getenv("TARE_SOURCE_DIR")) / "recipes/configs";
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".yaml") continue;
    if (!config::parse_file(entry.path()).find("recipe")) continue;
    const auto sweep = sweep::read_sweep(entry.path(), {});
    const bool has_cells = search::draws(sweep) ? search::sample(sweep, {}, 0, 1).has_value()
                                                : !search::grid(sweep).empty();
    EXPECT_TRUE(has_cells) << entry.path();
    EXPECT_TRUE(std::filesystem::exists(sweep.recipe)) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(SweepOptions, LogsBelowRunsByDefault) {
  const SweepFiles files;
  EXPECT_EQ(files.read("", {"log_dir=''"}).log_dir, "runs/s");
}

TEST(SweepOptions, NamesPlaceAndRemedyOfEveryMistake) {
  const SweepFiles files;
  const auto message = [&](const std::string& text) -> std::string {
    try {
      (void)files.read(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::pair<const char*, const char*> mistakes[]{
      {"methd: grid\n", "sweep.yaml:4:1: methd is not a known key (did you mean \"method\"?)"},
      {"method: hill\n", "sweep.yaml:4:9: method is no sampler, got hill; allowed: grid"},
      {"metric: {goal: up}\n", "metric.goal is not known, got up"},
      {"trials: -1\n", "trials must be >= 0, got -1"},
      {"parameters: [a]\n", "parameters must be a mapping"},
      {"parameters: {a: 3}\n", "sweep.yaml:4:17: parameters.a must be a list of values"},
      {"parameters: {a: []}\n", "parameters.a has no values"},
      {"parameters: {a: {values: 3}}\n", "parameters.a must be {values: [...]} alone"},
      {"parameters: {a: {values: [1], max: 3}}\n", "parameters.a must be {values: [...]} alone"},
      {"parameters: {a: {min: 3}}\n", "parameters.a has no min or no max"},
      {"parameters: {a: {min: 3, max: 1}}\n", "parameters.a has a min above its max"},
      {"parameters: {a: {min: 0, max: 1, log: true}}\n", "parameters.a cannot be logarithmic"},
      {"parameters: {a: {min: 0, max: 1, stp: 1}}\n", "parameters.a.stp is not a known key"},
      {"parameters: {a: {min: 0, max: 1, step: 0}}\n", "step must be > 0"},
      {"parameters: {a: [1]}\nset: {a: 2}\n", "set.a is a parameter as well"},
      {"parameters: {lr: [1]}\nexclude: [{lrr: 2}]\n", "exclude.0.lrr is not a parameter"},
      {"parameters: {lr: [1]}\nwhen: [{param: lr, if: {q: 2}}]\n",
       "when.0.if.q is not a parameter"},
      {"parameters: {lr: [1]}\nwhen: [{param: r, if: {lr: 2}}]\n",
       "when.0.param is not a parameter"},
      {"resources: {total: much}\n", "resources.total must be auto or a number of bytes"},
      {"resources: {jobs: 1.5}\n", "resources.jobs"},
      {"on_failure: {max_retries: -1}\n", "max_retries must be"},
      {"name: t\n", "name"},
      {"parameters: {folder: [a]}\n", "parameters.folder cannot vary"},
  };
  for (const auto& [text, expected] : mistakes)
    EXPECT_THAT(message(text), HasSubstr(expected)) << text;
  TempDir folder;
  io::write_atomically(folder / "x.yaml", "name: a/b\nrecipe: r.yaml\n");
  EXPECT_THROW((void)sweep::read_sweep(folder / "x.yaml", {}), ConfigError);
  io::write_atomically(folder / "x.yaml", "name: " + std::string(65, 'a') + "\nrecipe: r\n");
  EXPECT_THROW((void)sweep::read_sweep(folder / "x.yaml", {}), ConfigError);
  io::write_atomically(folder / "x.yaml", "name: a\n");
  EXPECT_THROW((void)sweep::read_sweep(folder / "x.yaml", {}), ConfigError);
}

}  // namespace
}  // namespace tare::testing
