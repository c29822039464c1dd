// Losses by name and by function, and the batches that they refuse.
#include "tare/metric/loss.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <cmath>

#include "tare/base/error.h"

namespace tare {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

// Sums of float32 in another order.
constexpr double kLossTolerance = 1e-6;

const Tensor kLogits = at::tensor({2.0f, 0.5f, -1.0f, 0.0f, 1.0f, 3.0f}).view({2, 3});
Tensor labels(std::vector<int64_t> values) { return at::tensor(values); }

template <class E, class F>
std::string message(F&& call) {
  try {
    call();
  } catch (const E& e) {
    return e.what();
  }
  return "no exception of the expected type";
}

TEST(Loss, CrossEntropyIsMinusLogSoftmaxOfTheLabel) {
  const ResolvedLoss loss = resolve("cross_entropy");
  const double first = std::log(std::exp(2.0) + std::exp(0.5) + std::exp(-1.0)) - 2.0;
  const double second = std::log(std::exp(0.0) + std::exp(1.0) + std::exp(3.0)) - 1.0;
  const Tensor each = loss.per_sample(kLogits, labels({0, 1}));
  ASSERT_EQ(each.sizes(), at::IntArrayRef({2}));
  EXPECT_NEAR(each[0].item<double>(), first, kLossTolerance);
  EXPECT_NEAR(each[1].item<double>(), second, kLossTolerance);
  EXPECT_NEAR(loss.mean(kLogits, labels({0, 1})).item<double>(), (first + second) / 2,
              kLossTolerance);
}

TEST(Loss, MeanOfPerSampleIsMeanForEveryName) {
  at::manual_seed(1);
  for (const auto& name : loss_names()) {
    const bool classes = name == "cross_entropy" || name == "nll";
    const Tensor output = at::log_softmax(at::randn({4, 3, 5}), 1);
    const Tensor target =
        classes ? at::randint(3, {4, 5}, at::kLong) : at::softmax(at::randn({4, 3, 5}), 1);
    const ResolvedLoss loss = resolve(name);
    const Tensor each = loss.per_sample(output, target);
    ASSERT_EQ(each.sizes(), at::IntArrayRef({4})) << name;
    EXPECT_NEAR(each.mean().item<double>(), loss.mean(output, target).item<double>(),
                kLossTolerance)
        << name;
  }
}

TEST(Loss, EachNameHasItsActivation) {
  const std::vector<std::pair<std::string, std::string>> wanted{{"bce_with_logits", "sigmoid"},
                                                                {"cross_entropy", "softmax"},
                                                                {"kl_div", "exp"},
                                                                {"l1", "none"},
                                                                {"mse", "none"},
                                                                {"nll", "exp"},
                                                                {"smooth_l1", "none"}};
  ASSERT_EQ(loss_names().size(), wanted.size());
  for (const auto& [name, activation] : wanted)
    EXPECT_EQ(resolve(name).activation_name, activation) << name;
  EXPECT_TRUE(at::equal(resolve("cross_entropy").activation(kLogits), at::softmax(kLogits, 1)));
  EXPECT_TRUE(at::equal(resolve("nll").activation(kLogits), kLogits.exp()));
  EXPECT_TRUE(at::equal(resolve("bce_with_logits").activation(kLogits), kLogits.sigmoid()));
  EXPECT_TRUE(at::equal(resolve("mse").activation(kLogits), kLogits));
}

TEST(Loss, TakesTheOptionsOfItsName) {
  at::manual_seed(2);
  const Tensor logits = at::randn({6, 3}), classes = at::randint(3, {6}, at::kLong);
  classes[2] = kIgnoredLabel;
  const ResolvedLoss smoothed =
      resolve({"cross_entropy", CrossEntropyOptions{.label_smoothing = 0.2}});
  EXPECT_TRUE(at::equal(smoothed.mean(logits, classes),
                        at::cross_entropy_loss(logits, classes, {}, 1, kIgnoredLabel, 0.2)));
  EXPECT_NEAR(smoothed.per_sample(logits, classes).sum().item<double>(),
              smoothed.sum(logits, classes).item<double>(), 5 * kLossTolerance);
  EXPECT_EQ(smoothed.activation_name, "softmax");
  EXPECT_EQ(counted(smoothed, classes), 5);

  const Tensor values = at::rand({6, 3});
  EXPECT_TRUE(at::equal(resolve({"smooth_l1", SmoothL1Options{.beta = 0.1}}).mean(logits, values),
                        at::smooth_l1_loss(logits, values, 1, 0.1)));

  const ResolvedLoss recall = resolve({"bce_with_logits", BceOptions{.positive_weight = 3}});
  const Tensor far = logits.mul(30), weight = at::full({1}, 3.0);
  for (const Tensor& output : {logits, far}) {
    EXPECT_NEAR(recall.mean(output, values).item<double>(),
                at::binary_cross_entropy_with_logits(output, values, {}, weight).item<double>(),
                20 * kLossTolerance);
  }
  EXPECT_EQ(recall.per_sample(logits, values).sizes(), at::IntArrayRef({6}));
}

const std::vector<double> kWeights{0.5, 3, 1.25};

ResolvedLoss weighted(double label_smoothing = 0) {
  return resolve({"cross_entropy", CrossEntropyOptions{.label_smoothing = label_smoothing,
                                                       .class_weights = kWeights}});
}

TEST(Loss, ClassWeightsAreThoseOfTorch) {
  at::manual_seed(4);
  const Tensor weights = at::tensor({0.5f, 3.0f, 1.25f});
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{8}, {8, 5}}) {
    std::vector<int64_t> of_logits = shape;
    of_logits.insert(of_logits.begin() + 1, 3);
    const Tensor logits = at::randn(of_logits), classes = at::randint(3, shape, at::kLong);
    classes.flatten().slice(0, 2, 4).fill_(kIgnoredLabel);
    for (const double smoothing : {0.0, 0.2}) {
      const ResolvedLoss loss = weighted(smoothing);
      const auto wanted = [&](int64_t reduction) {
        return at::cross_entropy_loss(logits, classes, weights, reduction, kIgnoredLabel,
                                      smoothing);
      };
      EXPECT_NEAR(loss.mean(logits, classes).item<double>(),
                  wanted(at::Reduction::Mean).item<double>(), 2 * kLossTolerance);
      EXPECT_TRUE(at::equal(loss.sum(logits, classes), wanted(at::Reduction::Sum)));
      if (shape.size() == 1) {
        EXPECT_TRUE(at::equal(loss.per_sample(logits, classes), wanted(at::Reduction::None)));
      }
      EXPECT_NEAR(loss.mean(logits, classes).item<double>() * counted(loss, classes).value(),
                  loss.sum(logits, classes).item<double>(), 100 * kLossTolerance);
    }
  }
}

