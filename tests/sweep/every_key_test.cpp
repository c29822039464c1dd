// Every key of a sweep, and every option of what a sweep names: another value changes what is
// drawn, what is pruned, the commands of the runs, their places, their store or the jobs of a
// cluster, or it is refused with advice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "support/every_key.h"
#include "sweep/query.h"
#include "sweep/shell_sweep.h"
#include "tare/base/error.h"
#include "tare/search/pruner.h"
#include "tare/search/sampler.h"
#include "tare/search/samplers.h"
#include "tare/search/value_text.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using search::SeenTrial;
using search::TrialState;
using sweep::SweepOptions;

/// One of four runs fails, one is killed the first time, and two finish.
constexpr const char* kScript =
    "test $a = 1 && test $c = 4 && exit 1; test $a = 2 && test $c = 3 && test ! -e $folder/again "
    "&& touch $folder/again && kill -9 $$; finish 0.$a 1000";

/// Returns the metric of an epoch of a made-up run; later runs are not always better.
double metric_of(int64_t number, int64_t epoch) {
  return static_cast<double>((number * 7) % 12) + 0.1 * static_cast<double>(epoch % 5);
}

/// Returns sixteen draws, each with a value that depends on it.
std::string draws_of(const SweepOptions& sweep) {
  std::string text;
  std::vector<SeenTrial> seen;
  for (int64_t number = 0; number < 16; ++number) {
    const auto cell = search::sample(sweep, seen, number, sweep.seed);
    if (!cell) break;
    text += search::python_text(*cell) + '\n';
    SeenTrial trial{.number = number,
                    .state = TrialState::complete,
                    .params = point_of(sweep.parameters, *cell)};
    trial.value = trial.params.begin()->second;
    seen.push_back(std::move(trial));
  }
  return text;
}

/// Returns where the pruner of the sweep ends or pauses each of some runs, and what it continues.
std::string pruned_by(const SweepOptions& sweep) {
  constexpr int64_t kRuns = 12, kEpochs = 27;
  const auto pruner = search::pruners::registry().make(sweep.pruner);
  const bool maximize = sweep.metric.goal == "maximize";
  search::Study study{.name = sweep.name, .maximize = maximize};
  std::vector<SeenTrial> history;
  std::ostringstream text;
  for (int64_t number = 0; number < kRuns; ++number) {
    history.push_back({.number = number, .state = TrialState::running});
    auto decision = search::PruneDecision::proceed;
    int64_t epoch = 0;
    while (epoch < kEpochs && decision == search::PruneDecision::proceed) {
      ++epoch;
      history.back().reports[epoch] = metric_of(number, epoch);
      const auto result = search::decide(*pruner, study, history, number);
      study.resolved = result.resolved;
      history.back().rungs = result.rungs;
      decision = result.decision;
    }
    const bool pauses = decision == search::PruneDecision::pause;
    const bool ends = decision == search::PruneDecision::prune;
    history.back().state = pauses ? TrialState::waiting
                           : ends ? TrialState::pruned
                                  : TrialState::complete;
    history.back().value = metric_of(number, epoch);
    text << to_string(history.back().state) << ' ' << epoch << '\n';
    if (const auto next = pruner->next_promotion(maximize, history))
      text << "continues " << next->number << " at " << next->rung << '\n';
  }
  return text.str();
}

class EverySweepKey : public ShellSweepTest {
 protected:
  void SetUp() override {
    const fs::path folder = files_.log_dir().parent_path();
    io::write_atomically(folder / "other.yaml", "name: r\na: 1\nb: {c: 3}\n");
    fs::create_directories(folder / "bin");
    tool("sbatch", "echo \"$@\" > '" + (folder / "submitted").string() + "'; echo 7");
    // A job that Slurm names before it is submitted would be taken for one of an earlier sweep.
    tool("squeue", "test ! -e '" + (folder / "submitted").string() + "' || echo 7_0 PENDING");
    tool("scancel", ":");
    ::setenv("PATH", ((folder / "bin").string() + ':' + std::getenv("PATH")).c_str(), 1);
  }

  void tool(const std::string& name, const std::string& script) const {
    const fs::path file = files_.log_dir().parent_path() / "bin" / name;
    std::ofstream(file) << "#!/bin/sh\n" << script << '\n';
    fs::permissions(file, fs::perms::owner_all);
  }

  [[nodiscard]] SweepOptions read(const std::vector<std::string>& settings) const {
    return files_.read(
        "metric: {name: acc, goal: maximize}\nparameters: {a: [1, 2], c: [3, 4]}\n"
        "resources: {jobs: 1, total: 2GiB}\n",
        settings);
  }

