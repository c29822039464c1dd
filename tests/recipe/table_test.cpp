// Recipes on tables: what the model takes from the data, what is refused before a run, and
// predictions from files with the bundle.
#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/config/field.h"
#include "tare/data/datasets.h"
#include "tare/inference/predictor.h"
#include "tare/learner/learner.h"
#include "tare/model/registry.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/run.h"
#include "tare/train/interrupt.h"
#include "tare/transform/row_coding.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

/// Rows of a code from 0 to 3 and two numbers.
datasets::Found codes(const DataOptions&, bool) {
  const at::Tensor row = at::arange(64).to(at::kFloat);
  const at::Tensor rows = at::stack({row.remainder(4), row.div(7), row.neg()}, 1);
  return {.description = "64 rows",
          .data = tensor_dataset(rows, at::arange(64).remainder(2), {"even", "odd"})};
}

class TableRecipe : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    at::set_num_threads(1);
    datasets::registry().add("codes", "rows with a code", [] {
      return datasets::Kind{.fields = {}, .make = codes, .images = false};
    });
  }

  void SetUp() override {
    std::string rows = "area,district,price,kind\n";
    for (int i = 0; i < 120; ++i) {
      const int area = 20 + i * 37 % 90, district = i % 3;
      rows += (i % 11 == 0 ? "" : std::to_string(area)) + ",d" + std::to_string(district) + ',' +
              std::to_string(1000 + 20 * area + 100 * district) + ".5," +
              (area > 60 ? "large" : "small") + '\n';
    }
    io::write_atomically(file(), rows);
  }
  [[nodiscard]] fs::path file() const { return folder_ / "houses.csv"; }

  [[nodiscard]] RecipeOptions read(const std::string& target,
                                   const std::vector<std::string>& settings = {}) const {
    std::ofstream(folder_ / "r.yaml")
        << "name: houses\nfolder: " << (folder_ / "runs").string()
        << "\nbatch: 32\nworkers: 0\ndevice: cpu\ndata: {name: csv, file: " << file().string()
        << ", target: " << target
        << "}\nmodel: {name: tabular, hidden: [16]}\nphases: [{name: only, epochs: 20, lr: 0.02}]\n"
        << "export: houses.tare\n";
    return read_recipe(folder_ / "r.yaml", settings);
  }
  [[nodiscard]] std::string refusal(const std::string& target,
                                    const std::vector<std::string>& settings) const {
    try {
      (void)run_recipe(read(target, settings));
    } catch (const ConfigError& error) {
      EXPECT_FALSE(fs::exists(folder_ / "runs/houses"));
      return error.what();
    }
    return "accepted";
  }

  TempDir folder_;
};

TEST_F(TableRecipe, ClassifiesAndPredictsFromTheFile) {
  const RunReport report = run_recipe(read("kind", {"data.omit=[price]"}));
  EXPECT_GT(report.phases.front().epochs.back().metrics.front().value, 0.9);
  Predictor predictor(report.exported->path);
  const BundleManifest& manifest = predictor.manifest();
  ASSERT_TRUE(manifest.rows);
  EXPECT_EQ(manifest.labels, (std::vector<std::string>{"large", "small"}));
  EXPECT_THAT(manifest.model.options, HasSubstr("categories"));
  io::write_atomically(folder_ / "new.csv", "district,area\nd1,100\nelsewhere,\n");
  const TableText table = read_table(folder_ / "new.csv", manifest.rows->format());
  const at::Tensor samples = RowEncoder(*manifest.rows, table).samples();
  EXPECT_EQ(predictor.classes(predictor.predict(samples.narrow(0, 0, 1))).front().label, "large");
  EXPECT_EQ(predictor.predict(samples).sizes(), at::IntArrayRef({2, 2}));
}

TEST_F(TableRecipe, PredictsNumbersInTheirOwnUnit) {
  const RunReport report = run_recipe(
      read("price", {"data.omit=[kind]", "loss=mse", "metrics=[r2, mae]", "phases.0.epochs=60"}));
  const auto& row = report.phases.front().epochs.back();
  EXPECT_GT(row.metrics[0].value, 0.7) << "r2";
  EXPECT_LT(row.metrics[1].value, 400) << "mae, of prices from 1,400 to 3,400";
  Predictor predictor(report.exported->path);
  const TableText table = read_table(file(), predictor.manifest().rows->format());
  const at::Tensor prices =
      predictor.predict(RowEncoder(*predictor.manifest().rows, table).samples());
  EXPECT_EQ(prices.sizes(), at::IntArrayRef({120, 1}));
  EXPECT_NEAR(prices.mean().item<double>(), 2400, 300);
}

TEST_F(TableRecipe, ResumesToTheSameBundle) {
  const std::vector<std::string> settings{"data.omit=[price]", "phases.0.epochs=3"};
  (void)run_recipe(read("kind", settings));
  RecipeOptions recipe = read("kind", settings);
  recipe.name = "stopped";
  request_interrupt();
  ASSERT_EQ(run_recipe(recipe).reason, StopReason::interrupted);
  EXPECT_FALSE(run_recipe(recipe, {.resume = Resume::always}).resumed_from.empty());
  EXPECT_EQ(io::read_text(folder_ / "runs/houses/houses.tare"),
            io::read_text(folder_ / "runs/stopped/houses.tare"));
}

