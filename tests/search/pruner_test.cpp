// Pruners against Optuna's decisions, and their options.
#include "tare/search/pruners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::search {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json golden_pruners() {
  return json::parse(io::read_text(std::string(TARE_GOLDEN) + "/pruners.json"));
}

using Rules = std::shared_ptr<const Pruner>;

PrunerChoice choice(const std::string& text) {
  return config::read<PrunerChoice>(config::parse_text(text, "pruner.yaml"));
}
Rules rules_of(const std::string& text) { return pruners::registry().make(choice(text)); }

/// A study whose trials are added one after the other, as a coordinator keeps it.
struct Played {
  Rules rules = rules_of("none");
  Study study{};
  std::vector<SeenTrial> trials{};

  SeenTrial& trial(int64_t number) {
    while (std::ssize(trials) <= number)
      trials.push_back({.number = std::ssize(trials), .state = TrialState::running});
    return trials[static_cast<size_t>(number)];
  }
  PruneDecision report(int64_t number, int64_t step, double value) {
    SeenTrial& one = trial(number);
    one.reports[step] = value;
    const PruneResult decision = decide(*rules, study, trials, number);
    one.rungs = decision.rungs;
    study.resolved = decision.resolved;
    if (decision.decision == PruneDecision::prune) one.state = TrialState::pruned;
    if (decision.decision == PruneDecision::pause) one.state = TrialState::waiting;
    return decision.decision;
  }
};

TEST(Pruner, EveryDecisionIsOptunas) {
  int decisions = 0;
  const json numbers = golden_pruners();
  for (const auto& replay : numbers["replays"]) {
    Played played{.rules = rules_of(replay["options"].dump()),
                  .study = {.name = replay["name"], .maximize = replay["goal"] == "maximize"}};
    for (const auto& event : replay["events"]) {
      if (event[0] == "R") {
        played.study.resolved = {};
      } else if (event[1] == "C") {
        played.trial(event[0]).state = TrialState::complete;
      } else {
        const double value = event[2].is_null() ? std::nan("") : event[2].get<double>();
        const bool prunes = played.report(event[0], event[1], value) == PruneDecision::prune;
        ASSERT_EQ(prunes, event[3] == 1) << replay["name"] << ' ' << event;
        ASSERT_EQ(played.trial(event[0]).rungs.size(), event[4]) << replay["name"] << ' ' << event;
        ++decisions;
      }
    }
  }
  EXPECT_GT(decisions, 4000);
  RecordProperty("decisions", decisions);
}

TEST(Pruner, SavesTheStepsThatTheReferenceSaves) {
  const json numbers = golden_pruners();
  for (const auto& expected : numbers["sequential"]) {
    Played played{.rules = rules_of("{type: asha, min_resource: 1, reduction_factor: " +
                                    expected["factor"].dump() + "}")};
    int64_t steps = 0;
    std::vector<int64_t> survivors(expected["survivors"].size());
    for (const double level : numbers["levels"]) {
      const int64_t number = std::ssize(played.trials);
      for (int64_t step = 1; step <= expected["longest"]; ++step, ++steps) {
        if (played.report(number, step, level + 1 / static_cast<double>(step)) !=
            PruneDecision::proceed) {
          ++steps;
          break;
        }
      }
      const SeenTrial& trial = played.trial(number);
      const size_t passed = trial.rungs.size() - (trial.state == TrialState::pruned ? 1 : 0);
      for (size_t rung = 0; rung < passed; ++rung) ++survivors[rung];
      EXPECT_TRUE(level > 0 || trial.state != TrialState::pruned) << "the best one";
    }
    EXPECT_EQ(survivors, expected["survivors"].get<std::vector<int64_t>>());
    EXPECT_EQ(steps, expected["steps"]);
  }
  EXPECT_EQ(numbers["sequential"][0]["steps"], 598) << "of 5400";
}

