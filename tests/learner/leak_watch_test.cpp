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
  }
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