TEST_F(TableRecipe, RefusesAModelThatDoesNotTakeTheColumns) {
  EXPECT_THAT(refusal("kind", {"model={name: mlp}"}),
              HasSubstr("model.name takes numbers only, and the table has categories: "
                        "district"));
  EXPECT_THAT(refusal("kind", {"model.options={categories: [9]}"}),
              HasSubstr("model.options.categories are not those of the table, whose categories are "
                        "district, got [9]; allowed: omit it, or [5]"));
  EXPECT_THAT(refusal("price", {}), HasSubstr("loss does not take the targets of the data"));
  EXPECT_EQ(refusal("kind", {"model={name: mlp}", "data.columns=[area]", "phases.0.epochs=1"}),
            "accepted");
}

TEST_F(TableRecipe, ChecksTheCodesOfOtherDataBeforeTheRun) {
  const auto categories = [&](const std::string& list) {
    return refusal("kind", {"data={name: codes}", "model.options={categories: " + list + "}",
                            "phases.0.epochs=1"});
  };
  EXPECT_THAT(categories("[3]"),
              HasSubstr("model.options.categories.0 does not hold a code of the data: column 0 has "
                        "3 in sample"));
  EXPECT_THAT(categories("[4, 9]"),
              HasSubstr("model.options.categories.1 is for codes, and a column of numbers of the "
                        "data: column 1 has "));
  EXPECT_THAT(categories("[4, 10, 9]"), HasSubstr("model.options.categories"));
  EXPECT_EQ(categories("[4]"), "accepted");
}

// Tables with the columns that the recipes name, and two steps of each.
TEST_F(TableRecipe, OfTheTreeTrain) {
  std::string tumours = "mean radius,diagnosis\n", patients = "age,sex,target\n";
  for (int i = 0; i < 80; ++i) {
    tumours += std::to_string(i) + (i % 3 == 0 ? ".5,benign\n" : ",malignant\n");
    patients += std::to_string(20 + i) + ',' + std::to_string(1 + i % 2) + ',' +
                std::to_string(50 + 2 * i) + '\n';
  }
  io::write_atomically(folder_ / "breast_cancer.csv", tumours);
  io::write_atomically(folder_ / "breast_cancer_valid.csv", tumours);
  io::write_atomically(folder_ / "diabetes.csv", patients);
  io::write_atomically(folder_ / "diabetes_valid.csv", patients);
  const fs::path recipes = fs::path(std::getenv("TARE_SOURCE_DIR")) / "recipes/configs/table";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(recipes)) {
    const std::string name = entry.path().stem().string();
    const RunReport report = run_recipe(read_recipe(
        entry.path(), {"folder=" + (folder_ / "runs").string(), "device=cpu",
                       "phases=[{name: only, duration: {steps: 2}}]",
                       "data.file=" + (folder_ / (name + ".csv")).string(),
                       "data.valid_files=[" + (folder_ / (name + "_valid.csv")).string() + "]"}));
    ASSERT_TRUE(report.exported) << name;
    EXPECT_TRUE(open_bundle(report.exported->path).manifest().rows) << name;
    ++count;
  }
  EXPECT_EQ(count, 2);
}

TEST_F(TableRecipe, LoadsALearnerForRowsOfEqualCodingOnly) {
  const std::vector<std::string> settings{"data.omit=[price]", "phases.0.epochs=1"};
  const fs::path bundle = run_recipe(read("kind", settings)).exported->path;
  DataOptions options{.name = "csv", .file = file().string(), .target = "kind", .omit = {"price"}};
  const Splits same = datasets::make(options).splits;
  EXPECT_EQ(load_learner(bundle, {.test = same.valid})->get_preds(Split::test).targets.size(0), 24);
  options.seed = 3;
  const Splits other = datasets::make(options).splits;
  try {
    (void)load_learner(bundle, {.test = other.valid});
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("coded by what was learnt on another training split"));
  }
}

TEST(BundleOfRows, HasAColumnForEachNumberOfASample) {
  BundleManifest manifest{.sample_shape = {2}, .rows = RowCoding{.columns = {{.name = "a"}}}};
  EXPECT_THROW(check_bundle(manifest), ConfigError);
  manifest.sample_shape = {1};
  EXPECT_NO_THROW(check_bundle(manifest));
  EXPECT_THROW((void)row_coding_from("columns: [{name: a, deviation: 0}]"), ConfigError);
  EXPECT_THROW((void)row_coding_from("columns: [{name: a, kind: category, texts: [b, a]}]"),
               ConfigError);
}

TEST_F(TableRecipe, RefusesAPhaseWithOtherColumns) {
  io::write_atomically(folder_ / "other.csv", "area,kind\n1,large\n2,small\n3,large\n4,small\n");
  const std::string phases =
      "phases=[{name: a}, {name: b, data: {name: csv, file: " + (folder_ / "other.csv").string() +
      ", target: kind, train: 0.5}}]";
  EXPECT_THAT(refusal("kind", {"data.omit=[price]", "batch=2", phases}),
              HasSubstr("phases.1.data has other columns"));
}

}  // namespace
}  // namespace tare::testing