/// Allows only kernels that repeat their bits.
class OnlyRepeatable {
 public:
  OnlyRepeatable() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false); }
  ~OnlyRepeatable() { at::globalContext().setDeterministicAlgorithms(false, false); }
  OnlyRepeatable(const OnlyRepeatable&) = delete;
  OnlyRepeatable& operator=(const OnlyRepeatable&) = delete;
};

// Tare adds up the losses of tokens and pixels itself then.
TEST(Loss, OfLabelsIsThatOfTorchWhereKernelsRepeatTheirBits) {
  at::manual_seed(4);
  const Tensor output = at::randn({5, 3, 4, 3}).log_softmax(1),
               target = at::randint(3, {5, 4, 3}, at::kLong);
  target.flatten().slice(0, 2, 4).fill_(kIgnoredLabel);
  for (const ResolvedLoss& loss :
       {resolve("cross_entropy"), resolve("nll"),
        resolve({"cross_entropy", CrossEntropyOptions{.label_smoothing = 0.2}}), weighted(),
        weighted(0.2)}) {
    const auto results = [&] {
      const Tensor x = output.clone().requires_grad_();
      const Tensor mean = loss.mean(x, target);
      mean.backward();
      return std::vector{mean.detach(), x.grad(), loss.sum(output, target)};
    };
    const std::vector<Tensor> expected = results();
    const OnlyRepeatable only;
    const std::vector<Tensor> repeated = results();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(at::allclose(repeated[i], expected[i], kLossTolerance, kLossTolerance))
          << loss.name << ' ' << i;
  }
}

TEST(Loss, ClassWeightsAreWhatTheMeanIsOver) {
  const ResolvedLoss loss = weighted();
  EXPECT_EQ(counted(loss, labels({0, 1, 1, kIgnoredLabel, 2})), 0.5 + 3 + 3 + 1.25);
  EXPECT_EQ(counted(loss, labels({2, 2})), 2.5);
  EXPECT_EQ(counted(loss, labels({kIgnoredLabel})), 0);
  EXPECT_EQ(label_range(loss, labels({1, 2}))->counted, 4.25);
  EXPECT_EQ(counted(loss, at::rand({4, 3})), 4) << "probabilities are divided by their number";
  const ResolvedLoss without_first =
      resolve({"cross_entropy", CrossEntropyOptions{.class_weights = {0, 1, 1}}});
  EXPECT_EQ(counted(without_first, labels({0, 0})), 0);
  EXPECT_EQ(label_range(without_first, labels({0, 0}))->high, 0) << "the labels are checked anyway";
}

