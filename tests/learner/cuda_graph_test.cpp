// Steps that a card has recorded and does again as a whole: the training is that without, callbacks
// see it, and what cannot be recorded is refused.
#include <gtest/gtest.h>

#include "contract/traits.h"
#include "learner/zoo.h"
#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/plan/plan.h"

namespace tare::testing {
namespace {

using Traits = memory::CudaTraits;

/// Notes what the events of each step show.
class Witness final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "witness"; }
  Action after_forward(FitContext& c) override { return note("forward", c, c.output().defined()); }
  Action after_loss(FitContext& c) override {
    losses.push_back(c.loss_value());
    return note("loss", c, c.loss.defined());
  }
  Action after_backward(FitContext& c) override {
    const at::Tensor& weight = c.learner.optimizer().groups().front().parameters.front().tensor;
    return note("backward", c, weight.grad().defined());
  }
  Action after_step(FitContext& c) override { return note("step", c, true); }
  std::vector<std::string> events{};
  std::vector<double> losses{};

 private:
  Action note(const char* event, const FitContext& c, bool there) {
    events.push_back(std::string(event) + ' ' + std::to_string(c.step) + ' ' +
                     std::to_string(c.micro_batch) + (there ? "" : " missing"));
    return Action::proceed;
  }
};

/// Replaces the loss, or skips steps.
class Meddler final : public Callback {
 public:
  explicit Meddler(bool skips) : skips_(skips) {}
  [[nodiscard]] std::string name() const override { return "meddler"; }
  Action after_loss(FitContext& c) override {
    if (skips_) return c.step == 3 ? Action::skip : Action::proceed;
    c.loss = c.loss * 2;
    return Action::proceed;
  }

 private:
  bool skips_;
};

/// Saves a checkpoint in one event of a step.
class SaveIn final : public Callback {
 public:
  SaveIn(Event event, int64_t step) : event_(event), step_(step) {}
  [[nodiscard]] std::string name() const override { return "save_in"; }
  Action after_forward(FitContext& c) override { return save(Event::after_forward, c); }
  Action after_loss(FitContext& c) override { return save(Event::after_loss, c); }
  Action after_backward(FitContext& c) override { return save(Event::after_backward, c); }
  Action after_step(FitContext& c) override { return save(Event::after_step, c); }
  Action after_batch(FitContext& c) override { return save(Event::after_batch, c); }

 private:
  Action save(Event event, FitContext& c) {
    if (event == event_ && ++seen_ == step_) c.learner.save("middle");
    return Action::proceed;
  }
  Event event_;
  int64_t step_, seen_ = 0;
};

struct Trained {
  std::vector<double> losses{};
  torch::Tensor weights{};
  std::vector<std::string> events{};
};

class Graphs : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto reason = Traits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    options_ = zoo_.options(folder_);
    options_.device = Traits::device().str();
    options_.workers = 0;
    options_.kernels.tf32 = false;
    options_.optimizer.lr = 1.0 / 1024;  // float32 has it without rounding
  }
  [[nodiscard]] Learner learner(bool graph) const {
    LearnerOptions options = options_;
    options.graph = graph;
    torch::manual_seed(7);
    return {zoo_.model(), {.train = zoo_.set(50, 1), .valid = zoo_.set(20, 2)}, options};
  }
  [[nodiscard]] Trained train(bool graph, const FitOptions& fit = {}) const {
    Learner made = learner(graph);
    const auto witness = std::make_shared<Witness>();
    FitOptions with = fit;
    with.callbacks.push_back(witness);
    torch::manual_seed(2);
    const FitResult result = made.fit(4, with);
    Trained trained{.weights = flat(made.model()), .events = witness->events};
    trained.losses = witness->losses;
    for (const auto& row : result.epochs)
      trained.losses.insert(trained.losses.end(), {row.train_loss, row.valid_loss});
    return trained;
  }
  /// `rounded`: the rate is, in a recorded step; else the stand-in gives the same bits.
  void expect_equal(const std::string& what, bool rounded, const FitOptions& fit = {}) const {
    const double of_rate = rounded ? 1e-4 : 0, rounding = memory::is_stand_in() ? of_rate : 1e-2;
    const Trained without = train(false, fit), with = train(true, fit);
    ASSERT_EQ(without.losses.size(), with.losses.size()) << what;
    for (size_t i = 0; i < with.losses.size(); ++i)
      EXPECT_NEAR(without.losses[i], with.losses[i], rounding * (1 + without.losses[i]))
          << what << ", loss " << i;
    EXPECT_EQ(without.events, with.events) << what;
    EXPECT_LE((without.weights - with.weights).norm().item<double>(),
              rounding * without.weights.norm().item<double>())
        << what;
  }

  TempDir folder_;
  const Zoo zoo_{GetParam()};
  LearnerOptions options_;
};