TEST(Pruner, KeepsWhatAutoCameTo) {
  Played played{.rules = rules_of("{type: asha}")};
  EXPECT_EQ(played.report(0, 300, 1), PruneDecision::proceed);
  EXPECT_EQ(played.study.resolved, ResolvedSteps{}) << "before one is complete";
  played.trial(0).state = TrialState::complete;
  played.report(1, 1, 1);
  EXPECT_EQ(played.study.resolved.min_resource, 3);
  played.trial(2) = {.number = 2, .state = TrialState::complete, .reports = {{900, 1.0}}};
  played.report(1, 2, 1);
  EXPECT_EQ(played.study.resolved.min_resource, 3) << "though another took longer";
}

TEST(Pruner, NoneLetsAllGoOn) {
  Played played;
  for (int64_t number = 0; number < 10; ++number)
    EXPECT_EQ(played.report(number, 1000, std::nan("")), PruneDecision::proceed);
}

TEST(Pruner, RungsBeyondTheLargestNumberAreNotReached) {
  Played played{.rules = rules_of("{type: asha, min_resource: 1, min_early_stopping_rate: 100}")};
  EXPECT_EQ(played.report(0, std::numeric_limits<int64_t>::max(), 1), PruneDecision::proceed);
  EXPECT_TRUE(played.trial(0).rungs.empty());
}

TEST(Promotion, PausesAtEachRungAndTakesTheBestOfTheHighest) {
  Played played{.rules = rules_of("{type: asha_promotion, min_resource: 1, reduction_factor: 2}")};
  const auto next = [&] { return played.rules->next_promotion(false, played.trials); };
  EXPECT_FALSE(next());
  EXPECT_EQ(played.report(0, 1, 5), PruneDecision::pause);
  EXPECT_FALSE(next()) << "half of one is none";
  EXPECT_EQ(played.report(1, 1, 4), PruneDecision::pause);
  EXPECT_EQ(next(), (Promotion{.number = 1, .rung = 0}));
  played.trial(1).state = TrialState::running;
  EXPECT_FALSE(next()) << "it runs already";
  EXPECT_EQ(played.report(1, 2, 4), PruneDecision::pause);
  EXPECT_FALSE(next()) << "alone on its rung";
  EXPECT_EQ(played.report(2, 1, 3), PruneDecision::pause);
  EXPECT_EQ(next(), (Promotion{.number = 2, .rung = 0}));
  EXPECT_EQ(played.report(3, 1, 3), PruneDecision::pause);
  EXPECT_EQ(next(), (Promotion{.number = 2, .rung = 0})) << "of equal ones the older";
  played.trial(2).state = TrialState::running;
  EXPECT_EQ(next(), (Promotion{.number = 3, .rung = 0}));
  EXPECT_EQ(played.report(2, 2, 1), PruneDecision::pause);
  EXPECT_EQ(next(), (Promotion{.number = 2, .rung = 1})) << "before 3, which waits below";
  EXPECT_EQ(played.rules->next_promotion(true, played.trials), (Promotion{.number = 1, .rung = 1}));
  EXPECT_EQ(played.report(4, 1, std::nan("")), PruneDecision::prune);
}

TEST(Promotion, AFailedTrialIsPassedBy) {
  Played played{.rules = rules_of("{type: asha_promotion, min_resource: 1, reduction_factor: 2}")};
  for (int64_t number = 0; number < 4; ++number)
    played.report(number, 1, static_cast<double>(number));
  played.trial(0).state = TrialState::failed;
  EXPECT_EQ(played.rules->next_promotion(false, played.trials)->number, 1);
}

// Each rung gets the same share of the better half, and nothing is promoted twice.
TEST(Promotion, ServesAWholeStudy) {
  Played played{.rules = rules_of("{type: asha_promotion, min_resource: 1, reduction_factor: 3}")};
  std::vector<int64_t> starts(4);  // by rung
  for (int job = 0; job < 400; ++job) {
    const auto next = played.rules->next_promotion(false, played.trials);
    const int64_t number = next ? next->number : std::ssize(played.trials);
    const int64_t rung = next ? next->rung + 1 : 0;
    if (rung > 3) {
      played.trial(number).state = TrialState::complete;
      continue;
    }
    ++starts[static_cast<size_t>(rung)];
    played.trial(number).state = TrialState::running;
    const auto value = static_cast<double>(number * 83 % 401);
    ASSERT_EQ(played.report(number, static_cast<int64_t>(std::pow(3, rung)), value),
              PruneDecision::pause);
    ASSERT_EQ(std::ssize(played.trial(number).rungs), rung + 1);
  }
  for (size_t rung = 0; rung < 3; ++rung)
    EXPECT_NEAR(static_cast<double>(starts[rung + 1]), static_cast<double>(starts[rung]) / 3,
                0.25 * static_cast<double>(starts[rung]));
}