TEST(Loss, ClassWeightsAreTakenFromATensorOrBalanced) {
  EXPECT_EQ(losses::class_weights(at::tensor({0.5f, 3.0f, 1.25f})), kWeights);
  EXPECT_THROW((void)losses::class_weights(at::ones({2, 2})), ShapeError);
  const auto balanced = losses::balanced(labels({0, 0, 0, 1, kIgnoredLabel}), 3);
  EXPECT_EQ(balanced, (std::vector<double>{4.0 / 9, 4.0 / 3, 0}));
  EXPECT_THAT(message<ConfigError>([] { (void)losses::balanced(labels({3}), 3); }),
              HasSubstr("must be from 0 to 2"));
  EXPECT_THAT(message<ConfigError>([] { (void)losses::balanced(labels({kIgnoredLabel}), 3); }),
              HasSubstr("no label that counts"));
  EXPECT_THROW((void)losses::balanced(at::rand({3}), 3), ShapeError);
  EXPECT_THROW((void)losses::balanced(labels({0}), 0), ConfigError);
}

TEST(Loss, ClassWeightsOfAnotherNumberOfClassesAreRefused) {
  const std::string text = message<ConfigError>([] {
    check_batch(weighted(), at::zeros({2, 4}), labels({0, 1}));
  });
  EXPECT_THAT(text, HasSubstr("cross_entropy.class_weights"));
  EXPECT_THAT(text, HasSubstr("each of the 4 classes"));
  EXPECT_THAT(text, HasSubstr("3 of them"));
  check_batch(weighted(), kLogits, labels({0, 2}));
}

TEST(Loss, OptionsAtTheirDefaultsChangeNothing) {
  at::manual_seed(3);
  for (const auto& info : losses::registry().infos()) {
    const bool classes = info.name == "cross_entropy" || info.name == "nll";
    const Tensor output = at::log_softmax(at::randn({4, 3}), 1);
    const Tensor target = classes ? at::randint(3, {4}, at::kLong) : at::rand({4, 3});
    const Loss whole = config::Choice{.name = info.name, .options = info.defaults};
    EXPECT_TRUE(
        at::equal(resolve(whole).mean(output, target), resolve(info.name).mean(output, target)))
        << info.name;
    EXPECT_EQ(losses::text_of(whole), info.name);
  }
}

TEST(Loss, IsWrittenWithOptionsAsItIsRead) {
  const Loss smoothed{"cross_entropy", CrossEntropyOptions{.label_smoothing = 0.25}};
  EXPECT_EQ(losses::text_of(smoothed), "{cross_entropy: {label_smoothing: 0.25}}");
  const Tensor classes = labels({0, 1});
  EXPECT_TRUE(
      at::equal(resolve(losses::from_text(losses::text_of(smoothed))).mean(kLogits, classes),
                resolve(smoothed).mean(kLogits, classes)));
  EXPECT_EQ(losses::text_of(LossFunction([](const Tensor& o, const Tensor&) { return o; })), "");
  const Loss of_classes{"cross_entropy", CrossEntropyOptions{.class_weights = {1, 2.5}}};
  EXPECT_EQ(losses::text_of(of_classes), "{cross_entropy: {class_weights: [1, 2.5]}}");
  EXPECT_EQ(resolve(losses::from_text(losses::text_of(of_classes))).class_weights,
            (std::vector<double>{1, 2.5}));
  EXPECT_EQ(std::get<std::string>(losses::from_text("mse")), "mse");
  EXPECT_THROW((void)losses::from_text("{mse"), ConfigError);
}

