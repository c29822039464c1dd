// A Learner with several optimizers: turns of a GAN, and optimizers that step together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "learner/micro_batch_watch.h"
#include "learner/state.h"
#include "support/budget.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kNoise = 4;

struct GanImpl : torch::nn::Module {
  GanImpl() {
    generator = register_module(
        "generator", torch::nn::Sequential(torch::nn::Linear(kNoise, 32), torch::nn::ReLU(),
                                           torch::nn::Linear(32, kFeatures)));
    critic = register_module(
        "critic", torch::nn::Sequential(torch::nn::Linear(kFeatures, 32), torch::nn::ReLU(),
                                        torch::nn::Linear(32, 1)));
  }
  torch::Tensor forward(const torch::Tensor& x) { return critic->forward(x); }
  torch::Tensor made(const torch::Tensor& like) {
    return generator->forward(torch::randn({like.size(0), kNoise}, like.options()));
  }
  torch::Tensor critic_loss(const torch::Tensor& real) {
    return torch::softplus(-forward(real)).mean() + torch::softplus(forward(made(real))).mean();
  }
  torch::Tensor generator_loss(const torch::Tensor& real) {
    return torch::softplus(-forward(made(real))).mean();
  }
  torch::nn::Sequential generator{nullptr}, critic{nullptr};
};
TORCH_MODULE(Gan);

GanImpl& gan(Model& model) { return dynamic_cast<GanImpl&>(*model.module()); }

Model make_gan(uint64_t seed = 1) {
  static const bool added = [] {
    models::add("test_gan", [](int64_t) { return Model(Gan()); });
    return true;
  }();
  static_cast<void>(added);
  torch::manual_seed(seed);
  return models::make("test_gan");
}

StepResult critic_step(Model& model, const Batch& batch) {
  return {gan(model).critic_loss(batch.input()), {}};
}
StepResult generator_step(Model& model, const Batch& batch) {
  return {gan(model).generator_loss(batch.input()), {}};
}

// Rates whose ratio is exact.
const OptimizerOptions kCritic{.kind = "sgd", .lr = 0.125, .weight_decay = 0, .momentum = 0.5};
const OptimizerOptions kGenerator{.kind = "adamw", .lr = 0.0625};

LearnerOptions gan_options(const TempDir& folder) {
  LearnerOptions options = quiet(folder);
  options.metrics = {};
  options.shuffle = false;
  options.workers = 0;
  options.optimizers = {{.name = "generator", .parameters = {"generator"}, .options = kGenerator},
                        {.name = "critic", .parameters = {"critic"}, .options = kCritic}};
  options.task = {.step = critic_step,
                  .turns = {{"critic", critic_step}, {"generator", generator_step}}};
  return options;
}

TEST(SeveralOptimizers, TheirTurnsEqualALoopByHand) {
  const TempDir folder;
  const DatasetPtr data = points(90, 11);
  Learner learner(make_gan(), {.train = data}, gan_options(folder));
  torch::manual_seed(7);
  learner.fit(2);

  Model model = make_gan();
  auto groups = make_groups_by_optimizer(model, gan_options(folder).optimizers);
  std::vector<ParameterGroup> of_generator, of_critic;
  for (auto& group : groups)
    (group.optimizer == "generator" ? of_generator : of_critic).push_back(group);
  const auto generator = make_optimizer(kGenerator, of_generator);
  const auto critic = make_optimizer(kCritic, of_critic);
  model.train(true);
  torch::manual_seed(7);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int64_t first = 0; first < 90; first += 16) {
      std::vector<int64_t> indices;
      for (int64_t i = first; i < std::min<int64_t>(90, first + 16); ++i) indices.push_back(i);
      const Batch batch = data->get({.indices = indices});
      for (Optimizer* one : {critic.get(), generator.get()}) {
        critic->zero_grad();
        generator->zero_grad();
        (one == critic.get() ? critic_step : generator_step)(model, batch).loss.backward();
        one->step();
      }
    }
  }
  EXPECT_TRUE(torch::equal(flat(learner.model()), flat(model)));
  EXPECT_EQ(learner.optimizer("critic").kind(), "sgd");
  EXPECT_EQ(learner.optimizer().kind(), "generator: adamw, critic: sgd");
}

