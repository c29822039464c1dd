// Recipes that predict several numbers: the figures of each, and their units.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/inference/bundle.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/run.h"
#include "tare/report/run_files.h"
#include "tare/report/worst_rows.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

namespace fs = std::filesystem;

class SeveralTargets : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { at::set_num_threads(1); }

  /// Writes a table whose prices have numbers `unit` times as large.
  void write_table(double unit) const {
    std::string rows = "area,price,\"rooms, all\",loss\n";
    for (int i = 0; i < 120; ++i) {
      const int area = 20 + i * 37 % 90;
      rows += std::to_string(area) + ',' + std::to_string(unit * (100 + 3 * area)) + ',' +
              std::to_string(area * 3) + ".5," + std::to_string(200 - area) + ".5\n";
    }
    io::write_atomically(folder_ / "houses.csv", rows);
  }
  [[nodiscard]] RecipeOptions read(const std::vector<std::string>& settings) const {
    std::ofstream(folder_ / "r.yaml")
        << "name: houses\nfolder: " << (folder_ / "runs").string()
        << "\nbatch: 32\nworkers: 0\ndevice: cpu\ndata: {name: csv, file: "
        << (folder_ / "houses.csv").string()
        << ", train: 0.6, test: 0.2}\nmodel: {name: tabular, hidden: [8]}\nloss: mse\n"
           "phases: [{name: only, epochs: 2}]\nexport: houses.tare\n";
    return read_recipe(folder_ / "r.yaml", settings);
  }
  /// Returns what a run writes to standard error.
  [[nodiscard]] std::string warnings_of(const std::vector<std::string>& settings) const {
    ::testing::internal::CaptureStderr();
    (void)run_recipe(read(settings));
    return ::testing::internal::GetCapturedStderr();
  }
  TempDir folder_;
};

std::vector<std::string> names_of(const std::vector<MetricValue>& metrics) {
  std::vector<std::string> names;
  for (const MetricValue& metric : metrics) names.push_back(metric.name);
  return names;
}

double value_of(const std::vector<MetricValue>& metrics, const std::string& name) {
  for (const MetricValue& metric : metrics)
    if (metric.name == name) return metric.value;
  return std::nan("");
}

TEST_F(SeveralTargets, HaveFiguresOfEachBesideThoseOfAll) {
  write_table(1);
  const RunReport run = run_recipe(
      read({"data.targets=[price, 'rooms, all', loss]", "metrics=[mae, r2, rmse]",
            "phases.0.best=mae.loss", "callbacks=[{early_stopping: {monitor: r2.price}}]"}));
  const std::vector<MetricValue>& metrics = run.test->metrics;
  EXPECT_THAT(names_of(metrics), ElementsAre("mae", "r2", "rmse", "mae.price", "mae.rooms, all",
                                             "mae.loss", "r2.price", "r2.rooms, all", "r2.loss",
                                             "rmse.price", "rmse.rooms, all", "rmse.loss"));
  const auto mean = [&](const std::string& metric, const auto& function) {
    return (function(value_of(metrics, metric + ".price")) +
            function(value_of(metrics, metric + ".rooms, all")) +
            function(value_of(metrics, metric + ".loss"))) /
           3;
  };
  const auto itself = [](double value) { return value; };
  EXPECT_NEAR(mean("mae", itself), value_of(metrics, "mae"), 1e-9);
  EXPECT_NEAR(mean("r2", itself), value_of(metrics, "r2"), 1e-9);
  EXPECT_NEAR(std::sqrt(mean("rmse", [](double value) { return value * value; })),
              value_of(metrics, "rmse"), 1e-9);
  EXPECT_NE(value_of(metrics, "mae.price"), value_of(metrics, "mae.loss"));
  EXPECT_THAT(io::read_text(run.folder / "only.csv"),
              StartsWith("epoch,train_loss,valid_loss,mae,r2,rmse,mae.price,\"mae.rooms, all\","
                         "mae.loss,r2.price,"));
  EXPECT_GT(run.phases.front().restored_epoch, 0);
  const RunFigures stored = run_from_json(io::read_text(run.folder / "report.json"), "report.json");
  EXPECT_EQ(names_of(stored.test->metrics), names_of(metrics));
  const Bundle bundle = open_bundle(run.exported->path);
  EXPECT_EQ(bundle.manifest().metrics.size(), 1 + metrics.size()) << "valid_loss";
}

