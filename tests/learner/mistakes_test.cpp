// Bad input to the C++ interface, one row a mistake: the type of its exception, what the message
// says, and that the Learner and its folder are as before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "learner/fixture.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/callback/monitor.h"
#include "tare/inference/predictor.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// What the mistakes are made on.
struct Bench {
  TempDir folder;
  LearnerOptions options = quiet(folder);

  /// Fits one epoch on `train`.
  void fit(const DatasetPtr& train, std::vector<CallbackPtr> callbacks = {}) const {
    Learner learner(make_net(), {.train = train}, options);
    learner.fit(1, {.callbacks = std::move(callbacks)});
  }
  void fit_labels(const torch::Tensor& labels) const {
    fit(tensor_dataset(torch::randn({labels.size(0), kFeatures}), labels));
  }
};

struct Mistake {
  std::string name{};
  std::string type{};
  std::vector<std::string> pieces{};  ///< of the message
  std::function<void(Bench&)> make{};
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

/// Does something to the context of step `step`, at one event.
class At final : public Callback {
 public:
  using Act = std::function<void(FitContext&)>;
  At(Event event, int64_t step, Act act) : event_(event), step_(step), act_(std::move(act)) {}
  [[nodiscard]] std::string name() const override { return "at"; }
  Action before_batch(FitContext& c) override { return when(Event::before_batch, c); }
  Action after_forward(FitContext& c) override { return when(Event::after_forward, c); }