struct SaveOnce final : Callback {
  explicit SaveOnce(Event e) : event(e) {}
  [[nodiscard]] std::string name() const override { return "save_once"; }
  Action note(Event now, FitContext& c) {
    if (now == event && c.batch == 3 && c.epoch == 0 && seen++ == 0) c.learner.save("middle");
    return Action::proceed;
  }
  Action before_batch(FitContext& c) override { return note(Event::before_batch, c); }
  Action after_loss(FitContext& c) override { return note(Event::after_loss, c); }
  Action after_step(FitContext& c) override { return note(Event::after_step, c); }
  Action after_batch(FitContext& c) override { return note(Event::after_batch, c); }
  Event event;
  int seen = 0;
};

class SavedInATurn : public ::testing::TestWithParam<Event> {};
INSTANTIATE_TEST_SUITE_P(Events, SavedInATurn,
                         ::testing::Values(Event::before_batch, Event::after_loss,
                                           Event::after_step, Event::after_batch),
                         [](const auto& event) { return std::string(to_string(event.param)); });

// after_step is seen first between the two turns of a batch.
TEST_P(SavedInATurn, ContinuesBitForBit) {
  const TempDir folder;
  Learner straight(make_gan(), split_points(), gan_options(folder));
  torch::manual_seed(9);
  const auto whole = straight.fit(2, {.callbacks = {std::make_shared<SaveOnce>(GetParam())}});
  Learner fresh(make_gan(77), split_points(), gan_options(folder));
  torch::manual_seed(1234);
  ASSERT_TRUE(fresh.load("middle").resumable);
  const auto rest = fresh.resume();
  EXPECT_TRUE(capture(straight) == capture(fresh));
  EXPECT_EQ(rest.epochs.back().train_loss, whole.epochs.back().train_loss);
}

TEST(SeveralOptimizers, ATurnThatFailsIsRepeatedAloneByResume) {
  const TempDir folder;
  Learner straight(make_gan(), split_points(), gan_options(folder));
  torch::manual_seed(9);
  straight.fit(2);
  LearnerOptions options = gan_options(folder);
  int calls = 0;
  options.task.turns[1].step = [&calls](Model& model, const Batch& batch) {
    StepResult result = generator_step(model, batch);
    if (++calls == 4) throw std::runtime_error("planted");
    return result;
  };
  Learner learner(make_gan(), split_points(), options);
  torch::manual_seed(9);
  EXPECT_THROW(learner.fit(2), std::runtime_error);
  for (const auto& parameter : learner.model().parameters()) {
    EXPECT_TRUE(parameter.tensor.requires_grad()) << parameter.name;
    EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
  }
  learner.save("failed");
  learner.resume();
  EXPECT_TRUE(capture(straight) == capture(learner));
  Learner other(make_gan(5), split_points(), gan_options(folder));
  ASSERT_TRUE(other.load("failed").resumable);
  other.resume();
  EXPECT_TRUE(capture(straight) == capture(other));
}

void expect_fit_as_planned(Learner& learner, const std::string& state) {
  const MemoryPlan plan = learner.plan({.advice = false});
  ASSERT_TRUE(plan.known()) << plan.reason;
  const memory::PeakScope scope(c10::kCPU);
  learner.fit(1);
  EXPECT_EQ(plan.peak_bytes, scope.peak_above_start_bytes()) << state << ": " << plan.str();
}

