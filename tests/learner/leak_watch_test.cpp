// A real fit is silent under LeakWatch, and what its task keeps is named.
#include "tare/callback/leak_watch.h"

#include <gtest/gtest.h>

#include "learner/fixture.h"
#include "tare/base/log.h"
#include "tare/callback/csv_log.h"
#include "tare/callback/memory_peak.h"

namespace tare::testing {
namespace {

TEST(LeakWatch, IsSilentInAFitThatKeepsNothing) {
  const TempDir folder;
  for (const int64_t workers : {0, 2}) {
    LearnerOptions options = quiet(folder);
    options.workers = workers;
    Learner learner(make_net(), split_points(), options);
    const auto watch = std::make_shared<LeakWatch>();
    learner.fit(6, {.callbacks = {watch, std::make_shared<StepsLog>(), std::make_shared<CsvLog>(),
                                  std::make_shared<MemoryPeak>()}});
    for (const auto& growth : watch->found()) ADD_FAILURE() << growth.str();
    EXPECT_FALSE(watch->kept_graph());
  }
}

TEST(LeakWatch, SeesNoGraphWhereStepsAreMadeInAnotherWay) {
  const TempDir folder;
  for (const int way : {0, 1, 2}) {
    LearnerOptions options = quiet(folder);
    if (way == 0) options.micro_batch = 3;
    if (way == 1) options.step_in_backward = true;
    if (way == 2) options.precision = "bf16";
    Learner learner(make_net(), split_points(), options);
    const auto watch = std::make_shared<LeakWatch>();
    learner.fit(1, {.callbacks = {watch}});
    EXPECT_FALSE(watch->kept_graph()) << way;
  }
}

struct KeepsLosses final : Callback {
  explicit KeepsLosses(bool detach) : detached(detach) {}
  [[nodiscard]] std::string name() const override { return "keeps_losses"; }
  Action after_loss(FitContext& context) override {
    losses.push_back(detached ? context.loss.detach() : context.loss);
    return Action::proceed;
  }
  bool detached;
  std::vector<torch::Tensor> losses;
};

TEST(LeakWatch, NamesAGraphThatACallbackKeepsInTheFirstEpoch) {
  const TempDir folder;
  const auto level = log::set_level(log::Level::off);
  for (const bool detached : {true, false}) {
    Learner learner(make_net(), split_points(), quiet(folder));
    const auto watch = std::make_shared<LeakWatch>();
    learner.fit(1, {.callbacks = {watch, std::make_shared<KeepsLosses>(detached)}});
    EXPECT_EQ(watch->kept_graph().has_value(), !detached);
  }
  log::set_level(level);
}

TEST(LeakWatch, NamesThePhaseOfLossesKeptWithTheirGraph) {
  const TempDir folder;
  std::vector<torch::Tensor> losses;
  LearnerOptions options = quiet(folder);
  options.loss = Loss([&](const torch::Tensor& output, const torch::Tensor& target) {
    losses.push_back(torch::nn::functional::cross_entropy(output, target));
    return losses.back();
  });
  Learner learner(make_net(), split_points(), options);
  const auto watch = std::make_shared<LeakWatch>();
  const auto level = log::set_level(log::Level::off);
  learner.fit(4, {.callbacks = {watch}});
  log::set_level(level);
  ASSERT_FALSE(watch->found().empty());
  for (const auto& growth : watch->found()) {
    EXPECT_TRUE(growth.phase == "forward" || growth.phase == "validate" ||
                growth.phase == "backward" || growth.phase == "data")
        << growth.str();
    EXPECT_LT(growth.bytes.at(0), growth.bytes.at(1));
  }
}

}  // namespace
}  // namespace tare::testing