TEST(Hyperband, ComparesWithinABracket) {
  const auto rules = rules_of("{type: hyperband, max_resource: 27}");
  const Study study{.name = "s"};
  std::vector<SeenTrial> history;
  for (int64_t number = 0; number < 400; ++number) history.push_back({.number = number});
  std::vector<size_t> sizes;
  size_t all = 0;
  for (int64_t number = 0; all < history.size(); ++number) {
    const auto same = rules->competitors(study, history, number);
    if (same.front().number != number) continue;
    sizes.push_back(same.size());
    all += same.size();
  }
  std::ranges::sort(sizes);
  ASSERT_EQ(sizes.size(), 4U);
  EXPECT_EQ(all, history.size()) << "each in one";
  EXPECT_GT(sizes.back(), 2 * sizes.front()) << "the first bracket has half of them";
  EXPECT_EQ(rules_of("none")->competitors(study, history, 0).size(), history.size());
}

TEST(PrunerChoice, SaysWhatIsWrong) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      (void)choice(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::pair<const char*, const char*> mistakes[]{
      {"{type: ash}", "pruner.yaml:1:8: type is no pruner (did you mean \"asha\"?), got ash"},
      {"[asha]", "must be a name, or a mapping with a type and its options"},
      {"{type: [asha]}", "type must be a name"},
      {"{min_resource: 1}", "min_resource is not a known key; there are no options"},
      {"{type: asha, min_resource: 0}", "min_resource must be auto or a number of epochs"},
      {"{type: asha, max_resource: 9}", "max_resource is not a known key"},
      {"{type: hyperband, max_resource: some}", "max_resource must be auto or a number of epochs"},
      {"{type: asha, reduction_factor: 1}", "reduction_factor must be >= 2"},
      {"{type: asha, min_early_stopping_rate: -1}", "min_early_stopping_rate must be >= 0"},
      {"{type: asha, bootstrap_count: -1}", "bootstrap_count must be >= 0"},
      {"{type: asha, bootstrap_count: 1}",
       "pruner.yaml:1:31: bootstrap_count needs min_resource as a number"},
      {"{type: hyperband, bootstrap_count: 1}", "bootstrap_count needs max_resource as a number"},
      {"{type: hyperband, min_resource: 9, max_resource: 8}", "max_resource is below min_resource"},
  };
  for (const auto& [text, expected] : mistakes)
    EXPECT_THAT(message(text), HasSubstr(expected)) << text;
  EXPECT_EQ(message("{type: hyperband, min_resource: auto, max_resource: 9, bootstrap_count: 1}"),
            "accepted");
}

TEST(PrunerChoice, IsCompletedWithTheDefaultsOfItsType) {
  const auto text = [](const std::string& yaml) {
    return config::to_yaml(config::to_node(choice(yaml)));
  };
  EXPECT_EQ(text("none"), "type: none\n");
  EXPECT_EQ(text("{type: asha, min_resource: 3}"),
            "type: asha\nmin_resource: 3\nreduction_factor: 4\nmin_early_stopping_rate: 0\n"
            "bootstrap_count: 0\n");
  EXPECT_EQ(text("hyperband"),
            "type: hyperband\nmin_resource: auto\nmax_resource: auto\nreduction_factor: 3\n"
            "bootstrap_count: 0\n");
  EXPECT_THAT(pruners::registry().names(),
              ElementsAre("asha", "asha_promotion", "hyperband", "none"));
}

TEST(Decide, NeedsAReport) {
  EXPECT_THROW((void)decide(*rules_of("none"), {}, {}, 0), StateError);
  EXPECT_THROW((void)decide(*rules_of("none"), {}, {{.number = 0}}, 0), StateError);
}

}  // namespace
}  // namespace tare::search