TEST_P(Graphs, TrainAsWithout) {
  for (const char* kind : {"adamw", "sgd", "adam", "lion"}) {
    options_.optimizer.kind = kind;
    expect_equal(kind, /*rounded=*/false);
    expect_equal(kind, /*rounded=*/true, {.schedule = {.kind = "cosine", .warmup = 0.3}});
  }
}

TEST_P(Graphs, TrainAsWithoutInParts) {
  options_.micro_batch = 3;
  expect_equal("parts", /*rounded=*/false);
}

TEST_P(Graphs, TrainAsWithoutUnderAScheduleOfTheMomentum) {
  expect_equal("one cycle", /*rounded=*/false, {.lr = 1e-3, .schedule = {.kind = "one_cycle"}});
}

TEST_P(Graphs, TrainAsWithoutWithClippedGradients) {
  options_.clip.norm = 0.1;
  expect_equal("clipped", /*rounded=*/false);
}

TEST_P(Graphs, AreResumedBitForBitFromEveryEvent) {
  options_.optimizer.lr = 3e-3;
  const FitOptions cosine{.schedule = {.kind = "cosine", .warmup = 0.3}};
  Learner straight = learner(true);
  torch::manual_seed(2);
  straight.fit(4, cosine);
  for (const Event event : {Event::after_forward, Event::after_loss, Event::after_backward,
                            Event::after_step, Event::after_batch}) {
    Learner saving = learner(true);
    FitOptions fit = cosine;
    fit.callbacks = {std::make_shared<SaveIn>(event, 10)};
    torch::manual_seed(2);
    saving.fit(4, fit);
    EXPECT_TRUE(torch::equal(flat(straight.model()), flat(saving.model()))) << to_string(event);
    Learner resumed = learner(true);
    resumed.load("middle");
    resumed.resume();
    if (memory::is_stand_in())
      EXPECT_TRUE(torch::equal(flat(straight.model()), flat(resumed.model()))) << to_string(event);
  }
}

TEST_P(Graphs, LeaveNoByteBehind) {
  auto& backend = memory::backend(Traits::device());
  backend.warm();
  { learner(true).fit(1); }
  backend.reclaim();
  const auto before = backend.usage();
  Learner made = learner(true);
  made.fit(4);
  made.purge();
  made.fit(4);
  made.destroy();
  backend.reclaim();
  EXPECT_EQ(backend.usage().allocated_bytes, before.allocated_bytes);
  EXPECT_EQ(backend.usage().reserved_bytes, before.reserved_bytes);
}

INSTANTIATE_TEST_SUITE_P(Zoo, Graphs, ::testing::Values("mlp", "convnet", "resnet9", "gpt"));

