// Recipes on tables: what the model takes from the data, what is refused before a run, and
// predictions from files with the bundle.
#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/parts.h"
#include "tare/config/field.h"
#include "tare/data/datasets.h"
#include "tare/inference/bundle.h"
#include "tare/inference/inspect.h"
#include "tare/inference/predictor.h"
#include "tare/learner/learner.h"
#include "tare/model/registry.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/run.h"
#include "tare/report/worst_rows.h"
#include "tare/train/interrupt.h"
#include "tare/transform/row_coding.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
    const RecipeOptions recipe = read(target, settings);
    std::string planned = "accepted";
    try {
      (void)plan_recipe(recipe, {.advice = false});
    } catch (const ConfigError& error) {
      planned = error.what();
    }
    try {
      (void)run_recipe(recipe);
    } catch (const ConfigError& error) {
      EXPECT_FALSE(fs::exists(folder_ / "runs/houses"));
      EXPECT_EQ(planned, error.what());
      return error.what();
    }
    EXPECT_EQ(planned, "accepted");
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

TEST_F(TableRecipe, PredictsSeveralNumbersInTheirOwnUnits) {
  std::string rows = "area,price,rooms\n";
  for (int i = 0; i < 120; ++i) {
    const int area = 20 + i * 37 % 90;
    rows += std::to_string(area) + ',' + std::to_string(250'000 + 3000 * area) + ',' +
            std::to_string(area / 20) + ".5\n";
  }
  io::write_atomically(file(), rows);
  RecipeOptions recipe = read("price", {"loss=mse", "metrics=[r2]", "phases.0.epochs=60"});
  recipe.data.target.clear();
  recipe.data.targets = {"price", "rooms"};
  const RunReport report = run_recipe(recipe);
  EXPECT_GT(report.phases.front().epochs.back().metrics[0].value, 0.7) << "r2";
  Predictor predictor(report.exported->path);
  const TableText table = read_table(file(), predictor.manifest().rows->format());
  const at::Tensor numbers =
      predictor.predict(RowEncoder(*predictor.manifest().rows, table).samples()).mean(0);
  EXPECT_NEAR(numbers[0].item<double>(), 444'000, 30'000);
  EXPECT_NEAR(numbers[1].item<double>(), 3.2, 0.6);
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
  EXPECT_THAT(refusal("price", {"loss=cross_entropy"}),
              HasSubstr("loss does not take the targets of the data"));
  EXPECT_THAT(refusal("price", {"metrics=[accuracy]"}), HasSubstr("metrics.0 does not take"));
  EXPECT_THAT(refusal("price", {"phases.0.best=accuracy"}), HasSubstr("mae"));
  EXPECT_THAT(refusal("kind", {"phases.0.best=mae"}), HasSubstr("accuracy"));
  EXPECT_EQ(refusal("kind", {"model={name: mlp}", "data.columns=[area]", "phases.0.epochs=1"}),
            "accepted");
}

TEST_F(TableRecipe, WatchesTheMetricThatTheTargetsGet) {
  EXPECT_EQ(refusal("price", {"phases.0.best=mae",
                              "callbacks=[{early_stopping: {monitor: mae, patience: 9}}]"}),
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

TEST_F(TableRecipe, RefusesAPhaseWhoseOutputsMeanSomethingElse) {
  std::string swapped = "area,kind\n", same = swapped, price = "area,price\n", rent = "area,rent\n";
  for (int i = 0; i < 40; ++i) {
    const std::string area = std::to_string(20 + i * 37 % 90) + ',';
    same += area + (i % 2 == 0 ? "large" : "small") + '\n';
    swapped += area + (i % 2 == 0 ? "small" : "tiny") + '\n';
    price += area + std::to_string(1000 + i) + ".5\n";
    rent += area + std::to_string(10 + i) + ".5\n";
  }
  const auto with = [&](const std::string& target, const std::string& text, const std::string& of,
                        const std::string& more = "") {
    io::write_atomically(folder_ / "other.csv", text);
    std::vector<std::string> settings{"data.columns=[area]", "batch=8",
                                      "phases=[{name: a}, {name: b, " + more +
                                          "data: {name: csv, target: " + of +
                                          ", file: " + (folder_ / "other.csv").string() + "}}]"};
    if (target == "price") settings.insert(settings.end(), {"loss=mse", "metrics=[mae]"});
    return refusal(target, settings);
  };
  EXPECT_EQ(with("kind", same, "kind"), "accepted");
  fs::remove_all(folder_ / "runs");
  EXPECT_THAT(
      with("kind", swapped, "kind"),
      HasSubstr("phases.1.data gives the outputs of the model another meaning: the classes "
                "are large, small in phase 1 ('a'), and small, tiny in phase 2 ('b'); "
                "allowed: equal classes in one order, or reset_head: true in phase 2 ('b')"));
  EXPECT_EQ(with("kind", swapped, "kind", "reset_head: true, "), "accepted");
  fs::remove_all(folder_ / "runs");
  EXPECT_THAT(with("price", rent, "rent"),
              HasSubstr("the target is 'price', a number in phase 1 ('a'), and 'rent', a number in "
                        "phase 2 ('b')"));
  EXPECT_EQ(with("price", price, "price"), "accepted");
}

TEST_F(TableRecipe, RefusesANewHeadForATargetInAnotherUnit) {
  std::string rows = "district,area,price,kind\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i % 3) + ',' + std::to_string(20 + i * 37 % 90) + ".5," +
            std::to_string(1000 + i) + ".5," + (i % 2 == 0 ? "large" : "small") + '\n';
  io::write_atomically(file(), rows);
  const auto with = [&](const std::string& first, const std::string& second) {
    const std::string data = "{name: csv, omit: [kind], file: " + file().string() + ", ";
    RecipeOptions recipe = read(
        "price", {"loss=mse", "metrics=[mae]", "data.omit=[kind]",
                  "phases=[{name: a}, {name: b, reset_head: true, data: " + data + second + "}}]"});
    if (!first.empty()) {
      recipe.data.target.clear();
      recipe.data.targets = {"price", first};
    }
    try {
      (void)plan_recipe(recipe, {.advice = false});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(with("", "target: price"), "accepted");
  EXPECT_THAT(with("", "targets: [price]"), HasSubstr("accepted")) << "in one unit";
  EXPECT_THAT(with("area", "targets: [area, price]"),
              HasSubstr("phases.1.data has area, price, but the outputs of the model are in the "
                        "units of price, area in phase 1 ('a'), which reset_head does not change; "
                        "allowed: equal targets in all phases, or a recipe of its own with "
                        "model.weights"));
}

/// Writes 40 rows of an area and one of the kinds in turn.
void write_kinds(const fs::path& file, const std::vector<std::string>& kinds) {
  std::string text = "area,kind\n";
  for (size_t i = 0; i < 40; ++i)
    text += std::to_string(20 + i * 37 % 90) + ',' + kinds[i % kinds.size()] + '\n';
  io::write_atomically(file, text);
}

TEST_F(TableRecipe, RefusesAPhaseWithoutClassesOfThePhaseBeforeIt) {
  const fs::path three = folder_ / "three.csv", two = folder_ / "two.csv";
  write_kinds(three, {"large", "small", "tiny"});
  write_kinds(two, {"large", "small"});
  const auto with = [&](const std::string& first, const std::string& second) {
    const std::string data = "data: {name: csv, target: kind, file: " + two.string() + '}';
    return refusal("kind", {"data.file=" + three.string(), "data.columns=[area]", "batch=8",
                            "phases=[{name: a" + replaced(first, "TWO", data) + "}, {name: b" +
                                replaced(second, "TWO", data) + "}]"});
  };
  EXPECT_THAT(with("", ", TWO"),
              HasSubstr("phases.1.data has no samples of classes that the model was trained on in "
                        "phase 1 ('a'), and would train it never to choose them: tiny; allowed: "
                        "data with all of these classes, or reset_head: true in phase 2 ('b')"));
  EXPECT_EQ(with("", ", reset_head: true, TWO"), "accepted");
  fs::remove_all(folder_ / "runs");
  EXPECT_EQ(with(", TWO", ""), "accepted") << "a class that is new in the second phase";
}

TEST_F(TableRecipe, RefusesWeightsOfOtherColumns) {
  const fs::path weights =
      run_recipe(read("price", {"name=first", "loss=mse", "metrics=mae",
                                "data.columns=[area, district]", "phases.0.epochs=1"}))
          .exported->path;
  const auto with = [&](const std::string& columns, const std::string& file) {
    return refusal("price", {"model.weights=" + weights.string(), "loss=mse", "metrics=mae",
                             "data.columns=" + columns, "data.file=" + file, "phases.0.epochs=1"});
  };
  EXPECT_EQ(with("[area, district]", file().string()), "accepted");
  fs::remove_all(folder_ / "runs/houses");
  std::string other = io::read_text(file());
  for (size_t at = 0; (at = other.find(",d", at + 1)) != std::string::npos;) other[at + 1] = 'e';
  other.replace(other.find(",eistrict"), 9, ",district");
  io::write_atomically(folder_ / "other.csv", other);
  EXPECT_THAT(with("[area, district]", (folder_ / "other.csv").string()),
              HasSubstr("model.weights was trained on columns of the same names with other "
                        "categories or numbers in them"));
  EXPECT_THAT(
      with("[area]", file().string()),
      HasSubstr("model.weights was trained on the columns district, area, and the data have "
                "area"));
}

TEST_F(TableRecipe, TrainsOnTheShareThatIsAskedWhereTheValidationHasFilesOfItsOwn) {
  const auto description = [&](const std::string& train) {
    fs::copy_file(file(), folder_ / "valid.csv", fs::copy_options::skip_existing);
    return run_recipe(read("kind", {"data.valid_files=" + (folder_ / "valid.csv").string(),
                                    "phases.0.epochs=1", "batch=8", "name=of" + train,
                                    "data.train=" + train}))
        .data;
  };
  EXPECT_THAT(description("0.5"), HasSubstr("train 60, valid 120"));
  EXPECT_THAT(description("30"), HasSubstr("train 30, valid 120"));
  EXPECT_THAT(description("0.8"), HasSubstr("train 120, valid 120"));
}

TEST_F(TableRecipe, WarnsOfAClassThatIsNotTrained) {
  write_kinds(folder_ / "three.csv", {"large", "small", "tiny"});
  write_kinds(folder_ / "two.csv", {"large", "small"});
  ::testing::internal::CaptureStderr();
  (void)run_recipe(read("kind", {"data.columns=[area]", "batch=8", "phases.0.epochs=1",
                                 "data.file=" + (folder_ / "two.csv").string(),
                                 "data.valid_files=" + (folder_ / "three.csv").string()}));
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("no sample of the training split is of the class tiny, which the validation "
                "or the test split has: no model learns what it is"));
}

TEST_F(TableRecipe, StartsWithANewHeadFromWeightsForMoreClasses) {
  write_kinds(folder_ / "three.csv", {"large", "small", "tiny"});
  write_kinds(folder_ / "two.csv", {"large", "small"});
  const auto bundle_of = [&](const std::string& file, const std::string& name,
                             std::vector<std::string> more) {
    more.insert(more.end(), {"name=" + name, "data.columns=[area]", "batch=8",
                             "data.file=" + (folder_ / file).string()});
    return run_recipe(read("kind", more)).exported->path;
  };
  const fs::path first = bundle_of("three.csv", "three", {});
  const fs::path second = bundle_of("two.csv", "two", {"model.weights=" + first.string()});
  EXPECT_THAT(open_bundle(second).manifest().model.options, HasSubstr("classes: 2"));
  EXPECT_EQ(open_bundle(second).manifest().labels, (std::vector<std::string>{"large", "small"}));
}

TEST_F(TableRecipe, WarnsOfATargetInAnotherUnit) {
  std::string thousands = "area,price\n";
  for (int i = 0; i < 120; ++i)
    thousands += std::to_string(20 + i * 37 % 90) + ',' + std::to_string(1 + i % 3) + '.' +
                 std::to_string(i % 10) + "5\n";
  io::write_atomically(folder_ / "other.csv", thousands);
  ::testing::internal::CaptureStderr();
  (void)run_recipe(read("price", {"data.columns=[area]", "loss=mse", "metrics=[mae]",
                                  "phases=[{name: a}, {name: b, data: {name: csv, target: price, "
                                  "file: " +
                                      (folder_ / "other.csv").string() + "}}]"}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the target 'price' may be in another unit in phase 2 ('b'): it has a mean "
                        "of "));
}

TEST_F(TableRecipe, GivesEveryByteBackWhereALimitCutsASplitAway) {
  for (const char* cut : {"overfit=1", "limit={train_batches: 1}", "limit={valid_batches: 1}"}) {
    (void)run_recipe(read("kind", {"data.omit=[price]", "phases.0.epochs=1", "batch=8", cut}));
    const RunReport report =
        run_recipe(read("kind", {"data.omit=[price]", "phases.0.epochs=1", "batch=8", cut}));
    EXPECT_EQ(report.residual_bytes, 0) << cut;
    EXPECT_EQ(report.phases.front().residual_bytes, 0) << cut;
  }
}

TEST_F(TableRecipe, LearnsTwoClassesWithOneOutput) {
  const std::vector<std::string> settings{"data.omit=[price]", "loss=bce_with_logits",
                                          "metrics=[accuracy, f1, precision, recall, auroc]"};
  const RunReport report = run_recipe(read("kind", settings));
  const auto& metrics = report.phases.front().epochs.back().metrics;
  for (const MetricValue& metric : metrics) EXPECT_GT(metric.value, 0.9) << metric.name;
  EXPECT_EQ(plan_recipe(read("kind", settings)).phases.front().peak_bytes,
            report.phases.front().peak_bytes);
  ASSERT_TRUE(report.classification);
  const auto& counts = report.classification->counts;
  // f1, precision and recall are those of the second class, small.
  const auto right = static_cast<double>(counts[1][1]);
  EXPECT_NEAR(report.valid->metrics[2].value,
              right / static_cast<double>(counts[0][1] + counts[1][1]), 1e-12);
  EXPECT_NEAR(report.valid->metrics[3].value,
              right / static_cast<double>(counts[1][0] + counts[1][1]), 1e-12);
  EXPECT_THAT(inspect(report.exported->path).text, HasSubstr("2 (large, small)"));
  Predictor predictor(report.exported->path);
  io::write_atomically(folder_ / "new.csv", "district,area\nd1,100\nd1,25\n");
  const RowCoding& coding = *predictor.manifest().rows;
  const TableText table = read_table(folder_ / "new.csv", coding.format());
  const at::Tensor samples = RowEncoder(coding, table).samples();
  const auto large = predictor.classes(predictor.predict(samples.narrow(0, 0, 1)), 2);
  ASSERT_EQ(large.size(), 2U);
  EXPECT_EQ(large[0].label, "large");
  EXPECT_NEAR(large[0].probability + large[1].probability, 1, 1e-6);
  EXPECT_EQ(predictor.classes(predictor.predict(samples.narrow(0, 1, 1))).front().label, "small");
}

TEST_F(TableRecipe, RefusesBceForOtherClassesThanTwo) {
  EXPECT_THAT(refusal("kind", {"data.omit=[price]", "loss=bce_with_logits", "model.classes=2"}),
              HasSubstr("model.classes must be one output for the two classes of the data, by the "
                        "loss bce_with_logits, got 2; allowed: auto or 1"));
  EXPECT_THAT(refusal("district", {"data.omit=[price]", "loss=bce_with_logits"}),
              HasSubstr("loss is for two classes, and the data have 3"));
}

TEST_F(TableRecipe, ReportsTheRowsWhoseNumberIsPredictedWorst) {
  const RunReport run = run_recipe(
      read("price", {"data.omit=[kind]", "loss=mse", "metrics=[mae]", "phases.0.epochs=2"}));
  const auto worst = report::read_worst_rows(run.folder / "worst_rows.csv");
  ASSERT_EQ(worst.size(), 12U);
  const TableText table = read_table(file());
  for (size_t i = 0; i < worst.size(); ++i) {
    EXPECT_LE(worst[i].loss, worst[i > 0 ? i - 1 : 0].loss);
    const double error = worst[i].target - worst[i].predicted;
    EXPECT_NEAR(worst[i].loss, error * error, 1e-3 * worst[i].loss);
    ASSERT_TRUE(worst[i].name.starts_with("houses.csv:")) << worst[i].name;
    const int64_t line = std::stoll(worst[i].name.substr(11));
    EXPECT_EQ(std::stod(std::string(table.field(line - 2, 2))), worst[i].target);
  }
  ASSERT_EQ(run.worst_rows.size(), worst.size());
  EXPECT_EQ(report::csv_of(run.worst_rows), report::csv_of(worst));
  const RunFigures stored = run_from_json(io::read_text(run.folder / "report.json"), "report.json");
  EXPECT_EQ(report::csv_of(stored.worst_rows), report::csv_of(worst));
  const RunReport classes = run_recipe(read("kind", {"phases.0.epochs=1"}));
  EXPECT_THAT(io::read_text(classes.folder / "report.json"),
              ::testing::Not(HasSubstr("worst_rows")));
  EXPECT_FALSE(fs::exists(classes.folder / "worst_rows.csv"));
}

TEST_F(TableRecipe, SaysWhereNoWeightsAreKept) {
  const auto printed = [&](const std::vector<std::string>& more) {
    std::vector<std::string> settings{"data.omit=[price]", "phases.0.epochs=1"};
    settings.insert(settings.end(), more.begin(), more.end());
    std::ostringstream out;
    (void)run_recipe(read("kind", settings), {.out = &out});
    return out.str();
  };
  EXPECT_THAT(printed({"export=null"}),
              HasSubstr("no weights are kept in " + (folder_ / "runs/houses").string() +
                        ": run with export=houses.tare to write a bundle at the end, or with "
                        "`save: NAME` in a phase to write a checkpoint\n"));
  EXPECT_THAT(printed({}), Not(HasSubstr("no weights are kept")));
  EXPECT_THAT(printed({"export=null", "phases.0.save=trained"}),
              Not(HasSubstr("no weights are kept")));
}

// A value between two codes is the code of another category.
TEST_F(TableRecipe, AreMixedOnlyWhereTheyHaveNoCategories) {
  EXPECT_THAT(refusal("kind", {"callbacks=[mixup]"}),
              HasSubstr("callbacks.0.mixup would mix the codes of categories: district, got mixup; "
                        "allowed: data.columns without them, or no such callback"));
  EXPECT_EQ(refusal("kind", {"callbacks=[mixup]", "data.omit=[district]", "phases.0.epochs=1"}),
            "accepted");
}

TEST_F(TableRecipe, SaysHowTheDataOfAResumedRunHaveChanged) {
  const std::vector<std::string> settings{"data.omit=[price]", "phases.0.epochs=3"};
  const auto stopped = [&] {
    fs::remove_all(folder_ / "runs");
    request_interrupt();
    ASSERT_EQ(run_recipe(read("kind", settings)).reason, StopReason::interrupted);
  };
  const auto refused = [&]() -> std::string {
    return config_error_of(
        [&] { (void)run_recipe(read("kind", settings), {.resume = Resume::always}); });
  };
  const std::string rows = io::read_text(file());
  stopped();
  std::string other = rows;
  other.replace(other.find("large"), 5, "small");
  io::write_atomically(file(), other);
  EXPECT_THAT(refused(),
              HasSubstr("there are 120 samples as then, but their classes, targets or names of "
                        "files have changed; give it the old data"));
  EXPECT_THAT(refused(), Not(HasSubstr(" there, ")));
  io::write_atomically(file(), rows + "50,d1,3000.5,small\n");
  EXPECT_THAT(refused(), HasSubstr("there were 120 samples, and now there are 121"));
  other = rows;
  other.replace(other.find(",d0"), 3, ",d2");
  io::write_atomically(file(), other);
  EXPECT_THAT(refused(), HasSubstr("has the same names and labels as then, but its samples have "
                                   "changed"));
}

}  // namespace
}  // namespace tare::testing
