// The classic ways to keep memory by mistake, each named with its line.
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "experiment/holder.h"
#include "tare/experiment/experiment.h"

namespace tare {
namespace {

using testing::bytes_of;
using ::testing::EndsWith;
using ::testing::HasSubstr;

ExperimentOptions located() {
  return {.enabled = true, .devices = {}, .out = nullptr, .call_sites = true};
}

/// The leaks at one line of this file.
LeakReport leak_at(const ExperimentReport& report, int line) {
  for (const auto& leak : report.leaks)
    if (leak.site.line == line && leak.site.file.ends_with("leak_site_test.cpp")) return leak;
  ADD_FAILURE() << "no leak at line " << line << "\n" << report;
  return {};
}

TEST(LeakSite, OfALossSummedWithoutItem) {
  const auto weight = at::ones({100, 1}).set_requires_grad(true);
  const auto x = at::ones({10, 100});
  Experiment stage("stage", located());
  auto sum = at::ones({});
  int product = 0, add = 0;
  for (int step = 0; step < 5; ++step) {
    product = __LINE__ + 1;
    const auto loss = at::matmul(x, weight).square().sum();
    add = __LINE__ + 1;
    sum = sum.add(loss);
  }
  const auto report = stage.finish();
  // The graph keeps every step's product for the square's gradient; of the sums the last lives.
  EXPECT_EQ(leak_at(report, product).bytes, 5 * 10 * 4);
  EXPECT_EQ(leak_at(report, product).count, 5);
  EXPECT_EQ(leak_at(report, add).bytes, 4);
}

TEST(LeakSite, OfOutputsKeptAcrossSteps) {
  const auto weight = at::ones({100, 8});
  const auto x = at::ones({10, 100});
  Experiment stage("stage", located());
  std::vector<at::Tensor> outputs;
  for (int step = 0; step < 3; ++step) outputs.push_back(at::matmul(x, weight));
  const int line = __LINE__ - 1;
  const auto report = stage.finish();
  const auto leak = leak_at(report, line);
  EXPECT_EQ(leak.bytes, 3 * 10 * 8 * 4);
  EXPECT_EQ(leak.count, 3);
  EXPECT_THAT(report.str(), HasSubstr("3 blocks, 960 B on cpu born in phase none at "));
  EXPECT_THAT(report.str(), HasSubstr("leak_site_test.cpp:" + std::to_string(line)));
}

TEST(LeakSite, OfATensorCapturedByALambdaOrAStatic) {
  static at::Tensor remembered;
  std::function<int64_t()> later;
  Experiment stage("stage", located());
  int captured = 0;
  {
    const auto mask = at::empty({300}, at::kByte);
    captured = __LINE__ - 1;
    later = [mask] { return mask.numel(); };
  }
  remembered = at::empty({500}, at::kByte);
  const int kept = __LINE__ - 1;
  const auto report = stage.finish();
  EXPECT_EQ(leak_at(report, captured).bytes, 300);
  EXPECT_EQ(leak_at(report, kept).bytes, 500);
  EXPECT_EQ(report.leaks.front().bytes, 500) << "largest first";
  EXPECT_EQ(later(), 300);
  remembered.reset();
}

TEST(LeakSite, OfAViewThatKeepsALargeStorage) {
  Experiment stage("stage", located());
  at::Tensor first;
  int line = 0;
  {
    const auto batch = at::ones({1000, 10});
    line = __LINE__ - 1;
    first = batch.select(0, 0);
  }
  EXPECT_EQ(leak_at(stage.finish(), line).bytes, 40'000);
  EXPECT_EQ(first.numel(), 10);
}

TEST(LeakSite, IsNotGatheredUnlessAskedFor) {
  Experiment stage("stage", {.enabled = true, .devices = {}, .out = nullptr});
  const auto forgotten = bytes_of(100);
  const auto report = stage.finish();
  ASSERT_EQ(report.leaks.size(), 1U);
  EXPECT_EQ(report.leaks[0].site, memory::CallSite{});
  EXPECT_THAT(report.str(), EndsWith("born in phase none\n"));
}

}  // namespace
}  // namespace tare