 private:
  Action when(Event event, FitContext& c) const {
    if (event == event_ && c.step == step_) act_(c);
    return Action::proceed;
  }
  Event event_;
  int64_t step_;
  Act act_;
};

CallbackPtr at(Event event, int64_t step, At::Act act) {
  return std::make_shared<At>(event, step, std::move(act));
}

CallbackPtr fail_on_nan() {
  return std::make_shared<StopOnNan>(StopOnNanOptions{.fail = true, .where = "phase head"});
}

std::vector<Mistake> mistakes_about_devices() {
  return {
      {"DataSetOnAnotherDevice",
       "DeviceError",
       {"[tensor_dataset]", "two devices: meta and cpu"},
       [](Bench&) {
         (void)tensor_dataset(torch::zeros({3, kFeatures}, torch::kMeta));
       }},
      {"InputOnAnotherDevice",
       "DeviceError",
       {"two devices: input on meta and model on cpu; move one of them"},
       [](Bench& b) {
         b.fit(map(points(48, 1), [](Batch batch) {
           batch.input = batch.input.to(torch::kMeta);
           return batch;
         }));
       }},
      {"TargetOnAnotherDevice",
       "DeviceError",
       {"two devices: target on meta and model on cpu"},
       [](Bench& b) {
         b.fit(map(points(48, 1), [](Batch batch) {
           batch.target = batch.target.to(torch::kMeta);
           return batch;
         }));
       }},
      {"InputMovedByACallback",
       "DeviceError",
       {"input on meta", "model on cpu"},
       [](Bench& b) {
         b.fit(points(48, 1), {at(Event::before_batch, 1, [](FitContext& c) {
                 c.data.input = c.data.input.to(torch::kMeta);
               })});
       }},
      {"OutputMovedByACallback",
       "DeviceError",
       {"output on meta", "target on cpu"},
       [](Bench& b) {
         b.fit(points(48, 1), {at(Event::after_forward, 0,
                                  [](FitContext& c) { c.output = c.output.to(torch::kMeta); })});
       }},
      {"UnknownDevice",
       "ConfigError",
       {"device is no device, got gpu", "auto, cpu, cuda or cuda:N"},
       [](Bench& b) {
         b.options.device = "gpu";
         b.fit(points(48, 1));
       }},
      {"DeviceThatIsNotThere",
       "DeviceError",
       {"cuda:99 is not there", "use device: auto"},
       [](Bench& b) {
         b.options.device = "cuda:99";
         b.fit(points(48, 1));
       }},
  };
}

std::vector<Mistake> mistakes_about_data() {
  return {
      {"EmptyDataSet",
       "ConfigError",
       {"the data set is empty, give at least one sample"},
       [](Bench&) {
         (void)tensor_dataset(torch::zeros({0, kFeatures}));
       }},
      {"FewerTargetsThanInputs",
       "ShapeError",
       {"as many targets as inputs, 4, got 3"},
       [](Bench&) {
         (void)tensor_dataset(torch::zeros({4, 2}), torch::zeros({3}));
       }},
      {"LabelsWithoutAName",
       "ConfigError",
       {"must be in [0, 2), got 2 at sample 2", "check the labels"},
       [](Bench&) {
         (void)tensor_dataset(torch::zeros({3, 2}), torch::arange(3), {"a", "b"});
       }},
      {"BatchLargerThanTheSet",
       "ConfigError",
       {"[learner.fit] batch 16 is larger than the training split of 15 samples; lower it"},
       [](Bench& b) { b.fit(points(15, 1)); }},
      {"NoData",
       "StateError",
       {"[learner.fit]", "without data in its train split", "set_data()"},
       [](Bench& b) { b.fit(nullptr); }},
      {"LabelsBeyondTheModel",
       "ConfigError",
       {"[loss.cross_entropy]", "class labels 0 to 6, the model has 3 outputs"},
       [](Bench& b) { b.fit_labels(torch::arange(32) % 7); }},
      {"NegativeLabel",
       "ConfigError",
       {"class labels -1 to -1, the model has 3 outputs"},
       [](Bench& b) { b.fit_labels(torch::full({32}, -1, torch::kLong)); }},
      {"LabelsBeyondTheModelInALaterBatch",
       "ConfigError",
       {"class labels", "to 7, the model has 3 outputs"},
       [](Bench& b) {
         b.fit(points(48, 1), {at(Event::before_batch, 2, [](FitContext& c) {
                 c.data.target = c.data.target.clone();
                 c.data.target[3] = 7;
               })});
       }},
      {"LabelsBeyondTheModelInValidation",
       "ConfigError",
       {"class labels 9 to 9, the model has 3 outputs"},
       [](Bench& b) {
         const auto nines = torch::full({32}, 9, torch::kLong);
         Learner learner(make_net(),
                         {.train = points(48, 1),
                          .valid = tensor_dataset(torch::randn({32, kFeatures}), nines)},
                         b.options);
         learner.fit(1);
       }},
      {"LabelsBeyondTheModelForLosses",
       "ConfigError",
       {"class labels 9 to 9, the model has 3 outputs"},
       [](Bench& b) {
         const auto nines = torch::full({32}, 9, torch::kLong);
         Learner learner(make_net(),
                         {.valid = tensor_dataset(torch::randn({32, kFeatures}), nines)},
                         b.options);
         (void)learner.get_preds(Split::valid, {.losses = true});
       }},
      {"FloatLabels",
       "ShapeError",
       {"[loss.cross_entropy]", "class labels int64 [16]", "got float32 [16]"},
       [](Bench& b) { b.fit_labels(torch::zeros({32})); }},
      {"LabelsWithAnotherDimension",
       "ShapeError",
       {"got int64 [16, 1]; target.squeeze(-1) removes its last dimension"},
       [](Bench& b) {
         b.fit_labels(torch::zeros({32, 1}, torch::kLong));
       }},
      {"IntegerValuesForMse",
       "ShapeError",
       {"[loss.mse] expected floating-point target of the output's shape [16, 3]"},
       [](Bench& b) {
         b.options.loss = "mse";
         b.options.metrics = {};
         b.fit_labels(torch::zeros({32, 3}, torch::kLong));
       }},
      {"NoTargets",
       "ShapeError",
       {"[loss.cross_entropy] expected", "no tensor"},
       [](Bench& b) {
         b.fit(tensor_dataset(torch::randn({32, kFeatures})));
       }},
  };
}

DatasetPtr with_nan(int64_t count) {
  auto input = torch::randn({count, kFeatures});
  input[0][0] = std::nan("");
  return tensor_dataset(input, torch::arange(count) % kClasses);
}

std::vector<Mistake> mistakes_that_diverge() {
  return {
      {"NanInTheData",
       "DivergedError",
       {"[phase head] the loss is nan in epoch 0, step 0; lower the learning rate"},
       [](Bench& b) {
         b.options.batch = 32;
         b.fit(with_nan(32), {fail_on_nan()});
       }},
      {"NanInTheValidationData",
       "DivergedError",
       {"[phase head] the valid_loss is nan in epoch 0"},
       [](Bench& b) {
         Learner learner(make_net(), {.train = points(48, 1), .valid = with_nan(32)}, b.options);
         learner.fit(1, {.callbacks = {fail_on_nan()}});
       }},
      {"RateThatDiverges",
       "DivergedError",
       {"[phase head] the loss is ", "in epoch 0, step 1;"},
       [](Bench& b) {
         Learner learner(make_net(), {.train = points(48, 1)}, b.options);
         learner.fit(1, {.lr = 1e30, .callbacks = {fail_on_nan()}});
       }},
      {"RateThatIsNoNumber",
       "ConfigError",
       {"a learning rate must be finite and > 0, got nan"},
       [](Bench& b) {
         Learner(make_net(), {.train = points(48, 1)}, b.options).fit(1, {.lr = std::nan("")});
       }},
      {"RateThatIsInfinite",
       "ConfigError",
       {"a learning rate must be finite and > 0, got inf"},
       [](Bench& b) {
         Learner(make_net(), {.train = points(48, 1)}, b.options)
             .fit(1, {.lr = std::numeric_limits<double>::infinity()});
       }},
  };
}

std::vector<Mistake> mistakes_in_options() {
  return {
      {"UnknownLoss",
       "ConfigError",
       {"no loss is named 'cross_entropi'; did you mean 'cross_entropy'?", "smooth_l1"},
       [](Bench& b) {
         b.options.loss = "cross_entropi";
         b.fit(points(48, 1));
       }},
      {"UnknownMetric",
       "ConfigError",
       {"no metric is named 'acuracy'; did you mean 'accuracy'?", "rmse"},
       [](Bench& b) {
         b.options.metrics = {"acuracy"};
         b.fit(points(48, 1));
       }},
      {"UnknownModel",
       "ConfigError",
       {"no model is named 'resnet81'; did you mean 'resnet18'?", "convnet"},
       [](Bench&) { (void)models::make("resnet81"); }},
      {"NoEpochs",
       "ConfigError",
       {"[learner.fit] epochs must be > 0, got 0"},
       [](Bench& b) { Learner(make_net(), {.train = points(48, 1)}, b.options).fit(0); }},
      {"NoBatch",
       "ConfigError",
       {"batch must be >= 1, got 0"},
       [](Bench& b) {
         b.options.batch = 0;
         b.fit(points(48, 1));
       }},
      {"ResumeWithoutAFit",
       "StateError",
       {"[learner.resume]", "without an unfinished fit"},
       [](Bench& b) { Learner(make_net(), {.train = points(48, 1)}, b.options).resume(); }},
  };
}

std::vector<Mistake> mistakes_with_files() {
  return {
      {"SaveOutsideOfTheFolder",
       "ConfigError",
       {"must be a plain name, got \"../x\""},
       [](Bench& b) { Learner(make_net(), {}, b.options).save("../x"); }},
      {"LoadOfNothing",
       "IoError",
       {"absent"},
       [](Bench& b) { Learner(make_net(), {}, b.options).load("absent"); }},
      {"FolderAsABundle",
       "IoError",
       {": Is a directory"},
       [](Bench& b) { (void)load_learner(b.folder.path()); }},
      {"MissingBundle",
       "IoError",
       {"absent.tare: No such file or directory"},
       [](Bench& b) { (void)load_learner(b.folder / "absent.tare"); }},
      {"ExportOntoAFolder",
       "IoError",
       {": Is a directory"},
       [](Bench& b) { Learner(make_net(), {}, b.options).export_to(b.folder.path()); }},
      {"AFileAsTheFolder",
       "IoError",
       {"/proc/self/stat", "Not a directory"},
       [](Bench& b) {
         b.options.folder = "/proc/self/stat";
         Learner(make_net(), {}, b.options).save("a");
       }},
  };
}

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  for (const auto& part : {mistakes_about_devices(), mistakes_about_data(), mistakes_that_diverge(),
                           mistakes_in_options(), mistakes_with_files()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

class LearnerMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(LearnerMistakes, IsATypedExceptionThatLeavesNothing) {
  const Mistake& mistake = GetParam();
  const int64_t before = tracked();
  {
    Bench bench;
    const std::string outcome = outcome_of([&] { mistake.make(bench); });
    EXPECT_THAT(outcome, ::testing::StartsWith(mistake.type + ": ["));
    EXPECT_THAT(outcome, ::testing::Not(HasSubstr("\n")));
    for (const auto& piece : mistake.pieces) EXPECT_THAT(outcome, HasSubstr(piece));
    EXPECT_TRUE(fs::is_empty(bench.folder.path())) << "something was written";
  }
  EXPECT_EQ(tracked(), before) << "a tensor outlived the exception";
}

INSTANTIATE_TEST_SUITE_P(All, LearnerMistakes, ::testing::ValuesIn(mistakes()),
                         [](const auto& row) { return row.param.name; });

TEST(LearnerMistake, InALaterBatchKeepsWhatWasLearnedBefore) {
  const Bench bench;
  Learner learner(make_net(), {.train = points(48, 1)}, bench.options);
  torch::Tensor after_two_steps;
  const auto spoil = at(Event::before_batch, 2, [&](FitContext& c) {
    after_two_steps = flat(learner.model());
    c.data.target = torch::full_like(c.data.target, kClasses);
  });
  EXPECT_THROW(learner.fit(1, {.callbacks = {spoil}}), ConfigError);
  EXPECT_TRUE(torch::equal(flat(learner.model()), after_two_steps));
  EXPECT_EQ(learner.resume().steps, 1);
}

TEST(LearnerMistake, LabelsThatTheLossLeavesOutAreNone) {
  const Bench bench;
  Learner learner(make_net(), {.train = points(48, 1)}, bench.options);
  const auto mask = at(Event::before_batch, 1, [](FitContext& c) { c.data.target[0] = -100; });
  EXPECT_EQ(learner.fit(1, {.callbacks = {mask}}).reason, StopReason::finished);
}

TEST(LearnerMistake, ImagesOfAnotherShapeThanTheBundles) {
  const Bench bench;
  Learner learner(models::make("mlp", {.classes = 3, .sample_shape = {1, 4, 4}, .hidden = {8}}),
                  {.train = tensor_dataset(torch::zeros({4, 1, 4, 4}))}, bench.options);
  learner.export_to(bench.folder / "m.tare");
  Predictor predictor(bench.folder / "m.tare");
  for (const auto& [shape, got] :
       {std::pair<std::vector<int64_t>, std::string>{{2, 3, 4, 4}, "[2, 3, 4, 4]"},
        {{2, 1, 5, 4}, "[2, 1, 5, 4]"}}) {
    const std::string outcome =
        outcome_of([&, size = shape] { (void)predictor.predict(torch::zeros(size)); });
    EXPECT_THAT(outcome, ::testing::StartsWith("ShapeError: [predictor.predict]"));
    EXPECT_THAT(outcome, HasSubstr("[batch, 1, 4, 4]"));
    EXPECT_THAT(outcome, HasSubstr(got));
  }
}

}  // namespace
}  // namespace tare::testing
