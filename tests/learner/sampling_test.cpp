// Fits whose samples are drawn by weight, or whose batches have samples of similar length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "learner/fail_at.h"
#include "learner/fixture.h"
#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/data/collate.h"
#include "tare/train/padding.h"

namespace tare::testing {
namespace {

/// Counts the labels that a fit trains on.
struct Labels final : Callback {
  [[nodiscard]] std::string name() const override { return "labels"; }
  Action before_batch(FitContext& c) override {
    const at::Tensor target = c.data.target().cpu();
    for (int64_t i = 0; i < target.size(0); ++i) ++counts[target[i].item<int64_t>()];
    return Action::proceed;
  }
  std::map<int64_t, int64_t> counts;
};

/// 80 samples of class 0, eight of class 1 and two of class 2.
Splits unbalanced() {
  auto target = torch::zeros({90}, torch::kLong);
  target.slice(0, 80, 88).fill_(1);
  target.slice(0, 88).fill_(2);
  return {.train = tensor_dataset(get_all(*points(90, 11)).input(), target),
          .valid = points(30, 2)};
}

class SamplingOfAFit : public ::testing::Test {
 protected:
  [[nodiscard]] LearnerOptions options() const { return quiet(folder_); }
  [[nodiscard]] std::string refusal(const Splits& data, const LearnerOptions& options) const {
    Learner learner(make_net(), data, options);
    try {
      learner.fit(1);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  TempDir folder_;
};

TEST_F(SamplingOfAFit, BalancesTheClasses) {
  const auto labels = std::make_shared<Labels>();
  LearnerOptions balanced = options();
  balanced.sampling = "balanced";
  Learner learner(make_net(), unbalanced(), balanced);
  const FitResult result = learner.fit(2, {.callbacks = {labels}});
  EXPECT_EQ(result.epochs[0].samples, 90);
  for (const int64_t label : {0, 1, 2})
    EXPECT_NEAR(static_cast<double>(labels->counts[label]), 60, 2) << label;
}

TEST_F(SamplingOfAFit, NeverDrawsASampleOfWeightZero) {
  const auto labels = std::make_shared<Labels>();
  LearnerOptions weighted = options();
  weighted.sample_weights.assign(90, 0);
  for (size_t i = 80; i < 90; ++i) weighted.sample_weights[i] = 1;
  Learner learner(make_net(), unbalanced(), weighted);
  learner.fit(1, {.callbacks = {labels}});
  EXPECT_EQ(labels->counts[0], 0);
  EXPECT_EQ(labels->counts[1], 72);
  EXPECT_EQ(labels->counts[2], 18);
}

TEST_F(SamplingOfAFit, ContinuesAfterAnErrorAsUndisturbed) {
  LearnerOptions balanced = options();
  balanced.sampling = "balanced";
  Learner undisturbed(make_net(), unbalanced(), balanced);
  torch::manual_seed(4);
  undisturbed.fit(2);
  Learner failing(make_net(), unbalanced(), balanced);
  torch::manual_seed(4);
  EXPECT_THROW(failing.fit(2, {.callbacks = {std::make_shared<FailAt>(3)}}), std::runtime_error);
  failing.save("inside");
  Learner resumed(make_net(2), unbalanced(), balanced);
  resumed.load("inside");
  resumed.resume();
  EXPECT_TRUE(capture(resumed) == capture(undisturbed));

  LearnerOptions other = options();  // whose epochs have other samples
  Learner refused(make_net(), unbalanced(), other);
  refused.load("inside");
  EXPECT_THAT([&] { refused.resume(); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("sampling balanced")));
}

TEST_F(SamplingOfAFit, ThatDoesNotFitTheDataIsRefused) {
  LearnerOptions balanced = options();
  balanced.sampling = "balanced";
  balanced.loss = "mse";
  balanced.metrics = {};
  const Splits values{
      .train = tensor_dataset(torch::rand({40, kFeatures}), torch::rand({40, kClasses}))};
  EXPECT_THAT(refusal(values, balanced), ::testing::HasSubstr("class labels"));
  LearnerOptions both = options();
  both.sampling = "balanced";
  both.sample_weights.assign(90, 1);
  EXPECT_THAT(refusal(unbalanced(), both), ::testing::HasSubstr("one of them"));
  both.sample_weights.clear();
  both.class_sampling.weights = {{"a", 2}};
  EXPECT_THAT(refusal(unbalanced(), both), ::testing::HasSubstr("one of them"));
  LearnerOptions few = options();
  few.sample_weights = {1, 2};
  EXPECT_THAT(refusal(unbalanced(), few), ::testing::HasSubstr("90 numbers"));
}

/// Sequences of 1 to 24 rows, each of the class that its values show.
Splits sequences() {
  const auto of = [](int64_t count) {
    std::vector<Batch> samples;
    for (int64_t i = 0; i < count; ++i) {
      const auto rows = torch::full({1 + i * 7 % 24, kFeatures}, static_cast<double>(i % kClasses));
      samples.push_back({rows, torch::tensor(i % kClasses)});
    }
    return sample_dataset(std::move(samples), pad({.with = "none"}));
  };
  return {.train = of(90), .valid = of(30)};
}

/// Classifies a sequence by the mean of its rows.
struct MeanNetImpl : torch::nn::Module {
  MeanNetImpl() : line(register_module("line", torch::nn::Linear(kFeatures, kClasses))) {}
  torch::Tensor forward(const torch::Tensor& rows) { return line(rows.mean(1)); }
  torch::nn::Linear line;
};
TORCH_MODULE(MeanNet);

/// Notes the rows of each padded batch.
struct Rows final : Callback {
  [[nodiscard]] std::string name() const override { return "rows"; }
  Action before_batch(FitContext& c) override {
    rows.push_back(c.data.input().size(1));
    return Action::proceed;
  }
  std::vector<int64_t> rows;
};

TEST_F(SamplingOfAFit, GroupsSamplesByTheirLengths) {
  const auto rows_of = [&](bool group) {
    LearnerOptions o = options();
    o.batch = 6;
    o.group_by_length = group;
    const auto rows = std::make_shared<Rows>();
    Learner learner(MeanNet(), sequences(), o);
    learner.fit(1, {.callbacks = {rows}});
    return rows->rows;
  };
  const auto sum = [](const std::vector<int64_t>& all) {
    return std::accumulate(all.begin(), all.end(), int64_t{0});
  };
  const auto grouped = rows_of(true), mixed = rows_of(false);
  EXPECT_EQ(grouped.front(), 24);
  EXPECT_LT(sum(grouped), sum(mixed) * 3 / 4);
  LearnerOptions o = options();
  o.batch = 6;
  const auto apart = padding_of(sequences().train, o);
  o.group_by_length = true;
  const auto together = padding_of(sequences().train, o);
  ASSERT_TRUE(apart && together);
  EXPECT_EQ(apart->shortest, 1);
  EXPECT_EQ(together->longest, 24);
  double given = 0;
  for (int64_t i = 0; i < 90; ++i) given += static_cast<double>(sequences().train->sample_size(i));
  EXPECT_NEAR(together->share, 1 - given / static_cast<double>(6 * sum(grouped)), 1e-12);
  EXPECT_LT(together->share, apart->share / 2);
  EXPECT_EQ(padding_of(points(30, 2), o), std::nullopt);
}

TEST_F(SamplingOfAFit, InGroupsContinuesAfterAnErrorAsUndisturbed) {
  for (const char* sampling : {"each", "balanced"}) {
    LearnerOptions o = options();
    o.batch = 6;
    o.group_by_length = true;
    o.sampling = sampling;
    Learner undisturbed(MeanNet(), sequences(), o), failing(MeanNet(), sequences(), o);
    for (auto* learner : {&undisturbed, &failing})
      for (auto& parameter : learner->model().parameters()) parameter.tensor.detach().fill_(0.1);
    torch::manual_seed(4);
    undisturbed.fit(2);
    torch::manual_seed(4);
    EXPECT_THROW(failing.fit(2, {.callbacks = {std::make_shared<FailAt>(18)}}), std::runtime_error);
    failing.save("inside");
    Learner resumed(MeanNet(), sequences(), o);
    resumed.load("inside");
    resumed.resume();
    EXPECT_TRUE(capture(resumed) == capture(undisturbed)) << sampling;

    o.group_by_length = false;
    Learner refused(MeanNet(), sequences(), o);
    refused.load("inside");
    EXPECT_THAT([&] { refused.resume(); },
                ::testing::ThrowsMessage<ConfigError>(
                    ::testing::HasSubstr("the fit to resume has group_by_length = true")));
  }
}

TEST_F(SamplingOfAFit, RefusesGroupsOfSamplesOfOneSizeAndOfAFixedOrder) {
  LearnerOptions o = options();
  o.group_by_length = true;
  EXPECT_THAT(refusal(unbalanced(), o), ::testing::HasSubstr("all of one size"));
  o.shuffle = false;
  o.batch = 6;
  Learner learner(MeanNet(), sequences(), o);
  EXPECT_THAT([&] { learner.fit(1); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("shuffle = false")));
}

}  // namespace
}  // namespace tare::testing
