// A model in several stages on the host: where it can be cut, how it is divided, and that a
// training in stages is that of the whole, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/model/block.h"
#include "tare/model/registry.h"
#include "tare/optim/torch_optimizer.h"
#include "tare/parallel/stages.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSamples = 24, kBatch = 8;

Model small(const std::string& name, double dropout = 0.2) {
  torch::manual_seed(1);
  ModelOptions options{.classes = kClasses, .sample_shape = {3, 32, 32}, .dropout = dropout};
  if (name == "gpt") {
    options.classes = 16, options.sample_shape = {8}, options.width = 8;
    options.layers = 4, options.heads = 2;
  } else if (name == "vit") {
    options.width = 8, options.layers = 3, options.heads = 2;
  } else {
    options.width = 4;
  }
  return models::make(name, options);
}

DatasetPtr set_for(const std::string& name, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  if (name == "gpt") {
    const auto tokens = torch::randint(16, {kSamples, 8}, generator);
    return tensor_dataset(tokens, tokens.roll(-1, 1));
  }
  return tensor_dataset(torch::empty({kSamples, 3, 32, 32}).normal_(0, 1, generator),
                        torch::arange(kSamples) % kClasses);
}

Splits data_for(const std::string& name) {
  return {.train = set_for(name, 11), .valid = set_for(name, 12)};
}

/// Everything that a training has left.
struct Trained {
  State state{};
  std::vector<double> losses{};
};

struct Case {
  std::string name{};  // of the case
  std::string model = "resnet18";
  std::vector<std::string> stages{"cpu", "cpu"};
  std::function<void(LearnerOptions&)> change{};
  int64_t freeze_to = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& of) { return out << of.name; }

Trained trained(const Case& of, const std::vector<std::string>& stages) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.device = "auto";
  options.batch = kBatch;
  options.micro_batch = 3;  // parts of 3, 3 and 2 samples
  if (of.change) of.change(options);
  options.stages = stages;
  Learner learner(small(of.model), data_for(of.model), std::move(options));
  learner.freeze_to(of.freeze_to);
  torch::manual_seed(5);
  Trained result;
  for (int fits = 0; fits < 2; ++fits) {
    const EpochRow row = learner.fit(1).epochs.front();
    result.losses.insert(result.losses.end(), {row.train_loss, row.valid_loss});
  }
  result.state = capture(learner);
  return result;
}

/// Leaves the gradients of the last batch of an epoch to the next step.
class SkipLast final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "skip_last"; }
  Action after_backward(FitContext& context) override {
    return context.batch + 1 == context.batches ? Action::skip : Action::proceed;
  }
};

class InStages : public ::testing::TestWithParam<Case> {};

TEST_P(InStages, EqualsTheWholeBitForBit) {
  const Trained whole = trained(GetParam(), {}), parts = trained(GetParam(), GetParam().stages);
  EXPECT_EQ(whole.losses, parts.losses);
  EXPECT_TRUE(whole.state == parts.state);
}

INSTANTIATE_TEST_SUITE_P(
    Trainings, InStages,
    ::testing::Values(
        Case{.name = "resnet18"}, Case{.name = "gpt", .model = "gpt"},
        Case{.name = "vit", .model = "vit", .stages = {"cpu", "cpu", "cpu"}},
        Case{.name = "mobilenet_whole_batches",
             .model = "mobilenet_v3_small",
             .stages = {"cpu", "cpu", "cpu", "cpu"},
             .change = [](LearnerOptions& o) { o.micro_batch.reset(); }},
        Case{.name = "a_cut_that_is_named", .stages = {"cpu", "cpu@layer2"}},
        Case{.name = "frozen", .freeze_to = 3},
        Case{.name = "clipped_sgd",
             .change =
                 [](LearnerOptions& o) {
                   o.clip.norm = 0.01;
                   o.optimizer = {.kind = "sgd", .lr = 0.1, .momentum = 0.9};
                 }},
        Case{.name = "clipped_by_value",
             .model = "gpt",
             .change = [](LearnerOptions& o) { o.clip.value = 1e-4; }},
        Case{.name = "torch_optimizer",
             .model = "vit",
             .change =
                 [](LearnerOptions& o) {
                   o.optimizer_factory = torch_optimizer<torch::optim::RMSprop>();
                 }},
        Case{.name = "gradients_that_wait",
             .change = [](LearnerOptions& o) { o.callbacks = {std::make_shared<SkipLast>()}; }},
        Case{.name = "recomputed",
             .model = "gpt",
             .change = [](LearnerOptions& o) { o.recompute = {"all"}; }},
        Case{.name = "fp16", .change = [](LearnerOptions& o) { o.precision = "fp16"; }},
        Case{.name = "channels_last",
             .change = [](LearnerOptions& o) { o.kernels.channels_last = true; }},
        Case{.name = "frozen_fp8",
             .change = [](LearnerOptions& o) { o.frozen_weights = "fp8"; },
             .freeze_to = 4}),
    [](const auto& test) { return test.param.name; });