TEST(SeveralOptimizers, ArePlannedToTheByte) {
  const TempDir folder;
  LearnerOptions options = gan_options(folder);
  Learner whole(make_gan(), split_points(), options);
  expect_fit_as_planned(whole, "new");
  expect_fit_as_planned(whole, "with optimizer state");
  whole.purge();
  expect_fit_as_planned(whole, "purged");
  options.micro_batch = 5;
  Learner cut(make_gan(), split_points(), options);
  expect_fit_as_planned(cut, "in parts");
}

// The loss without noise, so that parts of a batch see what the whole batch sees.
Task still_task() {
  const auto made = [](Model& model, const Batch& batch) {
    return gan(model).generator->forward(batch.input().narrow(1, 0, kNoise));
  };
  const auto critic = [made](Model& model, const Batch& batch) -> StepResult {
    return {torch::softplus(-model.forward(batch.input())).mean() +
                torch::softplus(model.forward(made(model, batch))).mean(),
            {}};
  };
  const auto generator = [made](Model& model, const Batch& batch) -> StepResult {
    return {torch::softplus(-model.forward(made(model, batch))).mean(), {}};
  };
  return {.step = critic, .turns = {{"critic", critic}, {"generator", generator}}};
}

// Both by SGD: Adam makes whole steps of what is but rounding.
LearnerOptions still_options(const TempDir& folder, int64_t batch) {
  LearnerOptions options = gan_options(folder);
  options.batch = batch;
  options.task = still_task();
  options.optimizers[0].options = kCritic;
  return options;
}

TEST(SeveralOptimizers, ABudgetCutsTheBatchOfEachTurn) {
  const TempDir folder;
  LearnerOptions options = still_options(folder, 4096);
  const Splits data{.train = points(8192, 11)};
  Learner free(make_gan(), data, options);
  const auto watch = std::make_shared<Watch>();
  options.callbacks = {watch};
  Learner tight(make_gan(), data, options);
  const int64_t peak = free.plan({.advice = false}).peak_bytes;
  free.fit(1);
  const BudgetScope budget(peak * 7 / 10);
  EXPECT_EQ(tight.fit(1).reason, StopReason::finished);
  EXPECT_FALSE(watch->changes.empty());
  EXPECT_TRUE(torch::allclose(flat(free.model()), flat(tight.model()), 1e-3, 1e-4));
}

TEST(SeveralOptimizers, AnAllocationThatFailsInAnyTurnRepeatsThatTurnAlone) {
  const TempDir folder;
  const Splits data{.train = points(128, 11)};
  Learner free(make_gan(), data, still_options(folder, 64));
  free.fit(1);
  size_t changes = 0;
  for (uint64_t k = 1; k < 120; k += 7) {
    LearnerOptions options = still_options(folder, 64);
    const auto watch = std::make_shared<Watch>(k);
    options.callbacks = {watch};
    Learner learner(make_gan(), data, options);
    EXPECT_EQ(learner.fit(1).steps, 2) << k;
    EXPECT_TRUE(torch::allclose(flat(free.model()), flat(learner.model()), 1e-4, 1e-5)) << k;
    changes += watch->changes.size();
  }
  EXPECT_GT(changes, 3U);
}

struct Seen final : Callback {
  [[nodiscard]] std::string name() const override { return "seen"; }
  Action before_batch(FitContext& c) override { return note("before", c); }
  Action after_loss(FitContext& c) override { return note("loss", c); }
  Action after_step(FitContext& c) override { return note("step", c); }
  Action after_batch(FitContext& c) override { return note("after", c); }
  Action note(const std::string& event, const FitContext& c) {
    if (c.batch == 1)
      text += event + std::to_string(c.turn) + "/" + std::to_string(c.turns) + "@" +
              std::to_string(c.step) + " ";
    return event == "loss" && c.turn == skipped ? Action::skip : Action::proceed;
  }
  int64_t skipped = -1;
  std::string text{};
};

