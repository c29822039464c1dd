// Every schedule against its original in PyTorch or fastai, at 1,000 steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/optim/schedule_kinds.h"

namespace tare {
namespace {

using ::testing::HasSubstr;

// The golden numbers have eight digits, and are at most 2.
constexpr double kRounding = 6e-8;

/// The lines of the file: "name 1*300 0.3*350 ...".
std::map<std::string, std::vector<double>> golden() {
  std::map<std::string, std::vector<double>> all;
  std::istringstream lines(io::read_text(std::string(TARE_GOLDEN) + "/schedules.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    while (words >> word) {
      const size_t star = word.find('*');
      const size_t times = star == std::string::npos ? 1 : std::stoul(word.substr(star + 1));
      all[name].insert(all[name].end(), times, std::stod(word.substr(0, star)));
    }
  }
  return all;
}

template <class Options>
config::OwnOptions own(const Options& options) {
  return {config::to_node(options)};
}

std::map<std::string, Schedule> schedules() {
  const SequenceSchedule sequence{
      .parts = {
          {.kind = "piecewise", .options = own(PiecewiseSchedule{.points = {{0, 0.1}, {1, 1}}})},
          {.kind = "constant", .share = 2, .factor = 0.5},
          {.kind = "polynomial", .options = own(PolynomialSchedule{.power = 2})}}};
  const PiecewiseSchedule points{.points = {{0.1, 0.5}, {0.25, 2}, {0.6, 1}, {0.9, 0.125}}};
  return {
      {"linear", {.kind = "linear", .final_factor = 0.1}},
      {"cosine", {.kind = "cosine", .final_factor = 0.05}},
      {"cosine_cycles", {.kind = "cosine", .options = own(CosineSchedule{.cycles = 4})}},
      {"exponential", {.kind = "exponential", .final_factor = 0.01}},
      {"polynomial", {.kind = "polynomial", .options = own(PolynomialSchedule{.power = 2.5})}},
      {"step_milestones",
       {.kind = "step",
        .options = own(StepSchedule{.gamma = 0.3, .milestones = {0.3, 0.65, 0.9}})}},
      {"step_every", {.kind = "step", .options = own(StepSchedule{.gamma = 0.5, .every = 0.07})}},
      {"piecewise", {.kind = "piecewise", .options = own(points)}},
      {"wsd", {.kind = "wsd", .final_factor = 0.1}},
      {"warmup_cosine", {.kind = "cosine", .warmup = 0.1}},
      {"sequence", {.kind = "sequence", .options = own(sequence)}},
      {"one_cycle", {.kind = "one_cycle"}},
  };
}

TEST(Schedule, EqualsItsOriginalAtAThousandSteps) {
  const auto wanted = golden();
  for (const auto& [name, schedule] : schedules()) {
    const auto& values = wanted.at(name);
    ASSERT_EQ(values.size(), 1000U) << name;
    EXPECT_NO_THROW(schedule.check()) << name;
    const MadeSchedule made(schedule);
    for (size_t step = 0; step < values.size(); ++step)
      ASSERT_NEAR(made.factor(static_cast<int64_t>(step), 1000), values[step], kRounding)
          << name << " at step " << step;
  }
  const auto& momentum = wanted.at("one_cycle_momentum");
  for (size_t step = 0; step < momentum.size(); ++step)
    ASSERT_NEAR(one_cycle_momentum(static_cast<int64_t>(step), 1000), momentum[step], kRounding);
}

TEST(Schedule, WsdHasShapes) {
  const auto at = [](const char* shape, int64_t step) {
    const WsdSchedule options{.decay = 0.4, .shape = shape};
    return Schedule{.kind = "wsd", .final_factor = 0.2, .options = own(options)}.factor(step, 100);
  };
  for (const char* shape : {"linear", "cosine", "sqrt"}) EXPECT_EQ(at(shape, 60), 1) << shape;
  EXPECT_NEAR(at("linear", 80), 0.6, kRounding);
  EXPECT_NEAR(at("cosine", 70), 0.2 + 0.4 * (1 + std::sqrt(0.5)), kRounding);
  EXPECT_NEAR(at("sqrt", 70), 0.6, kRounding);
}

TEST(Schedule, RefusesOptionsThatMakeNoSense) {
  const auto message = [](const std::string& yaml) -> std::string {
    try {
      config::read<Schedule>(config::parse_text(yaml, "r.yaml")).check();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("{kind: step, options: {milestones: [0.1, 0.9], gamma: 0.5}}"), "");
  EXPECT_THAT(message("{kind: step, options: {power: 2}}"), HasSubstr("options.power"));
  EXPECT_THAT(message("{kind: linear, options: {power: 2}}"), HasSubstr("options.power"));
  EXPECT_THAT(message("{kind: polynomial, options: {power: 0}}"),
              HasSubstr("options.power must be > 0"));
  EXPECT_THAT(message("{kind: step, options: {milestones: [0.9, 0.1]}}"),
              HasSubstr("options.milestones must be ascending"));
  EXPECT_THAT(message("{kind: step, options: {milestones: [0.1], every: 0.2}}"),
              HasSubstr("options.every stands beside milestones"));
  EXPECT_THAT(message("{kind: step, final_factor: 0.5}"), HasSubstr("final_factor"));
  EXPECT_THAT(message("{kind: piecewise, options: {points: []}}"), HasSubstr("at least one"));
  EXPECT_THAT(message("{kind: piecewise, options: {points: [[0, 1, 2]]}}"), HasSubstr("pairs"));
  EXPECT_THAT(message("{kind: piecewise, options: {points: [[0.5, 1], [0.2, 1]]}}"),
              HasSubstr("ascending"));
  EXPECT_THAT(message("{kind: wsd, options: {decay: 0}}"), HasSubstr("options.decay"));
  EXPECT_THAT(message("{kind: sequence, options: {parts: []}}"), HasSubstr("at least one"));
  EXPECT_THAT(message("{kind: sequence, options: {parts: [{kind: linear}, {kind: one_cycle}]}}"),
              HasSubstr("options.parts.1.kind cannot be a part"));
  EXPECT_THAT(message("{kind: sequence, options: {parts: [{kind: step, options: {gamma: 0}}]}}"),
              HasSubstr("options.parts.0.options.gamma"));
}

TEST(Schedule, IsReadFromACheckpointOfAVersionWithoutOptions) {
  const auto old = config::read<Schedule>(config::parse_text(
      "kind: cosine\nwarmup: 0.1\nfinal_factor: 0\none_cycle:\n  div: 25\n  pct_start: 0.3\n"
      "  final_div: 0\n  momentum_start: 0.95\n  momentum_lowest: 0.85\n",
      "schedule"));
  EXPECT_EQ(old, (Schedule{.kind = "cosine", .warmup = 0.1}));
  const Schedule own_options{.kind = "cosine", .options = own(CosineSchedule{.cycles = 3})};
  EXPECT_EQ(config::read<Schedule>(
                config::parse_text(config::to_yaml(config::to_node(own_options)), "schedule")),
            own_options);
}

}  // namespace
}  // namespace tare
