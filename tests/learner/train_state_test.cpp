// The progress in a checkpoint: it survives the round trip, states of older versions are read, and
// every field that is damaged is named.
#include "tare/train/train_state.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/checkpoint.h"

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
  const ValidationRow validation{.step = 12,
                                 .epoch = 5,
                                 .train_loss = 0.5,
                                 .valid_loss = 0.25,
                                 .metrics = {{"accuracy", 0.5}}};
  return {.epochs_done = 5,
          .saves = 2,
          .history = {row},
          .restored_validation = validation,
          .plan = FitPlan{.epochs = 3,
                          .rates = {1e-3, 1e-2},
                          .schedule = {.kind = "one_cycle"},
                          .epoch = 1,
                          .batch = 7,
                          .step = 12,
                          .loss_sum = 3.25,
                          .loss_counted = 48,
                          .loss_samples = 16,
                          .rate_factor = 0.5,
                          .order = SampleOrder{.batch = 8,
                                               .samples = 90,
                                               .drop_last = true,
                                               .shuffle = true,
                                               .seed = ~uint64_t{0}},
                          .rows = {row},
                          .validations = {validation, validation}},
          .callbacks = {{.name = "csv_log", .state = "{\"rows\": 1}"}}};
}

TEST(TrainState, SurvivesTheRoundTrip) {
  const StoredState written = stored(inside_a_fit());
  const TrainState read = train_state_from(written.json, written.tensors, "a.ckpt");
  EXPECT_EQ(stored(read).json, written.json);
  ASSERT_TRUE(read.plan);
  EXPECT_EQ(read.plan->rates, (std::vector<double>{1e-3, 1e-2}));
  EXPECT_EQ(read.plan->schedule.kind, "one_cycle");
  EXPECT_TRUE(std::isnan(read.plan->rows.at(0).valid_loss));
  EXPECT_EQ(read.plan->loss_counted, 48);
  EXPECT_EQ(read.plan->rate_factor, 0.5);
  EXPECT_EQ(read.plan->order, inside_a_fit().plan->order);
  ASSERT_EQ(read.plan->validations.size(), 2U);
  EXPECT_EQ(read.plan->validations[1].step, 12);
  EXPECT_EQ(read.plan->validations[1].epoch, 5);
  EXPECT_EQ(read.plan->validations[1].valid_loss, 0.25);
  EXPECT_EQ(read.plan->validations[1].metrics.at(0).value, 0.5);
  ASSERT_TRUE(read.restored_validation);
  EXPECT_EQ(read.restored_validation->train_loss, 0.5);
  EXPECT_EQ(read.history.at(0).metrics.at(0).name, "accuracy");
  EXPECT_EQ(read.history[0].metrics[0].value, 0.75);
  EXPECT_EQ(read.history[0].train_loss, 0.1);
  EXPECT_EQ(read.history[0].samples, 90);
  EXPECT_EQ(read.callbacks.at(0).state, "{\"rows\": 1}");
}

TEST(TrainState, KeepsTheTensorsOfEachCallback) {
  TrainState state = inside_a_fit();
  state.callbacks.assign(12, {.name = "plain", .state = "{}"});
  state.callbacks[1] = {.name = "one", .state = "{}", .tensors = {{"a.b", at::full({2}, 1)}}};
  state.callbacks[11] = {.name = "eleven", .state = "{}", .tensors = {{"a.b", at::full({2}, 11)}}};
  const StoredState written = stored(state);
  const auto read = train_state_from(written.json, written.tensors, "a.ckpt").callbacks;
  ASSERT_EQ(read.size(), 12U);
  EXPECT_TRUE(read[0].tensors.empty());
  for (const size_t i : {1U, 11U}) {
    ASSERT_EQ(read[i].tensors.size(), 1U) << i;
    EXPECT_EQ(read[i].tensors[0].name, "a.b");
    EXPECT_EQ(read[i].tensors[0].tensor[0].item<int64_t>(), static_cast<int64_t>(i));
  }
}

