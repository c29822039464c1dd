// The progress in a checkpoint as JSON: it survives the round trip, and every field that is damaged
// is named.
#include "tare/learner/train_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/outcome.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

TrainState inside_a_fit() {
  const EpochRow row{.epoch = 4,
                     .train_loss = 0.1,
                     .valid_loss = std::nan(""),
                     .metrics = {{"accuracy", 0.75}},
                     .seconds = 1.5,
                     .samples = 90};
  return {.epochs_done = 5,
          .saves = 2,
          .history = {row},
          .plan = FitPlan{.epochs = 3,
                          .rates = {1e-3, 1e-2},
                          .schedule = {.kind = "one_cycle"},
                          .epoch = 1,
                          .batch = 7,
                          .step = 12,
                          .loss_sum = 3.25,
                          .loss_samples = 16,
                          .rows = {row}},
          .callbacks = {{"csv_log", "{\"rows\": 1}"}}};
}

TEST(TrainState, SurvivesTheRoundTrip) {
  const std::string text = to_json(inside_a_fit());
  const TrainState read = train_state_from_json(text, "a.ckpt");
  EXPECT_EQ(to_json(read), text);
  ASSERT_TRUE(read.plan);
  EXPECT_EQ(read.plan->rates, (std::vector<double>{1e-3, 1e-2}));
  EXPECT_EQ(read.plan->schedule.kind, "one_cycle");
  EXPECT_TRUE(std::isnan(read.plan->rows[0].valid_loss)) << "JSON has no NaN";
  EXPECT_EQ(read.history[0].metrics[0].value, 0.75);
  EXPECT_EQ(read.callbacks[0].state, "{\"rows\": 1}");
}

struct Damage {
  const char* name;
  const char* place;  ///< JSON pointer
  Json value;
  const char* problem;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class DamagedState : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedState, IsNamedWithItsField) {
  Json state = Json::parse(to_json(inside_a_fit()));
  state[Json::json_pointer(GetParam().place)] = GetParam().value;
  const std::string outcome =
      outcome_of([&] { (void)train_state_from_json(state.dump(), "a.ckpt"); });
  EXPECT_THAT(outcome, ::testing::StartsWith("FormatError: [learner.load] a.ckpt"));
  EXPECT_THAT(outcome, HasSubstr(GetParam().problem));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, DamagedState,
    ::testing::Values(
        Damage{"TextForACount", "/saves", "2", "state.saves: is no count"},
        Damage{"NegativeCount", "/epochs_done", -1, "state.epochs_done: is no count"},
        Damage{"TextForANumber", "/history/0/seconds", "1", "state.history.seconds: is no number"},
        Damage{"NumberForAText", "/callbacks/0/name", 1, "state.callbacks.name: is no text"},
        Damage{"NumberForAList", "/history", 1, "state.history: is no list"},
        Damage{"NumberForAnObject", "/history/0", 1, "state.history: is no object"},
        Damage{"NumberForTheFit", "/fit", 1, "state.fit: is no object"},
        Damage{"NumberForTheRates", "/fit/rates", 1, "state.fit.rates: is no list"},
        Damage{"TextForARate", "/fit/rates/1", "0.1",
               "state.fit.rates: holds something that is no number"},
        Damage{"FinishedFit", "/fit/epoch", 3, "state.fit.epoch: lies behind the last epoch"},
        Damage{"ScheduleOfAnotherKind", "/fit/schedule", "kind: steep", "state.fit.schedule"},
        Damage{"ScheduleWithoutForm", "/fit/schedule", "{", "state.fit.schedule"}),
    [](const auto& damage) { return damage.param.name; });

TEST(TrainState, RefusesWhatIsMissingOrNoJson) {
  Json state = Json::parse(to_json(inside_a_fit()));
  state["fit"].erase("step");
  EXPECT_THAT(outcome_of([&] { (void)train_state_from_json(state.dump(), "a.ckpt"); }),
              HasSubstr("state.fit.step: is missing"));
  for (const char* text : {"", "[]", "{", "nul"})
    EXPECT_THAT(outcome_of([&] { (void)train_state_from_json(text, "a.ckpt"); }),
                HasSubstr("FormatError: [learner.load] a.ckpt"))
        << text;
}

}  // namespace
}  // namespace tare::testing