TEST(SeveralOptimizers, CallbacksSeeEachTurnAndMaySkipOne) {
  const TempDir folder;
  LearnerOptions options = gan_options(folder);
  const auto seen = std::make_shared<Seen>();
  options.callbacks = {seen};
  Learner learner(make_gan(), {.train = points(32, 11)}, options);
  EXPECT_EQ(learner.fit(1).steps, 2);
  EXPECT_EQ(seen->text, "before0/2@1 loss0/2@1 step0/2@1 loss1/2@1 step1/2@2 after1/2@2 ");
  seen->skipped = 0;
  const auto critic = gan(learner.model()).critic->parameters().front().clone();
  const auto generator = gan(learner.model()).generator->parameters().front().clone();
  learner.fit(1);
  EXPECT_TRUE(torch::equal(critic, gan(learner.model()).critic->parameters().front()));
  EXPECT_FALSE(torch::equal(generator, gan(learner.model()).generator->parameters().front()));
}

TEST(SeveralOptimizers, PurgeKeepsOrFreesTheStateOfAll) {
  const TempDir folder;
  Learner learner(make_gan(), split_points(), gan_options(folder));
  learner.fit(1);
  std::set<std::string> of;
  for (const auto& entry : learner.optimizer().state())
    of.insert(entry.name.substr(0, entry.name.find('/')));
  EXPECT_EQ(of, (std::set<std::string>{"critic", "generator"}));
  EXPECT_EQ(learner.purge(false).freed[Category::optimizer], 0);
  const int64_t bytes = learner.ledger().bytes(c10::kCPU)[Category::optimizer];
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(learner.purge().freed[Category::optimizer], bytes);
  EXPECT_TRUE(learner.optimizer().state().empty());
}

TEST(SeveralOptimizers, AStateThatDoesNotFitChangesNone) {
  const TempDir folder;
  Learner one(make_gan(), split_points(), gan_options(folder)),
      other(make_gan(), split_points(), gan_options(folder));
  one.fit(1);
  other.fit(2);
  auto damaged = one.optimizer().state();
  damaged.back().tensor = torch::zeros({3, 3, 3});  // of the critic, which is loaded last
  const State before = capture(other);
  EXPECT_ANY_THROW((void)other.optimizer().load_state(damaged));
  EXPECT_TRUE(before == capture(other));
  damaged.back() = {"exp_avg/critic.0.weight", torch::zeros({3})};
  try {
    (void)other.optimizer().load_state(damaged);
    FAIL() << "the state of a single optimizer was accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the state is of one optimizer without a name"));
  }
}

std::map<std::string, at::Tensor> states_by_name(Learner& learner) {
  std::map<std::string, at::Tensor> all;
  for (const NamedTensor& entry : learner.optimizer().state()) all[entry.name] = entry.tensor;
  return all;
}

TEST(SeveralOptimizers, StatesAreLoadedByNameInAnyOrder) {
  const TempDir folder;
  LearnerOptions options = gan_options(folder);
  Learner one(make_gan(), split_points(), options);
  one.fit(1);
  one.save("whole");
  std::ranges::reverse(options.optimizers);
  Learner other(make_gan(2), split_points(), options);
  const LoadReport report = other.load("whole");
  EXPECT_TRUE(report.optimizer_loaded && report.optimizer_fresh.empty()) << report.str();
  const auto saved = states_by_name(one), loaded = states_by_name(other);
  ASSERT_EQ(saved.size(), loaded.size());
  for (const auto& [name, tensor] : saved)
    EXPECT_TRUE(torch::equal(tensor, loaded.at(name))) << name;
}

