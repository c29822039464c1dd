// Texts that a language model continues.
#include "tare/model/generate.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tare/base/error.h"
#include "tare/model/vocabulary.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Four classes; the token behind t is t + 1 with the highest score, then t + 2.
at::Tensor next_one(const at::Tensor& tokens) {
  at::Tensor scores = at::zeros({1, 4, tokens.size(1)});
  for (int64_t i = 0; i < tokens.size(1); ++i) {
    const int64_t token = tokens[0][i].item<int64_t>();
    scores[0][(token + 1) % 4][i] = 3;
    scores[0][(token + 2) % 4][i] = 2;
  }
  return scores;
}

TEST(Generate, TakesTheMostProbableTokenAtTemperatureZero) {
  EXPECT_THAT(generate(next_one, {2}, 8, {.length = 5, .temperature = 0}),
              ElementsAre(3, 0, 1, 2, 3));
  EXPECT_THAT(generate(next_one, {2}, 8, {.length = 3, .top_k = 1}), ElementsAre(3, 0, 1));
}

TEST(Generate, ShowsTheModelItsLastTokensOnly) {
  std::vector<int64_t> times;
  const auto watch = [&](const at::Tensor& tokens) {
    times.push_back(tokens.size(1));
    return next_one(tokens);
  };
  (void)generate(watch, {0, 1}, 4, {.length = 5});
  EXPECT_THAT(times, ElementsAre(2, 3, 4, 4, 4));
}

TEST(Generate, DrawsByTheScores) {
  const auto counts = [](double temperature, int64_t top_k) {
    std::vector<double> share(4);
    constexpr int kDraws = 4000;
    for (int64_t seed = 0; seed < kDraws; ++seed)
      share[static_cast<size_t>(
          generate(next_one, {3}, 8,
                   {.length = 1, .temperature = temperature, .top_k = top_k, .seed = seed})[0])] +=
          1.0 / kDraws;
    return share;
  };
  const double sum = std::exp(3) + std::exp(2) + 2;
  const auto plain = counts(1, 0);
  EXPECT_NEAR(plain[0], std::exp(3) / sum, 0.03);
  EXPECT_NEAR(plain[1], std::exp(2) / sum, 0.03);
  EXPECT_NEAR(plain[2], 1 / sum, 0.02);
  const auto sharp = counts(0.1, 0);
  EXPECT_GT(sharp[0], 0.999);
  const auto two = counts(1, 2);
  EXPECT_EQ(two[2] + two[3], 0);
}

TEST(Generate, IsAFunctionOfItsSeed) {
  const GenerateOptions options{.length = 50, .seed = 7};
  const auto text = generate(next_one, {0}, 8, options);
  EXPECT_EQ(generate(next_one, {0}, 8, options), text);
  EXPECT_NE(generate(next_one, {0}, 8, {.length = 50, .seed = 8}), text);
}

TEST(Generate, RefusesWrongOptionsAndOtherModels) {
  EXPECT_THROW((void)generate(next_one, {}, 8, {}), ConfigError);
  EXPECT_THROW((void)generate(next_one, {0}, 0, {}), ConfigError);
  EXPECT_THROW((void)generate(next_one, {0}, 8, {.length = 0}), ConfigError);
  EXPECT_THROW((void)generate(next_one, {0}, 8, {.temperature = -1}), ConfigError);
  EXPECT_THROW((void)generate(next_one, {0}, 8, {.temperature = std::nan("")}), ConfigError);
  const auto classifier = [](const at::Tensor&) { return at::zeros({1, 4}); };
  EXPECT_THROW((void)generate(classifier, {0}, 8, {}), ShapeError);
}

TEST(Vocabulary, ReadsAndWritesCharactersAndBytes) {
  const std::vector<std::string> labels{"\n", "a", "\xc3\xa4"};
  EXPECT_THAT(tokens_of("a\xc3\xa4\n", labels, "test"), ElementsAre(1, 2, 0));
  EXPECT_EQ(text_of({1, 2, 0}, labels), "a\xc3\xa4\n");
  EXPECT_THAT(tokens_of("\xc3z", {}, "test"), ElementsAre(0xc3, 'z'));
  EXPECT_EQ(text_of({0xc3, 'z', 700}, {}), "\xc3z?");
  EXPECT_THAT([&] { (void)tokens_of("ab", labels, "test"); },
              ThrowsMessage<ConfigError>(HasSubstr("'b' is not in the vocabulary")));
}

}  // namespace
}  // namespace tare
