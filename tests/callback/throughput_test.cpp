// Throughput: the rates of an epoch; PeakRates: what cards can do.
#include "tare/callback/throughput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "callback/fake_learner.h"
#include "tare/base/error.h"
#include "tare/callback/peak_rates.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Throughput, DeclaresTheColumnsThatItAddsInAnyCase) {
  EXPECT_THAT(Throughput().facts().columns, ElementsAre("samples_per_s"));
  EXPECT_THAT(Throughput({.flops = true}).facts().columns,
              ElementsAre("samples_per_s", "tflops_per_s"));
  EXPECT_THAT(Throughput({.flops = true, .peak_tflops = 100}).facts().columns,
              ElementsAre("samples_per_s", "tflops_per_s", "mfu"));
}

TEST(Throughput, RefusesAPeakWithoutACount) {
  for (const ThroughputOptions& options :
       {ThroughputOptions{.peak_tflops = 100}, ThroughputOptions{.flops = true, .peak_tflops = -1}})
    try {
      const Throughput made(options);
      ADD_FAILURE() << options.peak_tflops;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("throughput")) << options.peak_tflops;
      EXPECT_THAT(error.what(), HasSubstr("peak_tflops")) << options.peak_tflops;
    }
}

TEST(PeakRates, AreKnownByTheNameOfTheDriver) {
  const auto card = peak_rates("NVIDIA H100 80GB HBM3");
  ASSERT_TRUE(card);
  EXPECT_EQ(card->bf16, 989.5);
  for (const char* other : {"", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA A10G", "H100",
                            "AMD EPYC 7763 64-Core Processor"})
    EXPECT_FALSE(peak_rates(other)) << other;
}

TEST(PeakRates, GiveTheSecondsOfEachType) {
  const PeakRates ampere{.fp32 = 20, .tf32 = 160, .fp16 = 320, .bf16 = 320};
  constexpr int64_t kTera = 1'000'000'000'000;
  EXPECT_DOUBLE_EQ(ampere.seconds({}).value_or(-1), 0);
  EXPECT_DOUBLE_EQ(ampere.seconds({.fp32 = 20 * kTera}).value_or(-1), 1);
  EXPECT_DOUBLE_EQ(
      ampere.seconds({.tf32 = 160 * kTera, .fp16 = 640 * kTera, .bf16 = 960 * kTera}).value_or(-1),
      6);
  EXPECT_FALSE(ampere.seconds({.bf16 = 1, .others = 1}));
  const PeakRates turing{.fp32 = 8, .fp16 = 64};
  EXPECT_DOUBLE_EQ(turing.seconds({.tf32 = 8 * kTera}).value_or(-1), 1) << "it has no TF32";
  EXPECT_FALSE(turing.seconds({.bf16 = 1}));
}

TEST(Throughput, CountsTheTrainingAlone) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  Throughput callback;
  callback.before_epoch(c);
  c.row = {.seconds = 2, .samples = 100};
  callback.before_validate(c);
  c.row.seconds = 4;
  callback.after_epoch(c);
  ASSERT_EQ(c.row.metrics.size(), 1U);
  EXPECT_EQ(c.row.metrics[0].name, "samples_per_s");
  EXPECT_EQ(c.row.metrics[0].value, 50);
  callback.before_epoch(c);
  c.row = {.seconds = 4, .samples = 100};
  callback.after_epoch(c);
  EXPECT_EQ(c.row.metrics.at(0).value, 25) << "without a validation";
  callback.before_epoch(c);
  c.inside_epoch = true;
  c.row = {.seconds = 1, .samples = 50};
  callback.before_validate(c);
  c.row.seconds = 6;
  c.inside_seconds = 5;
  callback.after_validate(c);
  c.inside_epoch = false;
  c.row = {.seconds = 7, .samples = 100};
  callback.before_validate(c);
  c.row.seconds = 12;
  callback.after_epoch(c);
  EXPECT_EQ(c.row.metrics.at(0).value, 50) << "without the validation inside the epoch";
  callback.before_epoch(c);
  c.inside_seconds = 0;
  c.row = {};
  callback.after_epoch(c);
  EXPECT_TRUE(std::isnan(c.row.metrics.at(0).value));
}

}  // namespace
}  // namespace tare::testing
