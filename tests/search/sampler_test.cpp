// Random draws and TPE, against Optuna's numbers.
#include "tare/search/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "search/support.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/search/grid.h"
#include "tare/search/normal.h"
#include "tare/search/samplers.h"
#include "tare/search/tpe.h"

namespace tare::testing {
namespace {

using nlohmann::json;
using search::Point;
using search::SearchOptions;
using search::SeenTrial;
using search::TrialState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Both sides round log-densities of order 10 in some ten operations.
constexpr double kAcquisitionTolerance = 1e-9;

json golden_tpe() { return json::parse(io::read_text(std::string(TARE_GOLDEN) + "/tpe.json")); }

SearchOptions options(const std::string& text, const std::string& method = "tpe") {
  SearchOptions options = search_options(text);
  options.method = config::read<search::SamplerChoice>(config::parse_text(method, "m.yaml"));
  return options;
}

double number_of(const json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

SeenTrial read_trial(const json& trial) {
  SeenTrial seen{.number = trial["number"], .value = number_of(trial["value"])};
  for (const auto state : {TrialState::waiting, TrialState::running, TrialState::complete,
                           TrialState::pruned, TrialState::failed})
    if (trial["state"] == search::to_string(state)) seen.state = state;
  for (const auto& report : trial["reports"]) seen.reports[report[0]] = number_of(report[1]);
  seen.params = trial["params"].get<Point>();
  return seen;
}

std::vector<std::string> names(const search::TpePart& part) {
  std::vector<std::string> all;
  for (const auto* parameter : part.parameters) all.push_back(parameter->name);
  return all;
}

/// Coordinates of the group in the order of the part.
search::Coordinates ordered(const json& group, const json& candidate, const search::TpePart& part) {
  const auto order = group["params"].get<std::vector<std::string>>();
  search::Coordinates point;
  for (const auto& name : names(part))
    point.push_back(candidate[static_cast<size_t>(std::ranges::find(order, name) - order.begin())]);
  return point;
}

TEST(Tpe, EveryAcquisitionIsOptunas) {
  int compared = 0;
  double furthest = 0;
  const json numbers = golden_tpe();
  for (const auto& study : numbers["studies"]) {
    const auto sweep = options("parameters: " + study["parameters"].dump() + '\n');
    std::vector<SeenTrial> history;
    for (const auto& trial : study["trials"]) history.push_back(read_trial(trial));
    const auto parts = tpe_parts(sweep.parameters, history, study["goal"] == "maximize");
    ASSERT_EQ(parts.size(), study["groups"].size()) << study["name"];
    for (size_t p = 0; p < parts.size(); ++p) {
      const json& group = study["groups"][p];
      ASSERT_THAT(names(parts[p]), ::testing::UnorderedElementsAreArray(
                                       group["params"].get<std::vector<std::string>>()));
      for (size_t i = 0; i < group["candidates"].size(); ++i, ++compared) {
        const double value = parts[p].acquisition(ordered(group, group["candidates"][i], parts[p]));
        const double expected = group["acquisition"][i];
        EXPECT_NEAR(value, expected, kAcquisitionTolerance) << study["name"] << ' ' << i;
        furthest = std::max(furthest, std::abs(value - expected));
      }
    }
  }
  EXPECT_EQ(compared, 24 * 14);
  RecordProperty("furthest", ::testing::PrintToString(furthest));
}

// By log_ndtr and ndtr of SciPy 1.17.1.
TEST(Normal, IsExactInTheTails) {
  EXPECT_NEAR(search::log_normal_cdf(-1), -1.8410216450092634, 1e-14);
  EXPECT_NEAR(search::log_normal_cdf(-40), -804.6084420137539, 1e-10);
  EXPECT_NEAR(search::log_normal_cdf(-29.9) - search::log_normal_cdf(-30.1), 6.006651957853649,
              1e-12);
  EXPECT_NEAR(search::log_normal_cdf(9), -1.1285884059538405e-19, 1e-30);
  EXPECT_NEAR(search::log_normal_mass(-1, 2), std::log(0.8185946141203637), 1e-14);
  EXPECT_DOUBLE_EQ(search::log_normal_mass(50, 51), search::log_normal_mass(-51, -50));
  EXPECT_EQ(search::log_normal_mass(2, 2), -std::numeric_limits<double>::infinity());
}

TEST(Normal, QuantilesInvertTheMass) {
  const std::pair<double, double> intervals[]{{-1, 2},    {-8, -7}, {35, 36},
                                              {-60, -50}, {45, 46}, {-3, 60}};
  for (const auto& [a, b] : intervals) {
    for (const double q : {0.01, 0.3, 0.5, 0.99}) {
      const double x = search::truncated_normal_quantile(q, a, b);
      const double share = search::log_normal_mass(a, x) - search::log_normal_mass(a, b);
      EXPECT_NEAR(std::exp(share), q, 1e-9) << a << ' ' << b;
    }
    EXPECT_NEAR(search::truncated_normal_quantile(0, a, b), a, 1e-9);
  }
}

TEST(Parzen, DrawsByItsDensity) {
  const std::vector<search::Domain> domains{
      {.low = 1, .high = 5, .step = 1, .log = true}, {.choices = 3}, {.low = -1, .high = 3}};
  const search::Parzen density(domains, {{1, 2, 0.5}, {5, 0, 2.5}, {2, 0, 0}});
  constexpr int kDraws = 40'000, kCells = 16;
  std::map<std::vector<int>, int> drawn;
  search::CounterRng rng(1, {});
  const auto cell = [](const search::Coordinates& point) {
    return std::vector{static_cast<int>(point[0]), static_cast<int>(point[1]),
                       std::min(static_cast<int>((point[2] + 1) / 4 * kCells), kCells - 1)};
  };
  for (int i = 0; i < kDraws; ++i) ++drawn[cell(density.draw(rng))];
  double sum = 0;
  for (double a = 1; a <= 5; ++a) {
    for (double b = 0; b < 3; ++b) {
      for (int c = 0; c < kCells; ++c) {
        const search::Coordinates point{a, b, -1 + 4 * (c + 0.5) / kCells};
        const double share = std::exp(density.log_density(point)) * 4 / kCells;
        sum += share;
        // Six standard deviations, and what the middle of a cell says of the whole.
        EXPECT_NEAR(drawn[cell(point)], share * kDraws, 6 * std::sqrt(share * kDraws + 1) + 5);
      }
    }
  }
  EXPECT_NEAR(sum, 1, 1e-3) << "the middles of cells";
}

TEST(Tpe, StaysAwayFromWhatRuns) {
  const auto sweep = options("parameters: {x: {min: 0.0, max: 1.0}}\n");
  std::vector<SeenTrial> history;
  for (int i = 0; i < 20; ++i) {
    const double x = i / 20.0;
    history.push_back(
        {.number = i, .state = TrialState::complete, .value = x, .params = {{"x", x}}});
  }
  const double alone = tpe_parts(sweep.parameters, history, false)[0].acquisition({0.02});
  for (int i = 20; i < 24; ++i)
    history.push_back({.number = i, .state = TrialState::running, .params = {{"x", 0.02}}});
  EXPECT_LT(tpe_parts(sweep.parameters, history, false)[0].acquisition({0.02}), alone - 0.5);
}

TEST(Tpe, ValuesNoLongerAllowedAreAsIfMissing) {
  const auto sweep = options("parameters: {x: {min: 0.0, max: 1.0}, y: [a, b], z: [c, d]}\n");
  std::vector<SeenTrial> history;
  for (int i = 0; i < 12; ++i)
    history.push_back({.number = i,
                       .state = TrialState::complete,
                       .value = 1.0 * i,
                       .params = {{"x", 0.5}, {"y", i == 3 ? 2.0 : 1.0}, {"z", 0.0}}});
  history.push_back({.number = 12, .state = TrialState::running});
  const auto parts = tpe_parts(sweep.parameters, history, false);
  ASSERT_EQ(parts.size(), 2U) << "one that runs has no say in it";
  EXPECT_THAT(names(parts[0]), ElementsAre("x", "z"));
  EXPECT_TRUE(std::isfinite(parts[1].acquisition({1})));
}

double branin(double x, double y) {
  constexpr double kPi = std::numbers::pi;
  const double valley = y - 5.1 / (4 * kPi * kPi) * x * x + 5 / kPi * x - 6;
  return valley * valley + 10 * (1 - 1 / (8 * kPi)) * std::cos(x) + 10;
}

struct Search {
  const char* parameters = "";
  double (*value)(const Point& point) = nullptr;
};

Search search_of(const std::string& function) {
  if (function == "branin")
    return {"{x: {min: -5.0, max: 10.0}, y: {min: 0.0, max: 15.0}}",
            [](const Point& point) { return branin(point.at("x"), point.at("y")); }};
  return {"{lr: {min: 1e-5, max: 1e-1, log: true}, layers: {min: 1, max: 12}, kind: [0, 0.3, 0.1]}",
          [](const Point& point) {
            constexpr double kPenalty[]{0, 0.3, 0.1};
            const double lr = std::log10(point.at("lr")) + 2.5, depth = point.at("layers") - 5;
            return lr * lr + depth * depth / 16 + kPenalty[static_cast<int>(point.at("kind"))];
          }};
}

/// The lowest of 60 trials.
double best_of(const Search& search, const std::string& method, uint64_t seed) {
  const auto sweep = options(std::string("parameters: ") + search.parameters + '\n', method);
  std::vector<SeenTrial> history;
  for (int64_t number = 0; number < 60; ++number) {
    const auto cell = search::sample(sweep, history, number, seed);
    SeenTrial trial{.number = number, .state = TrialState::complete};
    trial.params = point_of(sweep.parameters, *cell);
    trial.value = search.value(trial.params);
    history.push_back(trial);
  }
  return std::ranges::min(history, {}, &SeenTrial::value).value;
}

TEST(Sampler, SearchesAsWellAsOptuna) {
  const json numbers = golden_tpe();
  ASSERT_EQ(numbers["searches"].size(), 4U);
  for (const auto& search : numbers["searches"]) {
    std::vector<double> best;
    for (uint64_t seed = 0; seed < 30; ++seed)
      best.push_back(best_of(search_of(search["function"]), search["method"], seed));
    std::ranges::sort(best);
    const double median = (best[14] + best[15]) / 2;
    const std::string name =
        search["function"].get<std::string>() + '_' + search["method"].get<std::string>();
    RecordProperty(name, ::testing::PrintToString(median));
    EXPECT_GE(median, search["quartiles"][0].get<double>()) << name;
    EXPECT_LE(median, search["quartiles"][2].get<double>()) << name;
  }
}

/// Trials with the cells that are sampled one after the other, all complete; at most `most`.
std::vector<SeenTrial> sampled(const SearchOptions& sweep, int64_t most, uint64_t seed = 3) {
  std::vector<SeenTrial> history;
  for (int64_t number = 0; number < most; ++number) {
    const auto cell = search::sample(sweep, history, number, seed);
    if (!cell) break;
    history.push_back({.number = number,
                       .state = TrialState::complete,
                       .value = static_cast<double>(number % 7),
                       .params = point_of(sweep.parameters, *cell)});
  }
  return history;
}

TEST(Sampler, IsAFunctionOfSeedNumberAndHistory) {
  const auto sweep = options("parameters: {x: {min: 0.0, max: 1.0}, y: [a, b, c]}\n");
  auto history = sampled(sweep, 15);
  const auto text = [&](int64_t number, uint64_t seed) {
    return python_text(*search::sample(sweep, history, number, seed));
  };
  const std::string next = text(15, 3);
  std::set<std::string> others{next, text(16, 3), text(15, 4)};
  EXPECT_EQ(others.size(), 3U);
  std::ranges::reverse(history);
  history.push_back({.number = 15,
                     .state = TrialState::complete,
                     .value = -1000,
                     .params = {{"x", 0.5}, {"y", 1.0}}});
  EXPECT_EQ(text(15, 3), next) << "whatever the order, and not of itself";
  history.front().value = -100;
  EXPECT_NE(text(15, 3), next);
}

TEST(Sampler, StaysWithinRangesAndOnTheirSteps) {
  for (const std::string method : {"random", "tpe"}) {
    const auto sweep = options(
        "parameters: {a: {min: 1, max: 40, log: true}, d: {min: 0.1, max: 0.75, step: 0.2},"
        " e: {min: 2, max: 11, step: 4}, f: {min: 1e-3, max: 1e-1, log: true}, g: {min: 7, max: "
        "7}}\n",
        method);
    std::map<std::string, std::set<double>> values;
    for (const auto& trial : sampled(sweep, 60))
      for (const auto& [name, value] : trial.params) values[name].insert(value);
    EXPECT_EQ(*values["a"].begin(), 1) << method;
    EXPECT_LE(*values["a"].rbegin(), 40);
    for (const double a : values["a"]) EXPECT_EQ(a, std::floor(a));
    EXPECT_THAT(values["d"], ElementsAre(0.1, 0.1 + 0.2, 0.1 + 2 * 0.2, 0.1 + 3 * 0.2));
    EXPECT_THAT(values["e"], ElementsAre(2, 6, 10));
    EXPECT_THAT(values["g"], ElementsAre(7));
    EXPECT_GE(*values["f"].begin(), 1e-3);
    EXPECT_LE(*values["f"].rbegin(), 1e-1);
  }
}

TEST(Sampler, RandomDrawsAreEven) {
  const auto sweep = options(
      "parameters: {a: {min: 1, max: 4}, k: [x, y, z, w], m: {min: 0.1, max: 0.4, step: 0.1}}\n",
      "random");
  std::map<std::string, std::map<double, int>> counts;
  for (int64_t number = 0; number < 4000; ++number) {
    const auto cell = search::sample(sweep, {}, number, 5);
    for (const auto& [name, value] : point_of(sweep.parameters, *cell)) ++counts[name][value];
  }
  for (const auto& [name, values] : counts) {
    EXPECT_EQ(values.size(), 4U) << name;
    for (const auto& [value, count] : values)
      EXPECT_NEAR(count, 1000, 6 * std::sqrt(750)) << name << ' ' << value;
  }
}

TEST(Sampler, TakesEveryCellOfADiscreteSpaceOnce) {
  for (const std::string method : {"random", "tpe"}) {
    const auto sweep = options(
        "parameters: {a: {min: 1, max: 6}, k: [x, y, z], m: {min: 0.1, max: 0.9, step: 0.1}}\n"
        "when: [{param: m, if: {k: x}}]\nexclude: [{a: 2, k: y}]\n",
        method);
    const auto history = sampled(sweep, 1000);
    EXPECT_EQ(history.size(), 6U * 9 + 5 + 6) << method;
    std::set<Point> distinct;
    for (const auto& trial : history) distinct.insert(trial.params);
    EXPECT_EQ(distinct.size(), history.size());
    EXPECT_EQ(distinct.size(), grid(sweep).size());
  }
}

TEST(Sampler, LeavesOutWhatConditionsAndExclusionsSay) {
  for (const std::string method : {"random", "tpe"}) {
    const auto sweep = options(
        "parameters: {x: {min: 0.0, max: 1.0}, k: [a, b, c], m: {min: 0.0, max: 1.0}}\n"
        "when: [{param: m, if: {k: a}}]\nexclude: [{k: b}]\n",
        method);
    std::set<double> kinds;
    for (const auto& trial : sampled(sweep, 50)) {
      kinds.insert(trial.params.at("k"));
      EXPECT_EQ(trial.params.contains("m"), trial.params.at("k") == 0) << method;
    }
    EXPECT_THAT(kinds, UnorderedElementsAre(0, 2)) << method;
  }
}

TEST(Sampler, TpeFollowsItsOptions) {
  const std::string space = "parameters: {x: {min: 0.0, max: 1.0}, y: {min: 0.0, max: 1.0}}\n";
  const auto history = sampled(options(space, "random"), 12);
  const auto next = [&](const std::string& method) {
    std::vector<std::string> cells;
    for (int64_t number = 12; number < 20; ++number)
      cells.push_back(python_text(*search::sample(options(space, method), history, number, 3)));
    return cells;
  };
  EXPECT_EQ(next("{tpe: {start_trials: 10, candidates: 24}}"), next("tpe"));
  EXPECT_EQ(next("{tpe: {start_trials: 13}}"), next("random"));
  EXPECT_NE(next("tpe"), next("random"));
  EXPECT_NE(next("{tpe: {candidates: 1}}"), next("tpe"));
}

TEST(Sampler, AChoiceIsReadWithItsPlaceAndWrittenShort) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      return config::to_yaml(config::to_node(search_options(text).method));
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message("method: random\n"), "random\n");
  EXPECT_EQ(message("method: tpe\n"), "tpe:\n  start_trials: 10\n  candidates: 24\n");
  EXPECT_THAT(message("method: tpr\n"), HasSubstr("search.yaml:1:9: method is no sampler (did you "
                                                  "mean \"tpe\"?), got tpr; allowed: grid, random, "
                                                  "tpe"));
  EXPECT_THAT(message("method: {tpe: {candidates: 0}}\n"),
              HasSubstr("search.yaml:1:28: method.tpe.candidates must be"));
  EXPECT_THAT(message("method: {grid: {step: 1}}\n"),
              HasSubstr("method.grid.step is not a known key; there are no options"));
}

/// Corners of the space, or what a program's mistake would be.
TEST(Sampler, AProgramAddsItsOwn) {
  search::samplers::registry().add("corners", "low or high of each range", [] {
    return search::Sampler{[](const search::Seen& seen) -> search::Draw {
      return [&space = seen.space](search::CounterRng& rng) {
        Point point;
        for (const auto& parameter : space.parameters)
          point[parameter.name] =
              rng.uniform() < 0.5 ? parameter.range->low : parameter.range->high;
        return point;
      };
    }};
  });
  search::samplers::registry().add("lost", "draws no value", [] {
    return search::Sampler{[](const search::Seen&) -> search::Draw {
      return [](search::CounterRng&) { return Point{}; };
    }};
  });
  const std::string space = "parameters: {x: {min: 2.0, max: 3.0}}\n";
  std::set<double> drawn;
  for (const auto& trial : sampled(options(space, "corners"), 20))
    drawn.insert(trial.params.at("x"));
  EXPECT_THAT(drawn, ElementsAre(2, 3));
  EXPECT_THROW((void)search::sample(options(space, "lost"), {}, 0, 1), StateError);
}

TEST(Sampler, SaysWhyItCannotDraw) {
  const auto message = [](const SearchOptions& sweep) -> std::string {
    try {
      (void)search::sample(sweep, {}, 0, 0);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "drawn";
  };
  const std::string all = "parameters: {x: {min: 0.0, max: 1.0}, k: [a]}\nexclude: [{k: a}]\n";
  EXPECT_THAT(message(options(all)), HasSubstr("exclude leaves nothing that can be drawn"));
  EXPECT_THAT(message(options("parameters: {k: [a]}\n", "grid")),
              HasSubstr("method draws nothing"));
  EXPECT_FALSE(search::sample(options("parameters: {k: [a]}\nexclude: [{k: a}]\n"), {}, 0, 0));
}

TEST(Sampler, DrawsEqualNumbersOnce) {
  for (const char* method : {"random", "tpe"}) {
    const SearchOptions one = options("parameters: {a: [0.01, 1.0e-2, 1.0e-02]}", method);
    const auto cell = search::sample(one, {}, 0, 42);
    ASSERT_TRUE(cell);
    const SeenTrial seen{.number = 0, .params = search::point_of(one.parameters, *cell)};
    EXPECT_FALSE(search::sample(one, {seen}, 1, 42)) << method;
  }
}

}  // namespace
}  // namespace tare::testing