/// Notes which micro-batches are at which event.
class Order final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "order"; }
  Action after_forward(FitContext& context) override {
    text_ += 'f' + std::to_string(context.micro_batch) + ' ';
    return Action::proceed;
  }
  Action after_backward(FitContext&) override {
    text_ += "b ";
    return Action::proceed;
  }
  Action after_loss(FitContext& context) override {
    if (context.micro_batch == 0)
      first_loss_ = Weak(context.loss.getIntrusivePtr());
    else
      graphs_alive_ = graphs_alive_ && !first_loss_.expired();
    return Action::proceed;
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Whether the loss of the first micro-batch, with its graph, was alive at that of each later
  /// one.
  [[nodiscard]] bool graphs_alive() const { return graphs_alive_; }

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  std::string text_;
  Weak first_loss_{c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>()};
  bool graphs_alive_ = true;
};

bool keeps_graphs(const std::vector<std::string>& stages) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.device = "auto";
  options.batch = kBatch;
  options.micro_batch = 2;
  options.stages = stages;
  const auto order = std::make_shared<Order>();
  options.callbacks = {order};
  Learner learner(small("gpt"), {.train = set_for("gpt", 11)}, std::move(options));
  learner.fit(1);
  EXPECT_THAT(order->text(), ::testing::StartsWith("f0 f1 f2 f3 b f0 "));
  return order->graphs_alive();
}

TEST(Stages, DoAllForwardsOfAStepBeforeItsBackwards) {
  EXPECT_TRUE(keeps_graphs({"cpu", "cpu"}));
  EXPECT_FALSE(keeps_graphs({}));
}

LearnerOptions in_stages(const TempDir& folder, std::vector<std::string> stages) {
  LearnerOptions options = quiet(folder);
  options.device = "auto";
  options.metrics = {};
  options.stages = std::move(stages);
  return options;
}

std::string refusal(Model model, LearnerOptions options) {
  try {
    const Learner learner(std::move(model), {}, std::move(options));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Stages, AreRefusedWhereTheModelCannotBeCut) {
  const TempDir folder;
  EXPECT_THAT(refusal(models::make("mlp", {.classes = 3, .sample_shape = {8}}),
                      in_stages(folder, {"cpu", "cpu"})),
              HasSubstr("needs a layer group that begins with a block"));
  EXPECT_THAT(refusal(small("resnet18"), in_stages(folder, std::vector<std::string>(6, "cpu"))),
              HasSubstr("which can be cut at layer1, layer2, layer3, layer4"));
  EXPECT_THAT(refusal(small("resnet18"), in_stages(folder, {"cpu", "cpu@fc"})),
              HasSubstr("begin where the model cannot be cut"));
  EXPECT_THAT(refusal(small("resnet18"), in_stages(folder, {"cpu", "cpu@layer9"})),
              HasSubstr("begin where the model cannot be cut"));
  EXPECT_THAT(refusal(small("resnet18"), in_stages(folder, {"cpu@layer1", "cpu"})),
              HasSubstr("must begin with the first layer group"));
  EXPECT_THAT(refusal(small("resnet18"), in_stages(folder, {"cpu", "cpu@layer3", "cpu@layer2"})),
              HasSubstr("leaves a stage without a layer group"));
}

TEST(Stages, AreRefusedBesideWhatCannotBe) {
  const TempDir folder;
  LearnerOptions options = in_stages(folder, {"cpu", "cpu"});
  options.device = "cpu";
  EXPECT_THAT(refusal(small("gpt"), options), HasSubstr("has no effect beside stages"));
  options = in_stages(folder, {"cpu", "cpu"});
  options.step_in_backward = true;
  EXPECT_THAT(refusal(small("gpt"), options), HasSubstr("step_in_backward"));
  EXPECT_THAT(refusal(small("gpt"), in_stages(folder, {"cpu", "auto"})),
              HasSubstr("name auto beside others"));
  EXPECT_THAT(refusal(small("gpt"), in_stages(folder, {"cpu", "gpu:1"})),
              HasSubstr("name a device that is not known"));
  EXPECT_THAT(refusal(small("gpt"), in_stages(folder, {"cpu", "cpu@"})),
              HasSubstr("may have a layer group behind it"));
}

TEST(Stages, OfAutoAreTheHostWhereThereIsNoCard) {
  if (memory::devices().size() > 1) GTEST_SKIP() << "there is a card";
  const TempDir folder;
  const Learner learner(small("gpt"), {}, in_stages(folder, {"auto"}));
  ASSERT_EQ(learner.stages().size(), 1U);
  EXPECT_TRUE(learner.stages().all().front().device.is_cpu());
}

TEST(Stages, CutAModelWhereALayerGroupBeginsWithABlock) {
  EXPECT_THAT(parallel::cuts_of(small("resnet18")), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(parallel::cuts_of(small("gpt")), ElementsAre(1, 2, 3, 4));  // not at ln_f
  EXPECT_THAT(parallel::cuts_of(small("vit")), ElementsAre(1, 2, 3));
  EXPECT_THAT(parallel::cuts_of(make_net()), IsEmpty());
}

TEST(Stages, SayWhichLayerGroupsAndBytesTheyHave) {
  const TempDir folder;
  const Learner learner(small("resnet18"), {}, in_stages(folder, {"cpu", "cpu@layer3"}));
  const auto& parts = learner.stages().all();
  int64_t bytes = 0;
  for (const auto& [name, tensor] : small("resnet18").state())
    bytes += static_cast<int64_t>(tensor.nbytes());
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].end, 3U);
  EXPECT_EQ(parts[1].first, 3U);
  EXPECT_EQ(parts[0].bytes + parts[1].bytes, bytes);
  EXPECT_EQ(learner.stages().groups_text(small("resnet18"), 1), "layer3 to fc");
}