  /// All that a user sees of the sweep with these settings, or its refusal; without times.
  [[nodiscard]] std::string observed(const std::vector<std::string>& settings) {
    fs::remove_all(files_.log_dir());
    fs::remove_all(files_.log_dir().parent_path() / "elsewhere");
    try {
      const SweepOptions sweep = read(settings);
      std::string text = pruned_by(sweep);
      if (search::draws(sweep)) text += draws_of(sweep);
      const bool remote = launch::executor_type(sweep.executor).is_remote;
      return text + (remote ? jobs_of(sweep) : runs_of(sweep));
    } catch (const ConfigError& error) {
      return std::string("refused: ") + error.what();
    }
  }

  /// Executes the sweep, and returns the commands of its runs and their store.
  [[nodiscard]] std::string runs_of(const SweepOptions& sweep) {
    std::ostringstream text;
    auto host = host_of(sweep, kScript);
    host.command = [&, command = host.command](const auto& settings, const auto& slot,
                                               int64_t budget) {
      for (const auto& setting : settings) text << setting << ' ';
      text << "on " << slot.name << " of " << slot.total_bytes << ", " << slot.jobs
           << " at a time, budget " << budget << '\n';
      return command(settings, slot, budget);
    };
    const auto report = sweep::run_sweep(sweep, host);
    text << report.started << " started, " << report.failed << " failed\n";
    const fs::path file = sweep.log_dir / (sweep.name + ".sqlite");
    for (const char* query :
         {"SELECT direction FROM study_directions",
          "SELECT number, state, run_name, identity FROM trials JOIN sweep_runs USING (trial_id) "
          "ORDER BY number",
          "SELECT trial_id, value FROM trial_values ORDER BY trial_id"})
      for (const auto& row : rows(file, query)) text << row << '\n';
    return text.str();
  }

  /// Returns the script of the cluster's jobs, and how they are submitted.
  [[nodiscard]] std::string jobs_of(const SweepOptions& sweep) const {
    const fs::path file = files_.log_dir().parent_path() / "submitted";
    fs::remove_all(sweep.log_dir /
                   "slurm");  // no agent of other settings is taken for one of these
    fs::remove(file);
    fs::create_directories(sweep.log_dir);
    const auto executor =
        launch::executor_type(sweep.executor).make({.folder = sweep.log_dir, .agent = {"agent"}});
    (void)executor->recover({});
    (void)executor->has_capacity(1);  // submits what is missing
    std::string submitted = io::read_text(file);
    const size_t name = submitted.find("--job-name=");  // a new one for each folder
    submitted.erase(name, submitted.find(' ', name) - name);
    return submitted + io::read_text(sweep.log_dir / "slurm/agent.sh");
  }

  [[nodiscard]] static KeyRows rows_of_keys();
  [[nodiscard]] static KeyRows rows_of_options();
};

/// Keys whose effect another test shows: a machine with GPUs is needed.
const std::map<std::string, std::string>& not_observed() {
  static const std::map<std::string, std::string> all{
      {"resources.max_per_gpu", "GpuSlots.AreTheCardsWhoseMemoryIsKnown"}};
  return all;
}

KeyRows EverySweepKey::rows_of_keys() {
  const std::vector<std::string> range{"parameters={a: {min: 1, max: 9, step: 2}}", "trials=3"},
      drawn{"parameters={a: {min: 0.1, max: 9.0}}", "trials=3", "method=random"};
  return {
      {"name", {"name=t"}},
      {"recipe", {"recipe=other.yaml"}},
      {"log_dir", {"log_dir=elsewhere"}},
      {"set", {"set={b.c: 7}"}},
      {"method", {"method=random"}},
      {"metric.name", {"metric.name=valid_loss"}},
      {"metric.goal", {"metric.goal=minimize"}},
      {"trials", {"trials=2"}},
      {"seed", {"seed=7", {"method=random"}}},
      {"parameters", {"parameters={a: [1, 2], c: [3, 5]}"}},
      {"parameters.min", {"parameters={a: {min: 3, max: 9, step: 2}}", range}},
      {"parameters.max", {"parameters={a: {min: 1, max: 3, step: 2}}", range}},
      {"parameters.step", {"parameters={a: {min: 1, max: 9, step: 4}}", range}},
      {"parameters.log", {"parameters={a: {min: 0.1, max: 9.0, log: true}}", drawn}},
      {"exclude", {"exclude=[{a: 1, c: 4}]"}},
      {"when", {"when=[{param: c, if: {a: 1}}]"}},
      {"pruner", {"pruner=asha"}},
      {"resources.jobs", {"resources.jobs=2"}},
      {"resources.ranks", {"resources.ranks=2"}},
      {"resources.total", {"resources.total=3GiB"}},
      {"resources.memory", {"resources.memory=100MiB"}},
      {"on_failure.max_retries", {"on_failure.max_retries=0"}},
      {"on_failure.max_failed", {"on_failure.max_failed=1"}},
      {"executor", {"executor=slurm"}},
  };
}