TEST(Loss, NamesTheOptionThatIsWrong) {
  const auto refusal = [](const std::string& text) {
    return message<ConfigError>([&] { (void)resolve(losses::from_text(text)); });
  };
  EXPECT_THAT(refusal("{cross_entropy: {label_smoothing: 2}}"),
              HasSubstr("cross_entropy.label_smoothing must be from 0 to 1"));
  EXPECT_THAT(refusal("{cross_entropy: {label_smooth: 0.1}}"),
              HasSubstr("did you mean \"label_smoothing\"?"));
  EXPECT_THAT(refusal("{cross_entropy: {class_weights: [1, -1]}}"), HasSubstr("must be >= 0"));
  EXPECT_THAT(refusal("{cross_entropy: {class_weights: [1, 0], label_smoothing: 0.1}}"),
              HasSubstr("cross_entropy.class_weights.1 gives a class no weight"));
  EXPECT_THAT(refusal("{cross_entropy: {class_weights: [0, 0]}}"),
              HasSubstr("cross_entropy.class_weights leave no class to learn"));
  EXPECT_THAT(message<ConfigError>([] {
                (void)resolve({"cross_entropy", CrossEntropyOptions{.class_weights = {INFINITY}}});
              }),
              HasSubstr("finite"));
  EXPECT_THAT(refusal("{smooth_l1: {beta: 0}}"), HasSubstr("smooth_l1.beta must be > 0"));
  EXPECT_THAT(refusal("{bce_with_logits: {positive_weight: 0}}"),
              HasSubstr("bce_with_logits.positive_weight must be > 0"));
  EXPECT_THAT(refusal("{mse: {beta: 1}}"), HasSubstr("beta is not a known key"));
}

TEST(Loss, MeanIsDifferentiable) {
  const Tensor output = kLogits.clone().requires_grad_(true);
  resolve("cross_entropy").mean(output, labels({0, 2})).backward();
  EXPECT_TRUE(output.grad().defined());
}

TEST(Loss, TakesAFunction) {
  const Loss given = [](const Tensor& output, const Tensor& target) {
    return output.sub(target).abs().max();
  };
  const ResolvedLoss loss = resolve(given);
  EXPECT_EQ(loss.name, "custom");
  EXPECT_FALSE(loss.per_sample);
  EXPECT_EQ(loss.mean(at::ones({2}), at::zeros({2})).item<double>(), 1);
  EXPECT_TRUE(at::equal(loss.activation(kLogits), kLogits));
}

TEST(Loss, AFunctionMayNameItsActivation) {
  const LossFunction own = [](const Tensor& output, const Tensor& target) {
    return at::cross_entropy_loss(output, target);
  };
  const ResolvedLoss loss = resolve({own, "softmax"});
  EXPECT_EQ(loss.activation_name, "softmax");
  EXPECT_TRUE(at::equal(loss.activation(kLogits), kLogits.softmax(1)));
  EXPECT_EQ(resolve({own, "none"}).activation_name, "none");
  EXPECT_EQ(resolve(own).activation_name, "none");
  EXPECT_THAT(message<ConfigError>([&] {
                (void)resolve({own, "softmx"});
              }),
              HasSubstr("did you mean \"softmax\"?"));
}

TEST(Loss, UnknownNameNamesTheNearest) {
  EXPECT_THAT(message<ConfigError>([] { (void)resolve("cross_entropi"); }),
              HasSubstr("(did you mean \"cross_entropy\"?); allowed: bce_with_logits, "));
  EXPECT_THROW((void)resolve(LossFunction{}), ConfigError);
}

TEST(Loss, BceTakesTheLabelsOfTwoClassesWithOneOutput) {
  const at::Tensor score = at::tensor({2.F, -1.F, 0.5F}).view({3, 1});
  const at::Tensor label = at::tensor({1, 0, 0}, at::kLong);
  const at::Tensor number = label.to(at::kFloat).unsqueeze(1);
  for (const double weight : {1., 3.}) {
    const ResolvedLoss loss =
        resolve(Loss("bce_with_logits", BceOptions{.positive_weight = weight}));
    EXPECT_NO_THROW(check_batch(loss, score, label));
    EXPECT_EQ(loss.mean(score, label).item<float>(), loss.mean(score, number).item<float>());
    EXPECT_TRUE(at::equal(loss.per_sample(score, label), loss.per_sample(score, number)));
  }
  const ResolvedLoss loss = resolve("bce_with_logits");
  EXPECT_THROW(check_batch(loss, score, at::tensor({1, 2, 0}, at::kLong)), ConfigError);
  EXPECT_THROW(check_batch(loss, score.expand({3, 2}), label), ShapeError);
}

TEST(CheckBatch, AcceptsWhatTheLossTakes) {
  EXPECT_NO_THROW(check_batch(resolve("cross_entropy"), kLogits, labels({0, 2})));
  EXPECT_NO_THROW(check_batch(resolve("cross_entropy"), kLogits, labels({-100, 2})));
  EXPECT_NO_THROW(check_batch(resolve("cross_entropy"), kLogits, at::softmax(kLogits, 1)));
  EXPECT_NO_THROW(check_batch(resolve("mse"), kLogits, at::zeros({2, 3})));
  const Loss custom = [](const Tensor& o, const Tensor&) { return o.sum(); };
  EXPECT_NO_THROW(check_batch(resolve(custom), kLogits, at::zeros({2, 7}, at::kInt)));
}