class GraphOption : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = Traits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    options_ = zoo_.options(folder_);
    options_.device = Traits::device().str();
    options_.graph = true;
    options_.workers = 0;
  }
  [[nodiscard]] Learner learner() const {
    return {zoo_.model(), {.train = zoo_.set(50, 1), .valid = zoo_.set(20, 2)}, options_};
  }
  void expect_refused(const std::string& part) const {
    try {
      learner().fit(2);
      ADD_FAILURE() << "not refused: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  TempDir folder_;
  const Zoo zoo_{"mlp"};
  LearnerOptions options_;
};

TEST_F(GraphOption, IsRefusedBesideWhatCannotBeRecorded) {
  options_.precision = "fp16";
  expect_refused("fp16");
  options_.precision = "fp32";
  options_.step_in_backward = true;
  expect_refused("step_in_backward");
  options_.step_in_backward = false;
  options_.recompute = {"all"};
  expect_refused("recompute");
  options_.recompute = {};
  options_.device = "cpu";
  expect_refused("needs a device that records work, which cpu does not");
}

TEST_F(GraphOption, IsRefusedForAStepThatWaitsForTheCard) {
  options_.loss = Loss(
      [](const at::Tensor& output, const at::Tensor& target) {
        const auto loss = torch::nn::functional::cross_entropy(output, target);
        return loss.item<double>() > 1e9 ? loss * 2 : loss;
      },
      "none");
  expect_refused("cannot be recorded");
  options_.loss = Loss("cross_entropy");
  EXPECT_NO_THROW(learner().fit(2));  // the card works as before
}

TEST_F(GraphOption, IsRefusedForACallbackThatChangesARecordedStep) {
  for (const bool skips : {false, true}) {
    options_.callbacks = {std::make_shared<Meddler>(skips)};
    expect_refused("changes a step which is recorded");
  }
}

/// Compares the plan with what a fit with recorded steps takes, on the stand-in without values.
class GraphPlan : public ::testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(GraphPlan, IsExact) {
  if (const auto reason = Traits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
  const auto [model, in_parts] = GetParam();
  auto& backend = memory::backend(Traits::device());
  backend.warm();
  const Zoo zoo(model);
  TempDir folder;
  LearnerOptions options = zoo.options(folder);
  options.device = Traits::device().str();
  options.graph = true;
  options.workers = 0;
  options.optimizer.kind = "adamw";
  if (in_parts) options.micro_batch = 3;
  const auto make = [&] {
    return Learner(zoo.model(), {.train = zoo.set(50, 1), .valid = zoo.set(20, 2)}, options);
  };
  { make().fit(4); }
  backend.reclaim();
  const auto start = backend.usage();
  Learner made = make();
  const MemoryPlan plan = made.plan({.advice = false});
  ASSERT_TRUE(plan.known()) << plan.reason;
  EXPECT_TRUE(plan.not_counted.empty()) << plan.str();
  backend.reclaim();
  const memory::PeakScope peak(Traits::device());
  int64_t reserved = 0;
  class Reserved final : public Callback {
   public:
    Reserved(memory::DeviceBackend& of, int64_t& most) : backend_(of), most_(most) {}
    [[nodiscard]] std::string name() const override { return "reserved"; }
    Action after_batch(FitContext&) override { return note(); }
    Action after_epoch(FitContext&) override { return note(); }

   private:
    Action note() {
      most_ = std::max(most_, backend_.usage().reserved_bytes);
      return Action::proceed;
    }
    memory::DeviceBackend& backend_;
    int64_t& most_;
  };
  made.fit(4, {.callbacks = {std::make_shared<Reserved>(backend, reserved)}});
  EXPECT_EQ(plan.peak_bytes, peak.peak_above_start_bytes()) << plan.str();
  EXPECT_EQ(plan.reserved_bytes, reserved - start.reserved_bytes) << plan.str();
}

INSTANTIATE_TEST_SUITE_P(Zoo, GraphPlan,
                         ::testing::Combine(::testing::Values("mlp_plain", "convnet_plain",
                                                              "gpt_plain", "mlp", "convnet", "gpt"),
                                            ::testing::Bool()));

}  // namespace
}  // namespace tare::testing