TEST_F(SeveralTargets, HaveNoFiguresOfTheirOwnWhereThereIsOneAlone) {
  write_table(1);
  const RunReport one = run_recipe(read(
                      {"data.targets=[price]", "data.omit=[loss]", "metrics=[mae]", "name=one"})),
                  named = run_recipe(
                      read({"data.target=price", "data.omit=[loss]", "metrics=[mae]", "name=two"}));
  EXPECT_THAT(names_of(one.test->metrics), ElementsAre("mae"));
  EXPECT_EQ(one.worst_rows.size(), 12U);
  EXPECT_EQ(report::csv_of(one.worst_rows), report::csv_of(named.worst_rows));
  EXPECT_EQ(io::read_text(one.folder / "worst_rows.csv"),
            io::read_text(named.folder / "worst_rows.csv"));
}

TEST_F(SeveralTargets, RefuseTheFigureOfAnotherOne) {
  write_table(1);
  const std::vector<std::string> targets{"data.targets=[price, loss]", "metrics=[mae]"};
  const auto refusal = [&](const std::string& setting) {
    std::vector<std::string> settings = targets;
    settings.push_back(setting);
    return config_error_of([&] { (void)run_recipe(read(settings)); });
  };
  EXPECT_THAT(refusal("phases.0.best=mae.prize"), HasSubstr("(did you mean \"mae.price\"?)"));
  EXPECT_THAT(refusal("callbacks=[{early_stopping: {monitor: mae.prize}}]"),
              HasSubstr("callbacks.0.early_stopping watches a figure of one of several targets, "
                        "and the data have no such one (did you mean \"mae.price\"?)"));
  EXPECT_FALSE(fs::exists(folder_ / "runs/houses"));
}

TEST_F(SeveralTargets, AreWarnedOfWhereOneTargetDecidesTheLoss) {
  const std::vector<std::string> settings{"data.targets=[price, loss]", "metrics=[mae]",
                                          "phases.0.epochs=1"};
  write_table(10'000);
  EXPECT_THAT(warnings_of(settings),
              ::testing::ContainsRegex("the deviations of the targets are from 2.* \\('loss'\\) to "
                                       ".*e\\+05 \\('price'\\), and the loss mse adds up errors in "
                                       "these units"));
  write_table(100);
  EXPECT_THAT(warnings_of(settings), Not(HasSubstr("deviations of the targets")));
}

TEST_F(SeveralTargets, OfZeroAndOneAreNumbersForALossOfNumbers) {
  std::string rows = "x,a,b\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i % 7) + (i % 7 > 3 ? ",1," : ",0,") + (i % 2 == 0 ? "1\n" : "0\n");
  io::write_atomically(folder_ / "houses.csv", rows);
  const std::vector<std::string> names{"a", "b"};
  const auto manifest_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> settings{"data.targets=[a, b]", "phases.0.epochs=1"};
    settings.insert(settings.end(), more.begin(), more.end());
    return open_bundle(run_recipe(read(settings)).exported->path).manifest();
  };
  const BundleManifest numbers = manifest_of({"name=mse", "metrics=mae"});
  EXPECT_TRUE(numbers.labels.empty());
  EXPECT_EQ(target_names(numbers), names);
  const BundleManifest labels =
      manifest_of({"name=bce", "loss=bce_with_logits", "metrics=[{f1: {threshold: 0.5}}]"});
  EXPECT_EQ(labels.labels, names);
  EXPECT_TRUE(target_names(labels).empty());
}

TEST_F(SeveralTargets, AreRefusedForMetricsOfLabels) {
  write_table(1);
  const auto refusal = [&](const std::string& metric) {
    return config_error_of([&] {
      (void)run_recipe(read({"data.targets=[price, loss]", "metrics=[mae, " + metric + "]"}));
    });
  };
  EXPECT_THAT(refusal("auroc"),
              HasSubstr("metrics.1 takes targets from 0 to 1, and the target 'price' of sample 0 "
                        "(from 0) of the training split is "));
  EXPECT_THAT(refusal("{f1: {threshold: 0.5}}"), HasSubstr("mae or another metric of numbers"));
  EXPECT_FALSE(fs::exists(folder_ / "runs/houses"));
}

}  // namespace
}  // namespace tare::testing