TEST(TrainState, RowsKeepTheirOwnMetricsAndTheirBits) {
  TrainState state;
  state.history = {{.epoch = 0, .metrics = {{"a", 1.0 / 3}, {"a", INFINITY}}},
                   {.epoch = 1, .metrics = {}},
                   {.epoch = 2, .metrics = {{"b", -0.0}}},
                   {.epoch = 3, .metrics = {{"a", 2}, {"a", 3}}}};
  const StoredState written = stored(state);
  const auto read = train_state_from(written.json, written.tensors, "a.ckpt").history;
  ASSERT_EQ(read.size(), 4U);
  EXPECT_EQ(read[0].metrics.at(0).value, 1.0 / 3);
  EXPECT_EQ(read[0].metrics.at(1).value, INFINITY);
  EXPECT_TRUE(read[1].metrics.empty());
  EXPECT_EQ(read[2].metrics.at(0).name, "b");
  EXPECT_TRUE(std::signbit(read[2].metrics[0].value));
  EXPECT_EQ(read[3].metrics.at(1).value, 3);
}

TEST(TrainState, TheManifestDoesNotGrowWithTheEpochs) {
  TrainState state = inside_a_fit();
  const size_t few = stored(state).json.size();
  state.history.resize(50'000, state.history[0]);
  state.plan->rows.resize(50'000, state.plan->rows[0]);
  state.callbacks[0].state = std::string(size_t{20} << 20, 'x');  // more than a manifest may have
  EXPECT_EQ(stored(state).json.size(), few);
  const TempDir folder;
  StoredState written = stored(state);
  checkpoint::save(
      folder / "long",
      {.model = {{"w", at::ones({1})}}, .extra = written.tensors, .state = written.json},
      {.flush = false});
  const auto loaded = checkpoint::load(folder / "long");
  const TrainState read = train_state_from(loaded.state, loaded.extra, folder / "long");
  EXPECT_EQ(read.history.size(), 50'000U);
  EXPECT_EQ(read.plan->rows.back().metrics.at(0).value, 0.75);
  EXPECT_EQ(read.callbacks[0].state, state.callbacks[0].state);
}

// As older versions wrote it: all of it in the manifest.
Json in_the_manifest() {
  const Json rows = Json::array({{{"epoch", 4},
                                  {"train_loss", 0.1},
                                  {"valid_loss", nullptr},
                                  {"metrics", {{{"name", "accuracy"}, {"value", 0.75}}}},
                                  {"seconds", 1.5},
                                  {"samples", 90}}});
  Json state = Json::parse(stored(inside_a_fit()).json);
  state["history"] = rows;
  state["fit"]["rows"] = rows;
  state["fit"].erase("loss_counted");
  state["fit"].erase("rate_factor");
  state["fit"].erase("order");
  state["fit"].erase("validations");
  state.erase("restored_validation");
  state["callbacks"][0]["state"] = "{\"rows\": 1}";
  return state;
}

TEST(TrainState, ReadsWhatOlderVersionsWrote) {
  const TrainState read = train_state_from(in_the_manifest().dump(), {}, "a.ckpt");
  EXPECT_EQ(read.history.at(0).metrics.at(0).value, 0.75);
  EXPECT_TRUE(std::isnan(read.history[0].valid_loss)) << "JSON has no NaN";
  EXPECT_EQ(read.plan->rows.at(0).samples, 90);
  EXPECT_EQ(read.plan->loss_counted, 16) << "then means were over samples";
  EXPECT_FALSE(read.plan->order);
  EXPECT_EQ(read.plan->rate_factor, 1);
  EXPECT_EQ(read.callbacks.at(0).state, "{\"rows\": 1}");
}

TEST(TrainState, KeepsASumOfWeightsThatIsNoWholeNumber) {
  TrainState state = inside_a_fit();
  state.plan->loss_counted = 0.1 + 0.2;
  const StoredState written = stored(state);
  const TrainState read = train_state_from(written.json, written.tensors, "a.ckpt");
  EXPECT_EQ(read.plan->loss_counted, 0.1 + 0.2);
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
  Json state = in_the_manifest();
  state[Json::json_pointer(GetParam().place)] = GetParam().value;
  const std::string outcome =
      outcome_of([&] { (void)train_state_from(state.dump(), {}, "a.ckpt"); });
  EXPECT_THAT(outcome, ::testing::StartsWith("FormatError: [learner.load] a.ckpt"));
  EXPECT_THAT(outcome, HasSubstr(GetParam().problem));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, DamagedState,
    ::testing::Values(
        Damage{"TextForACount", "/saves", "2", "state.saves: is not a count"},
        Damage{"NegativeCount", "/epochs_done", -1, "state.epochs_done: is not a count"},
        Damage{"TextForANumber", "/history/0/seconds", "1",
               "state.history.seconds: is not a number"},
        Damage{"NumberForAText", "/callbacks/0/name", 1, "state.callbacks.name: is not a text"},
        Damage{"NumberForAList", "/callbacks", 1, "state.callbacks: is not a list"},
        Damage{"NumberForTheHistory", "/history", 1, "state.history: is not an object"},
        Damage{"NoTable", "/history", {{"columns", 1}}, "state.history.columns: is not a list"},
        Damage{"NumberForAnObject", "/history/0", 1, "state.history: is not an object"},
        Damage{"NoValidation",
               "/restored_validation",
               {{"columns", Json::array()}},
               "state.restored_validation: is not one validation"},
        Damage{"NumberForTheFit", "/fit", 1, "state.fit: is not an object"},
        Damage{"NumberForTheRates", "/fit/rates", 1, "state.fit.rates: is not a list"},
        Damage{"TextForARate", "/fit/rates/1", "0.1",
               "state.fit.rates: holds something that is not a number"},
        Damage{"NegativeSum", "/fit/loss_counted", -0.5,
               "state.fit.loss_counted: is not a finite number >= 0"},
        Damage{"FactorOfZero", "/fit/rate_factor", 0,
               "state.fit.rate_factor: is not a finite number > 0"},
        Damage{"FinishedFit", "/fit/epoch", 3, "state.fit.epoch: lies behind the last epoch"},
        Damage{"ScheduleOfAnotherKind", "/fit/schedule", "kind: steep", "state.fit.schedule"},
        Damage{"ScheduleWithoutForm", "/fit/schedule", "{", "state.fit.schedule"}),
    [](const auto& damage) { return damage.param.name; });

TEST(TrainState, RefusesWhatIsMissingOrNoJson) {
  Json state = in_the_manifest();
  state["fit"].erase("step");
  EXPECT_THAT(outcome_of([&] { (void)train_state_from(state.dump(), {}, "a.ckpt"); }),
              HasSubstr("state.fit.step: is missing"));
  for (const char* text : {"", "[]", "{", "nul"})
    EXPECT_THAT(outcome_of([&] { (void)train_state_from(text, {}, "a.ckpt"); }),
                HasSubstr("FormatError: [learner.load] a.ckpt"))
        << text;
}

TEST(TrainState, RefusesTensorsThatDoNotFit) {
  const StoredState written = stored(inside_a_fit());
  const auto refused = [&](const std::string& name, at::Tensor value) {
    std::vector<NamedTensor> tensors;
    for (const auto& t : written.tensors)
      tensors.push_back(t.name == name ? NamedTensor{name, value} : t);
    return outcome_of([&] { (void)train_state_from(written.json, tensors, "a.ckpt"); });
  };
  EXPECT_THAT(refused("state/history", at::zeros({1, 7})), HasSubstr("is not a table of epochs"));
  EXPECT_THAT(refused("state/history", at::zeros({1, 5}, at::kDouble)),
              HasSubstr("is not a table of epochs"));
  EXPECT_THAT(refused("state/history", at::full({1, 7}, 0.5, at::kDouble)),
              HasSubstr("a count that is not a whole number"));
  EXPECT_THAT(refused("state/fit/rows", at::ones({1, 7}, at::kDouble)),
              HasSubstr("a row without names"));
  EXPECT_THAT(refused("state/history", at::zeros({1, 6}, at::kDouble)),
              HasSubstr("fewer values than names"));
  EXPECT_THAT(refused("state/callbacks/0", at::zeros({3})),
              HasSubstr("is not a contiguous byte tensor on the host"));
  EXPECT_THAT(refused("state/callbacks/0", {}),
              HasSubstr("is not a contiguous byte tensor on the host"));
}

}  // namespace
}  // namespace tare::testing