/// Returns the error of loading a checkpoint of a fit with gan_options(), after `change` of the
/// options.
std::string load_refusal(const std::string& name,
                         const std::function<void(LearnerOptions&)>& change) {
  const TempDir folder;
  LearnerOptions options = gan_options(folder);
  Learner(make_gan(), split_points(), options)
      .fit(1, {.callbacks = {std::make_shared<SaveOnce>(Event::after_step)}});
  Learner one(make_gan(), split_points(), options);
  one.fit(1);
  one.save("whole");
  change(options);
  Learner other(make_gan(2), split_points(), options);
  const State before = capture(other);
  try {
    other.load(name);
    if (other.can_resume()) other.resume();
  } catch (const ConfigError& error) {
    EXPECT_TRUE(name != "whole" || before == capture(other)) << "something has changed";
    return error.what();
  }
  return "accepted";
}

TEST(SeveralOptimizers, OtherNamesAreRefusedWithBothLists) {
  EXPECT_EQ(load_refusal("whole", [](auto&) {}), "accepted");
  EXPECT_THAT(
      load_refusal("whole",
                   [](auto& o) { o.optimizers[1].name = o.task.turns[0].optimizer = "judge"; }),
      HasSubstr("the state is of the optimizers critic, generator, the present ones are "
                "generator, judge; load without the optimizer"));
  EXPECT_THAT(load_refusal("whole",
                           [](auto& o) {
                             o.optimizers.clear();
                             o.task.turns.clear();
                           }),
              HasSubstr("is not state of 'adamw'"));
  EXPECT_THAT(
      load_refusal("whole", [](auto& o) { std::swap(o.optimizers[0].name, o.optimizers[1].name); }),
      AllOf(HasSubstr("the state of critic.0.bias is of the optimizer critic, and here the "
                      "parameter belongs to generator"),
            HasSubstr("load without the optimizer")));
}

TEST(SeveralOptimizers, AStateOfOneIsRefusedBySeveral) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  Learner one(make_net(), split_points(), options);
  one.fit(1);
  one.save("whole");
  options.optimizers = {{.name = "body", .parameters = {"first", "norm", "second"}},
                        {.name = "head", .parameters = {"head"}}};
  Learner two(make_net(), split_points(), options);
  EXPECT_THAT(outcome_of([&] { two.load("whole"); }),
              HasSubstr("the state is of one optimizer without a name, the present ones are body, "
                        "head"));
}

// The rates of a fit are those of the first optimizer, and its position counts the turns.
TEST(SeveralOptimizers, AFitIsResumedInTheOrderThatItHad) {
  EXPECT_EQ(load_refusal("middle", [](auto&) {}), "accepted");
  EXPECT_THAT(load_refusal("middle", [](auto& o) { std::ranges::reverse(o.optimizers); }),
              AllOf(HasSubstr("[learner.resume] the fit to resume has the optimizers generator, "
                              "critic, this Learner has the optimizers critic, generator"),
                    HasSubstr("give them in that of the fit")));
  EXPECT_THAT(load_refusal("middle", [](auto& o) { std::ranges::reverse(o.task.turns); }),
              HasSubstr("has the turns critic, generator, this Learner has the turns generator, "
                        "critic"));
}

TEST(SeveralOptimizers, HaveRatesAndSchedulesOfTheirOwn) {
  const TempDir folder;
  LearnerOptions options = gan_options(folder);
  options.optimizers[0].schedule = Schedule{.kind = "constant"};
  struct Rates final : Callback {
    [[nodiscard]] std::string name() const override { return "rates"; }
    Action after_batch(FitContext& c) override {
      critic.push_back(c.learner.optimizer().groups().back().lr);
      generator.push_back(c.learner.optimizer().groups().front().lr);
      return Action::proceed;
    }
    std::vector<double> generator, critic;
  };
  const auto rates = std::make_shared<Rates>();
  Learner learner(make_gan(), split_points(), options);
  learner.fit(1, {.lr = 0.03125, .schedule = {.kind = "linear"}, .callbacks = {rates}});
  EXPECT_EQ(rates->generator.front(), 0.03125) << "the rate of the call";
  EXPECT_EQ(rates->generator.back(), 0.03125) << "its own schedule";
  EXPECT_EQ(rates->critic.front(), 0.0625) << "twice that of the first optimizer, as it was made";
  EXPECT_LT(rates->critic.back(), 0.03125) << "the schedule of the call";
  EXPECT_EQ(learner.optimizer("critic").groups().back().lr, rates->critic.back());
}