KeyRows EverySweepKey::rows_of_options() {
  const std::vector<std::string> tpe{"method=tpe", "trials=2",
                                     "parameters={a: {min: 0.0, max: 1.0}}"},
      asha{"pruner={type: asha, min_resource: 1, reduction_factor: 3}"},
      promotion{"pruner={type: asha_promotion, min_resource: 1, reduction_factor: 3}"},
      hyperband{"pruner={type: hyperband, min_resource: 1, max_resource: 27}"},
      slurm{"executor=slurm"};
  return {
      {"method.tpe.start_trials", {"method={tpe: {start_trials: 4}}", tpe}},
      {"method.tpe.candidates", {"method={tpe: {candidates: 2}}", tpe}},
      {"pruner.asha.min_resource", {"pruner.min_resource=3", asha}},
      {"pruner.asha.reduction_factor", {"pruner.reduction_factor=2", asha}},
      {"pruner.asha.min_early_stopping_rate", {"pruner.min_early_stopping_rate=1", asha}},
      {"pruner.asha.bootstrap_count", {"pruner.bootstrap_count=4", asha}},
      {"pruner.asha_promotion.min_resource", {"pruner.min_resource=3", promotion}},
      {"pruner.asha_promotion.reduction_factor", {"pruner.reduction_factor=2", promotion}},
      {"pruner.asha_promotion.min_early_stopping_rate",
       {"pruner.min_early_stopping_rate=1", promotion}},
      {"pruner.asha_promotion.bootstrap_count", {"pruner.bootstrap_count=4", promotion}},
      {"pruner.hyperband.min_resource", {"pruner.min_resource=3", hyperband}},
      {"pruner.hyperband.max_resource", {"pruner.max_resource=9", hyperband}},
      {"pruner.hyperband.reduction_factor", {"pruner.reduction_factor=2", hyperband}},
      {"pruner.hyperband.bootstrap_count", {"pruner.bootstrap_count=4", hyperband}},
      {"executor.slurm.options", {"executor.options=['--gres=gpu:1']", slurm}},
      {"executor.slurm.setup", {"executor.setup=[module load cuda]", slurm}},
      {"executor.slurm.save_before_s", {"executor.save_before_s=30", slurm}},
  };
}

/// Adds the keys below a mapping of options; what has entries by name is one key.
void add_keys(const config::Node& node, const std::string& parent, std::set<std::string>& keys) {
  for (const auto& [key, source, value] : node.entries) {
    const std::string path = parent + key;
    const bool is_group = path == "metric" || path == "resources" || path == "on_failure";
    if (is_group)
      add_keys(value, path + '.', keys);
    else
      keys.insert(path);
  }
}

TEST_F(EverySweepKey, HasARow) {
  std::set<std::string> keys, with_row;
  add_keys(config::to_node(SweepOptions{}), "", keys);
  for (const auto& [row, more] : rows_of_keys())
    if (!row.starts_with("parameters.")) with_row.insert(row);
  for (const auto& [row, test] : not_observed()) with_row.insert(row);
  EXPECT_EQ(with_row, keys);
}

TEST_F(EverySweepKey, HasARowForEachOptionOfWhatASweepNames) {
  std::set<std::string> options, with_row;
  options.merge(options_of("method", search::samplers::registry().infos()));
  options.merge(options_of("pruner", search::pruners::registry().infos()));
  options.merge(options_of("executor", launch::executors::registry().infos()));
  for (const auto& [row, more] : rows_of_options()) with_row.insert(row);
  EXPECT_EQ(with_row, options);
}

TEST_F(EverySweepKey, HasAnEffectOrIsRefused) {
  KeyRows all = rows_of_options();
  all.merge(rows_of_keys());
  expect_effects(
      all, [&](const auto& settings) { return observed(settings); },
      [](const std::string&) { return false; });
}

}  // namespace
}  // namespace tare::testing