TEST(CheckBatch, TellsLabelsThatTheModelHasNoOutputFor) {
  const auto loss = resolve("cross_entropy");
  const auto text = message<ConfigError>([&] { check_batch(loss, kLogits, labels({0, 3})); });
  EXPECT_THAT(text, HasSubstr("class labels 0 to 3"));
  EXPECT_THAT(text, HasSubstr("3 outputs"));
  EXPECT_THROW(check_batch(loss, kLogits, labels({-1, 0})), ConfigError);
}

TEST(CheckBatch, TellsWrongShapesAndTypes) {
  const auto loss = resolve("cross_entropy");
  EXPECT_THAT(message<ShapeError>([&] { check_batch(loss, kLogits, at::zeros({2}, at::kInt)); }),
              HasSubstr("int32 [2]"));
  EXPECT_THAT(message<ShapeError>([&] {
                check_batch(loss, kLogits, at::zeros({2, 1}, at::kLong));
              }),
              HasSubstr("target.squeeze(-1)"));
  EXPECT_THROW(check_batch(loss, kLogits, labels({0, 1, 2})), ShapeError);
  EXPECT_THROW(check_batch(loss, at::zeros({2}), labels({0, 1})), ShapeError);
  EXPECT_THROW(check_batch(loss, kLogits, Tensor()), ShapeError);
  EXPECT_THROW(check_batch(resolve("mse"), at::zeros({2, 1}), at::zeros({2})), ShapeError);
  EXPECT_THROW(check_batch(resolve("bce_with_logits"), at::zeros({2}), labels({0, 1})), ShapeError);
}

TEST(CheckBatch, RefusesTargetsThatAreNoProbabilities) {
  const auto refusal = [](const char* loss, const Tensor& output, const Tensor& target) {
    return message<ConfigError>([&] { check_batch(resolve(loss), output, target); });
  };
  EXPECT_THAT(refusal("cross_entropy", at::zeros({2, 1}), at::zeros({2, 1})),
              HasSubstr("is 0 for a single output, whatever the model gives"));
  EXPECT_THAT(
      refusal("cross_entropy", kLogits, at::full({2, 3}, 1.5)),
      HasSubstr("takes targets from 0 to 1, the probability of each output, and a target of "
                "the data is 1.5; mse or l1 takes any values"));
  EXPECT_THAT(refusal("bce_with_logits", at::zeros({2}), at::full({2}, -1.0)),
              HasSubstr("takes targets from 0 to 1"));
  EXPECT_THAT(refusal("kl_div", at::zeros({2, 2}), at::full({2, 2}, -0.5).to(at::kHalf)),
              HasSubstr("a target of the data is -0.5"));
  EXPECT_THAT(refusal("bce_with_logits", at::zeros({2}), at::tensor({0.25, 80.18})),
              HasSubstr("those of the data reach from 0.25 to 80.18; mse"));
  EXPECT_NO_THROW(check_batch(resolve("bce_with_logits"), at::zeros({2}), at::ones({2})));
}

TEST(CheckBatch, TellsTwoDevices) {
  EXPECT_THROW(check_batch(resolve("mse"), at::zeros({2}), at::zeros({2}, at::kMeta)), DeviceError);
}

TEST(LabelRange, OfClassLabelsWithoutThoseLeftOut) {
  const auto loss = resolve("cross_entropy");
  const auto range = label_range(loss, at::tensor({4, -100, 2}, at::kLong));
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->low, 2);
  EXPECT_EQ(range->high, 4);
  EXPECT_NO_THROW(check_labels(loss, *range, 5));
  EXPECT_THROW(check_labels(loss, *range, 4), ConfigError);
  EXPECT_THROW(check_labels(loss, {.low = -1, .high = 0}, 4), ConfigError);
  const auto none = label_range(loss, at::full({2}, -100, at::kLong));
  ASSERT_TRUE(none.has_value());
  EXPECT_NO_THROW(check_labels(loss, *none, 1));
  EXPECT_FALSE(label_range(resolve("mse"), at::zeros({2}, at::kLong)).has_value());
  EXPECT_FALSE(label_range(loss, at::rand({2})).has_value());
  EXPECT_FALSE(label_range(loss, {}).has_value());
}

}  // namespace
}  // namespace tare