using parallel::divided;
using Firsts = std::vector<std::optional<size_t>>;

TEST(Division, MakesTheFullestPartAsSmallAsItCanBe) {
  EXPECT_THAT(divided({1, 1, 1, 1}, Firsts(2), {1, 2, 3}, {1, 1}), ElementsAre(0, 2));
  EXPECT_THAT(divided({8, 1, 1, 1, 1}, Firsts(3), {1, 2, 3, 4}, {1, 1, 1}), ElementsAre(0, 1, 3));
  EXPECT_THAT(divided({1, 1, 1, 1}, Firsts(2), {1, 2, 3}, {3, 1}), ElementsAre(0, 3));
  EXPECT_THAT(divided({1, 1, 5, 1}, Firsts(2), {1, 3}, {1, 1}), ElementsAre(0, 1));
  EXPECT_THAT(divided({1, 1, 1, 1}, {std::nullopt, 3}, {1, 2, 3}, {1, 1}), ElementsAre(0, 3));
  EXPECT_THAT(divided({1, 1}, Firsts(3), {1}, {1, 1, 1}), IsEmpty());
}

/// Trains a step of each epoch in one division, and continues in another one from a checkpoint.
Trained continued(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  const TempDir folder;
  const auto options = [&](const std::vector<std::string>& stages) {
    LearnerOptions all = quiet(folder);
    all.device = "auto";
    all.batch = kBatch;
    all.micro_batch = 4;
    all.stages = stages;
    return all;
  };
  torch::manual_seed(5);
  {
    Learner first(small("resnet18"), data_for("resnet18"), options(before));
    first.fit(1);
    first.save("half");
  }
  Learner second(small("resnet18"), data_for("resnet18"), options(after));
  second.load("half");
  const FitResult fit = second.fit(1);
  return {.state = capture(second), .losses = {fit.epochs.back().train_loss}};
}

TEST(Stages, ContinueFromACheckpointOfAnotherDivision) {
  const Trained whole = continued({}, {});
  for (const auto& [before, after] :
       {std::pair<std::vector<std::string>, std::vector<std::string>>{{"cpu", "cpu"}, {}},
        {{}, {"cpu", "cpu"}},
        {{"cpu", "cpu@layer1"}, {"cpu", "cpu", "cpu"}}}) {
    const Trained other = continued(before, after);
    EXPECT_EQ(whole.losses, other.losses);
    EXPECT_TRUE(whole.state == other.state);
  }
}

