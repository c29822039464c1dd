// Importance against Optuna's numbers.
#include "tare/report/importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tare::report {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

// Optuna sums logarithms, in another order.
constexpr double kRelative = 1e-9, kAbsolute = 1e-12;

struct Golden {
  SweepSummary sweep{};
  std::vector<double> shares{};
};

SweepParameter parameter_of(std::istream& line) {
  SweepParameter parameter;
  std::string kind;
  line >> parameter.name >> kind;
  if (kind == "choices") {
    size_t count = 0;
    line >> count;
    parameter.choices.resize(count, "choice");
  } else {
    line >> parameter.low >> parameter.high >> parameter.step >> parameter.logarithmic;
    parameter.integer = kind == "int";
  }
  return parameter;
}

std::vector<double> numbers_of(std::istream& line) {
  std::vector<double> numbers;
  for (std::string word; line >> word;) numbers.push_back(std::stod(word));  // also "nan" and "inf"
  return numbers;
}

SweepRun run_of(std::istream& line) {
  SweepRun run;
  line >> run.state;
  run.values = numbers_of(line);
  run.value = run.values.front();
  run.values.erase(run.values.begin());
  return run;
}

/// The studies of tests/golden/importance.py.
std::vector<Golden> golden() {
  const char* source = std::getenv("TARE_SOURCE_DIR");
  std::ifstream file(std::filesystem::path(source ? source : ".") / "tests/golden/importance.txt");
  std::vector<Golden> all;
  for (std::string text, word; std::getline(file, text);) {
    std::istringstream line(text);
    line >> word;
    if (word == "study") {
      auto& sweep = all.emplace_back().sweep;
      line >> sweep.name >> word;
      sweep.maximize = word == "maximize";
    } else if (word == "parameter") {
      all.back().sweep.parameters.push_back(parameter_of(line));
    } else if (word == "run") {
      all.back().sweep.runs.push_back(run_of(line));
    } else if (word == "shares") {
      all.back().shares = numbers_of(line);
    }
  }
  return all;
}

/// `count` runs of which parameter "deciding" decides the value and "other" is the same for all.
SweepSummary sweep_of(size_t count) {
  SweepSummary sweep{.parameters = {{.name = "deciding", .high = 1}, {.name = "other", .high = 1}}};
  for (size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i) / static_cast<double>(count);
    sweep.runs.push_back({.state = "COMPLETE", .values = {x, 0.5}, .value = x});
  }
  return sweep;
}

TEST(Importance, IsOptunas) {
  const auto studies = golden();
  ASSERT_EQ(studies.size(), 4U) << "run the tests with ctest";
  for (const auto& [sweep, shares] : studies) {
    const Importance importance = importance_of(sweep);
    ASSERT_EQ(importance.shares.size(), shares.size());
    for (size_t i = 0; i < shares.size(); ++i)
      EXPECT_NEAR(importance.shares[i], shares[i], kRelative * shares[i] + kAbsolute)
          << sweep.name << ' ' << sweep.parameters[i].name;
  }
}

TEST(Importance, IsOfTheParameterThatDecides) {
  const Importance importance = importance_of(sweep_of(100));
  EXPECT_TRUE(importance.differs);
  EXPECT_EQ(importance.runs, 100U);
  EXPECT_EQ(importance.best, 10U);
  EXPECT_GT(importance.shares[0], 0.9);
  EXPECT_NEAR(importance.shares[0] + importance.shares[1], 1, 1e-12);
}

TEST(Importance, DoesNotDependOnTheGoalsSign) {
  SweepSummary sweep = sweep_of(50), turned = sweep;
  turned.maximize = true;
  for (auto& run : turned.runs) run.value *= -1;
  EXPECT_EQ(importance_of(sweep).shares, importance_of(turned).shares);
}

TEST(Importance, IsEqualWhereNothingDiffers) {
  SweepSummary sweep = sweep_of(50);
  for (auto& run : sweep.runs) run.value = 3;
  const Importance importance = importance_of(sweep);
  EXPECT_FALSE(importance.differs);
  EXPECT_EQ(importance.best, 50U);
  EXPECT_THAT(importance.shares, ElementsAre(DoubleEq(0.5), DoubleEq(0.5)));
}

TEST(Importance, LooksOnlyAtCompleteRunsWithAValue) {
  SweepSummary sweep = sweep_of(40);
  sweep.runs[3].state = "PRUNED";
  sweep.runs[4].state = "FAIL";
  sweep.runs[5].value = NAN;
  sweep.runs[6].value = INFINITY;
  EXPECT_EQ(importance_of(sweep).runs, 36U);
  EXPECT_EQ(importance_of(sweep_of(1)).best, 0U);
  EXPECT_EQ(importance_of(sweep_of(0)).runs, 0U);
  EXPECT_TRUE(importance_of({}).shares.empty());
}

TEST(Importance, WithstandsParametersThatCannotVary) {
  SweepSummary sweep = sweep_of(40);
  for (const SweepParameter& parameter :
       {SweepParameter{.low = 1, .high = 1}, SweepParameter{.low = NAN, .high = 1},
        SweepParameter{.low = -1, .high = 1, .logarithmic = true}, SweepParameter{.high = INFINITY},
        SweepParameter{.high = 1, .step = 3}, SweepParameter{.choices = {"only"}}}) {
    sweep.parameters[1] = parameter;
    EXPECT_THAT(importance_of(sweep).shares, ElementsAre(DoubleNear(1, 1e-12), 0));
  }
}

}  // namespace
}  // namespace tare::report