TEST(SeveralOptimizers, WithoutTurnsStepTogetherAsOneDoes) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  Learner one(make_net(), split_points(), options);
  options.optimizers = {{.name = "body", .parameters = {"first", "norm", "second"}},
                        {.name = "head", .parameters = {"head.weight", "head.bias"}}};
  Learner two(make_net(), split_points(), options);
  for (Learner* learner : {&one, &two}) {
    torch::manual_seed(9);
    learner->fit_one_cycle(2, {.max_lr = 0.01});
  }
  EXPECT_TRUE(torch::equal(flat(one.model()), flat(two.model())));
}

TEST(SeveralOptimizers, AreRefusedWithTheNamesOfWhatIsWrong) {
  const TempDir folder;
  const auto refusal = [&](const std::function<void(LearnerOptions&)>& change) -> std::string {
    LearnerOptions options = gan_options(folder);
    change(options);
    try {
      const Learner learner(make_gan(), split_points(), options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_THAT(refusal([](auto& o) {
                o.optimizers.pop_back();
                o.task.turns.pop_back();
              }),
              AllOf(HasSubstr("none of the optimizers generator"), HasSubstr("critic.0.weight")));
  EXPECT_THAT(refusal([](auto& o) { o.optimizers[0].parameters.push_back("critic.0"); }),
              AllOf(HasSubstr("critic.0.weight"), HasSubstr("several optimizers")));
  EXPECT_THAT(refusal([](auto& o) { o.optimizers[0].parameters = {"generater"}; }),
              HasSubstr("names 'generater', which no parameter of the model has"));
  EXPECT_THAT(refusal([](auto& o) { o.optimizers[0].parameters.clear(); }),
              HasSubstr("'generator' has no parameters"));
  EXPECT_THAT(refusal([](auto& o) { o.optimizers[1].name = "generator"; }),
              HasSubstr("two optimizers are named 'generator'"));
  EXPECT_THAT(refusal([](auto& o) { o.optimizers[1].name = "a/b"; }), HasSubstr("'a/b'"));
  EXPECT_THAT(refusal([](auto& o) { o.optimizers[1].options.lr = 0; }),
              HasSubstr("lr must be > 0"));
  EXPECT_THAT(refusal([](auto& o) { o.task.turns[0].optimizer = "critics"; }),
              HasSubstr("did you mean \"critic\"?"));
  EXPECT_THAT(refusal([](auto& o) { o.task.turns[0].step = {}; }), HasSubstr("has no step"));
  EXPECT_THAT(refusal([](auto& o) { o.task.step = {}; }), HasSubstr("give a step for validation"));
  EXPECT_THAT(refusal([](auto& o) { o.optimizers.clear(); }), HasSubstr("the task has turns"));
  EXPECT_THAT(refusal([](auto& o) { o.step_in_backward = true; }), HasSubstr("one optimizer"));
  EXPECT_THAT(refusal([](auto& o) {
                o.optimizer_factory = [](std::vector<ParameterGroup> groups) {
                  return make_optimizer({}, std::move(groups));
                };
              }),
              HasSubstr("NamedOptimizer::factory"));

  EXPECT_THAT(refusal([](auto& o) { o.optimizer.lr = 0.5; }),
              HasSubstr("optimizer is without effect beside optimizers"));

  Learner learner(make_gan(), split_points(), gan_options(folder));
  EXPECT_THROW((void)learner.optimizer("nobody"), ConfigError);
  learner.freeze_to(1);  // the generator, which is the first layer group
  EXPECT_THROW(learner.fit(1), StateError);
  learner.unfreeze();
  learner.fit(1);
}

}  // namespace
}  // namespace tare::testing
