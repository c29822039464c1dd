// Training on ranks equals PyTorch's DistributedDataParallel, step by step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "parallel/job.h"
#include "tare/base/io.h"

namespace tare::testing {
namespace {

using nlohmann::json;

double difference(double got, double expected) {
  return std::abs(got - expected) / std::max(1.0, std::abs(expected));
}

TEST(Ddp, LossesOfEachRankAndWeightsAreThoseOfPyTorch) {
  const json golden = json::parse(io::read_text(std::string(TARE_GOLDEN) + "/ddp.json"));
  ASSERT_GE(golden["runs"].size(), 4);
  for (const auto& [name, run] : golden["runs"].items()) {
    const auto size = run["world"].get<int64_t>();
    const auto ranks =
        results_of(size, "ddp", {{"frozen", run["frozen"]}, {"parts", run["parts"]}});
    double largest = 0;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const json& losses = run["losses"][rank];
      ASSERT_EQ(ranks[rank]["losses"].size(), losses.size()) << name;
      for (size_t step = 0; step < losses.size(); ++step)
        largest = std::max(largest, difference(ranks[rank]["losses"][step], losses[step]));
    }
    EXPECT_LE(largest, 1e-6) << name;
    // The state of PyTorch has the parameters and buffers by layer, that of Tare the buffers last.
    std::vector<double> got = ranks.front()["norms"], expected = run["norms"];
    std::ranges::sort(got);
    std::ranges::sort(expected);
    ASSERT_EQ(got.size(), expected.size()) << name;
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LE(difference(got[i], expected[i]), 1e-6) << name << ", tensor " << i;
  }
}

}  // namespace
}  // namespace tare::testing
