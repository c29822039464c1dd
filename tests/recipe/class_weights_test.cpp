// `class_weights: balanced`: the numbers that a run counts, and where it keeps them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/inference/bundle.h"
#include "tare/metric/loss.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/run.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

/// Writes rows whose classes are drawn in turn from `classes`, a letter for each.
void write_classes(const fs::path& file, const std::string& classes, int rows) {
  std::string text = "x,y,kind\n";
  for (int i = 0; i < rows; ++i)
    text += std::to_string(i % 11) + ',' + std::to_string(i % 5) + ".5," +
            classes[static_cast<size_t>(i) % classes.size()] + '\n';
  io::write_atomically(file, text);
}

/// 140 rows, of which the training split has 64 of the class a, 32 of b and 16 of c.
class BalancedWeights : public ::testing::Test {
 protected:
  BalancedWeights() { write_classes(folder_ / "rows.csv", "aabacba", 140); }

  [[nodiscard]] RecipeOptions read(const std::vector<std::string>& settings = {},
                                   const std::string& name = "balanced") const {
    std::ofstream(folder_ / "r.yaml")
        << "name: " << name << "\nfolder: " << (folder_ / "runs").string()
        << "\nbatch: 16\nworkers: 0\ndevice: cpu\nloss: {cross_entropy: {class_weights: balanced}}"
        << "\ndata: {name: csv, file: " << (folder_ / "rows.csv").string()
        << ", target: kind}\nmodel: {name: tabular, hidden: [8]}\n"
        << "phases: [{name: only, epochs: 2}]\nexport: model.tare\n";
    return read_recipe(folder_ / "r.yaml", settings);
  }
  [[nodiscard]] std::string refusal(const std::vector<std::string>& settings) const {
    try {
      (void)run_recipe(read(settings));
    } catch (const ConfigError& error) {
      EXPECT_FALSE(fs::exists(folder_ / "runs/balanced"));
      return error.what();
    }
    return "accepted";
  }
  [[nodiscard]] std::vector<double> weights_of_run(const std::string& name = "balanced") const {
    return resolve(read_recipe(folder_ / "runs" / name / "recipe.yaml").learner.loss).class_weights;
  }

  TempDir folder_;
  // sklearn.utils.compute_class_weight("balanced", ...): n_samples / (n_classes * count)
  const std::vector<double> expected_{112 / (3 * 64.0), 112 / (3 * 32.0), 112 / (3 * 16.0)};
};

TEST_F(BalancedWeights, AreThoseOfScikitLearnInTheRecipeTheBundleAndThePlan) {
  const RecipePlan plan = plan_recipe(read());
  const RunReport report = run_recipe(read());
  EXPECT_EQ(weights_of_run(), expected_);
  const std::string loss = open_bundle(report.exported->path).manifest().loss;
  EXPECT_EQ(resolve(losses::from_text(loss)).class_weights, expected_) << loss;
  EXPECT_EQ(plan.phases[0].method, "meta") << plan.phases[0].reason;
  EXPECT_EQ(plan.phases[0].peak_bytes, report.phases[0].peak_bytes);
  EXPECT_EQ(report.residual_bytes, 0);
}

TEST_F(BalancedWeights, TrainAsTheNumbersThatTheyStandFor) {
  const RunReport counted = run_recipe(read());
  const std::string numbers = config::flow_text(config::to_node(expected_));
  const RunReport given =
      run_recipe(read({"loss={cross_entropy: {class_weights: " + numbers + "}}"}, "with_numbers"));
  EXPECT_EQ(counted.phases[0].epochs.back().train_loss, given.phases[0].epochs.back().train_loss);
  EXPECT_TRUE(io::read_text(counted.exported->path) == io::read_text(given.exported->path));
}

TEST_F(BalancedWeights, StayWhereARunIsResumed) {
  const RunReport straight = run_recipe(read({}, "straight"));
  request_interrupt();
  ASSERT_EQ(run_recipe(read()).reason, StopReason::interrupted);
  const RunReport resumed = run_recipe(read(), {.resume = Resume::always});
  EXPECT_EQ(resumed.reason, StopReason::finished);
  EXPECT_EQ(weights_of_run(), expected_);
  EXPECT_TRUE(io::read_text(resumed.exported->path) == io::read_text(straight.exported->path));
}

TEST_F(BalancedWeights, CountTheWholeTrainingSplitAlsoUnderALimit) {
  (void)run_recipe(read({"limit.train_batches=1"}));
  EXPECT_EQ(weights_of_run(), expected_);
}

TEST_F(BalancedWeights, AreRefusedWhereTheyCannotBeCounted) {
  EXPECT_THAT(refusal({"model.classes=4"}),
              AllOf(HasSubstr(".yaml:"),
                    HasSubstr("loss.cross_entropy.class_weights cannot be balanced: the training "
                              "split has no sample of the class 3, got balanced; allowed: data "
                              "with samples of every class of the model, or a number for each "
                              "class")));
  EXPECT_THAT(refusal({"data.target=y", "data.omit=[kind]"}),
              HasSubstr("class_weights cannot be balanced: the targets of the data are no class "
                        "labels"));
  EXPECT_THROW((void)plan_recipe(read({"model.classes=4"})), ConfigError);
  EXPECT_THAT(refusal({"loss={nll: {class_weights: balanced}}"}), HasSubstr("class_weights"));
  EXPECT_THROW((void)read({"loss={cross_entropy: {class_weights: even}}"}), ConfigError);
}

TEST_F(BalancedWeights, AreRefusedWhereTheSamplingBalancesTheClassesToo) {
  EXPECT_THAT(refusal({"sampling=balanced"}),
              HasSubstr("sampling draws every class equally often, and "
                        "loss.cross_entropy.class_weights: balanced would weigh the rare ones more "
                        "once again, got balanced; allowed: one of them"));
  EXPECT_EQ(refusal({"sampling=balanced", "loss={cross_entropy: {class_weights: [1, 1, 2]}}"}),
            "accepted");
}

TEST_F(BalancedWeights, AreThoseOfTheRecipesDataInEveryPhase) {
  write_classes(folder_ / "other.csv", "abccccc", 140);
  ::testing::internal::CaptureStderr();
  (void)run_recipe(
      read({"phases=[{name: first}, {name: second, data: {name: csv, target: kind, file: " +
            (folder_ / "other.csv").string() + "}}]"}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("class_weights: balanced counts the samples of the recipe's data, which "
                        "give the class 'a' a weight of 0.583; the data of second would give it "
                        "2.33: give numbers for both"));
  EXPECT_EQ(weights_of_run(), expected_);
}

TEST(BalancedWeightsInCode, NeedNumbers) {
  CrossEntropyOptions options;
  options.class_weights.balanced = true;
  try {
    (void)resolve({"cross_entropy", options});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("losses::balanced(labels, classes)"));
  }
}

}  // namespace
}  // namespace tare::testing