TEST(Stages, ExportABundleThatPredictsAsTheParts) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.device = "auto";
  options.batch = kBatch;
  options.stages = {"cpu", "cpu"};
  Learner learner(small("resnet18"), data_for("resnet18"), std::move(options));
  learner.fit(1);
  const torch::Tensor parts = learner.get_preds(Split::valid).outputs;
  learner.export_to(folder.path() / "model.tare");
  const auto loaded =
      load_learner(folder.path() / "model.tare",
                   {.test = set_for("resnet18", 12), .device = "cpu", .batch = kBatch});
  EXPECT_TRUE(torch::equal(parts, loaded->get_preds(Split::test).outputs));
}

TEST(Stages, ArePlannedForCardsThatAreNotThere) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.device = "auto";
  options.batch = kBatch;
  options.micro_batch = 2;
  options.stages = {"cpu", "cpu@layer3"};
  Learner learner(small("resnet18"), data_for("resnet18"), options);
  const MemoryPlan plan = learner.plan({.device = "cuda:8GiB", .advice = false});
  ASSERT_EQ(plan.stages.size(), 2U) << plan.reason;
  int64_t start = 0, peak = 0;
  for (const StagePlan& stage : plan.stages) {
    EXPECT_TRUE(stage.fits);
    EXPECT_EQ(stage.capacity_bytes, int64_t{8} << 30);
    EXPECT_GT(stage.peak_bytes, 0);
    EXPECT_GE(stage.reserved_bytes, stage.start_bytes + stage.peak_bytes);
    start += stage.start_bytes;
    peak += stage.peak_bytes;
  }
  EXPECT_EQ(plan.start_bytes, start);
  EXPECT_EQ(plan.peak_bytes, peak);
  EXPECT_EQ(plan.stages[1].groups, "layer3 to fc");
  EXPECT_LT(plan.stages[0].start_bytes, plan.stages[1].start_bytes);  // weights of the last layers
  EXPECT_FALSE(learner.plan({.device = "cuda:1MiB", .advice = false}).fits);
}

TEST(Stages, ArePlannedWithTheActivationsOfAllMicroBatches) {
  const TempDir folder;
  const auto peak_of = [&](int64_t micro_batch, const std::vector<std::string>& stages) {
    LearnerOptions options = quiet(folder);
    options.device = "auto";
    options.batch = kBatch;
    options.micro_batch = micro_batch;
    options.workers = 0;
    options.stages = stages;
    Learner learner(small("gpt"), {.train = set_for("gpt", 11)}, std::move(options));
    const MemoryPlan plan = learner.plan({.advice = false});
    const memory::PeakScope peak(c10::kCPU);
    learner.fit(2);
    EXPECT_EQ(plan.peak_bytes, peak.peak_above_start_bytes()) << plan.str();
    return plan.peak_bytes;
  };
  EXPECT_GT(peak_of(1, {"cpu", "cpu"}), peak_of(1, {}));
}

TEST(Stages, ExportAGraphAsTheWhole) {
  const TempDir folder;
  const auto exported = [&](const std::vector<std::string>& stages, const std::string& name) {
    LearnerOptions options = quiet(folder);
    options.device = "auto";
    options.batch = kBatch;
    options.stages = stages;
    Learner learner(small("resnet18", 0), data_for("resnet18"), std::move(options));
    learner.check_export({.format = "onnx"});
    learner.export_to(folder.path() / name, {.format = "onnx"});
    learner.fit(1);  // on its devices again
    return io::read_text(folder.path() / name);
  };
  EXPECT_EQ(exported({}, "whole.onnx"), exported({"cpu", "cpu"}, "stages.onnx"));
}

TEST(Stages, LeaveTheModelAsItWasForALearnerWithout) {
  const TempDir folder;
  Model model = small("gpt");
  const auto module = model.module();
  { const Learner learner(std::move(model), {}, in_stages(folder, {"cpu", "cpu"})); }
  const auto has_device = [&](const std::shared_ptr<torch::nn::Module>& of) {
    const auto* block = dynamic_cast<const Block*>(of.get());
    return block && block->device().has_value();
  };
  EXPECT_TRUE(std::ranges::any_of(module->modules(), has_device));
  Model again(module, [](const Batch& batch) { return Outputs(batch.input()); });
  const Learner learner(std::move(again), {}, in_stages(folder, {}));
  EXPECT_TRUE(std::ranges::none_of(module->modules(), has_device));
}

}  // namespace
}  // namespace tare::testing
