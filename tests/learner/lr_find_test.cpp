// The search for a learning rate: its steps, and that it leaves the Learner as it was.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "learner/micro_batch_watch.h"
#include "learner/state.h"
#include "support/budget.h"
#include "tare/base/error.h"
#include "tare/data/loader.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/optim/torch_optimizer.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;

/// Calls a function before each loss is computed, with its number from 1.
Loss watched(std::function<void(int64_t)> watch) {
  auto calls = std::make_shared<int64_t>(0);
  return Loss(
      [calls, watch = std::move(watch)](const at::Tensor& output, const at::Tensor& target) {
        watch(++*calls);
        return torch::nn::functional::cross_entropy(output, target);
      });
}

/// What a search must leave as it was, beside State: progress, modes, memory, files.
struct Rest {
  std::vector<bool> modes{};
  std::vector<double> hyper{};
  size_t rows = 0;
  bool resumable = false;
  int64_t bytes = 0, blocks = 0, gradients = 0;
  std::vector<std::string> ledger{};
  bool operator==(const Rest&) const = default;
};

Rest rest_of(Learner& learner) {
  Rest rest{.rows = learner.history().size(), .resumable = learner.can_resume()};
  for (const auto& module : learner.model().module()->modules())
    rest.modes.push_back(module->is_training());
  for (const auto& parameter : learner.model().parameters())
    rest.gradients += parameter.tensor.grad().defined() ? 1 : 0;
  const Ledger ledger = learner.ledger();
  for (const auto& entry : ledger.entries())
    rest.ledger.push_back(entry.name + ' ' + std::to_string(entry.bytes));
  rest.bytes = tracked();
  rest.blocks = blocks();
  return rest;
}

Rest with_hyper(Learner& learner) {
  Rest rest = rest_of(learner);
  for (const auto& group : learner.optimizer().groups())
    for (const double value : {group.lr, group.momentum, group.weight_decay})
      rest.hyper.push_back(value);
  return rest;
}

struct SearchScene {
  TempDir folder;
  LearnerOptions options = quiet(folder);
  SearchScene() { options.workers = 0; }
  [[nodiscard]] Learner learner() const { return {make_net(), split_points(), options}; }
};

/// Both fit, the second after `search`; they must end equal.
template <class Search>
void expect_unnoticed(const SearchScene& s, Search&& search, int64_t epochs_before = 1) {
  Learner plain(make_net(), split_points(), s.options);
  Learner other(make_net(), split_points(), s.options);
  torch::manual_seed(3);
  if (epochs_before > 0) plain.fit(epochs_before);
  plain.fit_one_cycle(2);
  const State wanted = capture(plain);
  torch::manual_seed(3);
  if (epochs_before > 0) other.fit(epochs_before);
  search(other);
  other.fit_one_cycle(2);
  EXPECT_TRUE(capture(other) == wanted);
  ASSERT_EQ(other.history().size(), plain.history().size());
  for (size_t i = 0; i < plain.history().size(); ++i)
    EXPECT_EQ(other.history()[i].train_loss, plain.history()[i].train_loss) << i;
}

TEST(LrFind, LeavesALearnerWithAnOptimizerAsItWas) {
  SearchScene s;
  for (const char* kind : {"adamw", "sgd", "rmsprop"}) {
    SCOPED_TRACE(kind);
    s.options.optimizer = {.kind = kind};
    auto l = s.learner();
    l.fit_one_cycle(1);
    l.model().train(false);
    l.model().submodule("norm").train(true);
    const State before = capture(l);
    const Rest rest = with_hyper(l);
    const LrFindResult found = l.lr_find({.steps = 20});
    EXPECT_EQ(found.points.size(), 20U);
    EXPECT_TRUE(capture(l) == before);
    EXPECT_EQ(with_hyper(l), rest);
    EXPECT_FALSE(fs::exists(s.folder / "anything") || !fs::is_empty(s.folder.path()));
  }
}

TEST(LrFind, LeavesALearnerWithoutAnOptimizerWithoutOne) {
  SearchScene s;
  auto l = s.learner();
  const auto weights = flat(l.model());
  const Rest rest = rest_of(l);
  (void)l.lr_find({.steps = 20});
  EXPECT_EQ(rest_of(l), rest);
  EXPECT_TRUE(torch::equal(flat(l.model()), weights));
}

TEST(LrFind, IsNotNoticedByTheFitsAfterIt) {
  SearchScene s;
  for (const int64_t workers : {0, 1}) {
    s.options.workers = workers;
    for (const int64_t before : {0, 1})
      expect_unnoticed(
          s, [](Learner& l) { (void)l.lr_find({.steps = 15}); }, before);
  }
}

TEST(LrFind, KeepsTheStateOfSomeParametersAlone) {
  SearchScene s;
  auto l = s.learner();
  l.freeze_to(-1);
  l.fit(1);
  l.unfreeze();  // most parameters have no state yet
  const State before = capture(l);
  const Rest rest = with_hyper(l);
  (void)l.lr_find({.steps = 10});
  EXPECT_TRUE(capture(l) == before);
  EXPECT_EQ(with_hyper(l), rest);
}

TEST(LrFind, LeavesAllAsItWasAfterErrors) {
  SearchScene s;
  s.options.micro_batch = s.options.batch;
  auto l = s.learner();
  l.fit(1);
  const State before = capture(l);
  const Rest rest = with_hyper(l);
  int64_t refused = 0;
  for (const uint64_t k : {1U, 3U, 12U, 25U, 40U, 90U, 300U}) {
    memory::host_allocator::fail_at(k);
    try {
      (void)l.lr_find({.steps = 20});
    } catch (const OutOfMemory&) {
      ++refused;
    }
    memory::host_allocator::fail_at(0);
    EXPECT_TRUE(capture(l) == before) << k;
    EXPECT_EQ(with_hyper(l), rest) << k;
  }
  EXPECT_GE(refused, 6);
}

TEST(LrFind, LeavesAllAsItWasAfterAnErrorOfTheLoss) {
  SearchScene s;
  s.options.loss = watched([](int64_t call) {
    if (call == 30) throw std::runtime_error("the loss fails");
  });
  auto l = s.learner();
  l.fit(1);  // 6 losses and those of the validation
  const State before = capture(l);
  const Rest rest = with_hyper(l);
  EXPECT_THROW((void)l.lr_find(), std::runtime_error);
  EXPECT_TRUE(capture(l) == before);
  EXPECT_EQ(with_hyper(l), rest);
}

TEST(LrFind, EndsAtAnInterruptAndLeavesAllAsItWas) {
  SearchScene s;
  s.options.loss = watched([](int64_t call) {
    if (call == 5) request_interrupt();
  });
  auto l = s.learner();
  const Rest rest = rest_of(l);
  const LrFindResult found = l.lr_find();
  EXPECT_TRUE(found.interrupted);
  EXPECT_FALSE(found.valley);
  EXPECT_EQ(found.points.size(), 5U);
  EXPECT_FALSE(interrupt_requested());
  EXPECT_EQ(rest_of(l), rest);
}

TEST(LrFind, KeepsAnUnfinishedFitAndGradientsThatWait) {
  SearchScene s;
  struct Ask final : Callback {
    [[nodiscard]] std::string name() const override { return "ask"; }
    Action after_backward(FitContext& c) override {
      return c.batch == 1 ? Action::skip : Action::proceed;  // its gradients wait
    }
    Action after_batch(FitContext& c) override {
      if (c.epoch == 1 && c.batch == 1) request_interrupt();
      return Action::proceed;
    }
  };
  const auto run = [&](bool search) {
    auto l = s.learner();
    torch::manual_seed(3);
    const auto ask = std::make_shared<Ask>();
    EXPECT_EQ(l.fit(3, {.callbacks = {ask}}).reason, StopReason::interrupted);
    const Rest rest = with_hyper(l);
    if (search) (void)l.lr_find({.steps = 10});
    EXPECT_EQ(with_hyper(l), rest);
    EXPECT_GT(rest.gradients, 0);
    l.resume({ask});
    return capture(l);
  };
  EXPECT_TRUE(run(true) == run(false));
}

TEST(LrFind, CallsNoCallbackAndValidatesNothing) {
  SearchScene s;
  struct Count final : Callback {
    [[nodiscard]] std::string name() const override { return "count"; }
    Action before_fit(FitContext&) override { return ++calls, Action::proceed; }
    Action after_batch(FitContext&) override { return ++calls, Action::proceed; }
    int64_t calls = 0;
  };
  const auto count = std::make_shared<Count>();
  s.options.callbacks = {count};
  int64_t losses = 0;
  s.options.loss = watched([&](int64_t call) { losses = call; });
  auto l = s.learner();
  (void)l.lr_find({.steps = 20, .stop_early = false});
  EXPECT_EQ(count->calls, 0);
  EXPECT_EQ(losses, 20);
}

TEST(LrFind, EqualsALoopByHand) {
  SearchScene s;
  const auto defaults = torch::optim::SGDOptions(1).momentum(0.9);
  s.options.optimizer_factory = torch_optimizer<torch::optim::SGD>(defaults);
  auto l = s.learner();
  torch::manual_seed(5);
  const LrFindResult found = l.lr_find({.start = 1e-4, .end = 1, .steps = 30, .stop_early = false});
  ASSERT_EQ(found.points.size(), 30U);

  torch::manual_seed(1);
  Net net = Net();
  const torch::Device device(test_device());
  net->to(device);
  torch::optim::SGD optimizer(net->parameters(), defaults);
  Loader loader(split_points().train,
                {.batch = 16, .shuffle = true, .seed = s.options.seed, .training = true});
  torch::manual_seed(5);
  size_t step = 0;
  for (int64_t epoch = 0; step < 30; ++epoch) {
    loader.start(epoch);
    for (Batch batch; step < 30 && loader.next(batch); ++step) {
      const double lr = 1e-4 * std::pow(1e4, static_cast<double>(step) / 30);
      optimizer.param_groups()[0].options().set_lr(lr);
      optimizer.zero_grad();
      const auto loss = torch::nn::functional::cross_entropy(net->forward(batch.input().to(device)),
                                                             batch.target().to(device));
      loss.backward();
      optimizer.step();
      EXPECT_NEAR(found.points[step].lr / lr, 1, 1e-12);
      EXPECT_NEAR(found.points[step].loss, loss.item<float>(), 1e-6) << step;  // rates are rounded
    }
  }
}

TEST(LrFind, SuggestsARateWithWhichALearnerLearns) {
  SearchScene s;
  auto l = s.learner();
  const LrFindResult found = l.lr_find();
  ASSERT_TRUE(found.valley);
  EXPECT_GT(*found.valley, 1e-5);
  EXPECT_LT(*found.valley, 1);
  const FitResult fit = l.fit_one_cycle(5, {.max_lr = found.lr()});
  EXPECT_LT(fit.epochs.back().valid_loss, found.points.front().loss);
}

TEST(LrFind, EndsWhereTheLossIsNotANumber) {
  SearchScene s;
  s.options.loss = Loss([](const at::Tensor& output, const at::Tensor& target) {
    return torch::nn::functional::cross_entropy(output, target) *
           (output.isnan().any().item<bool>() ? NAN : 1);
  });
  s.options.optimizer = {.kind = "sgd"};
  auto l = s.learner();
  const LrFindResult found = l.lr_find({.start = 1e-2, .end = 1e30, .stop_early = false});
  EXPECT_TRUE(found.stopped_early);
  EXPECT_LT(found.points.size(), 100U);
  for (const auto& point : found.points) EXPECT_TRUE(std::isfinite(point.loss));
}

TEST(LrFind, WorksInPartsWhereMemoryIsOutAndForgetsThem) {
  at::set_num_threads(1);
  SearchScene s;
  s.options.batch = 64;
  const auto wide = [] {
    return torch::nn::Sequential(torch::nn::Linear(kFeatures, 2048), torch::nn::ReLU(),
                                 torch::nn::Linear(2048, kClasses));
  };
  Learner l(wide(), split_points(), s.options);
  std::set<int64_t> sizes;
  s.options.loss = Loss([&](const at::Tensor& output, const at::Tensor& target) {
    sizes.insert(output.size(0));
    return torch::nn::functional::cross_entropy(output, target);
  });
  Learner limited(wide(), split_points(), s.options);
  const int64_t bytes = tracked();
  {
    const memory::PeakScope scope(c10::kCPU);
    (void)limited.lr_find({.steps = 6});
    EXPECT_FALSE(sizes.contains(32)) << "whole batches, of 64 and 26";
    const BudgetScope budget(bytes + scope.peak_above_start_bytes() - (int64_t{400} << 10));
    EXPECT_EQ(limited.lr_find({.steps = 6}).points.size(), 6U);
  }
  EXPECT_TRUE(sizes.contains(32)) << "parts of a batch";
  EXPECT_EQ(tracked(), bytes);
  sizes.clear();
  limited.fit(1);
  EXPECT_FALSE(sizes.contains(32)) << "the fit begins with whole batches";
}

TEST(LrFind, ListsItsCopies) {
  SearchScene s;
  Learner* learner = nullptr;
  int64_t copies = 0, listed = 0, allocated = 0;
  s.options.loss = watched([&](int64_t call) {
    if (!learner || call != 3) return;
    const Ledger ledger = learner->ledger();
    for (const auto& entry : ledger.entries())
      if (entry.name.starts_with("set aside")) copies += entry.bytes;
    listed = ledger.bytes(c10::kCPU).total();
    allocated = tracked();
  });
  auto l = s.learner();
  learner = &l;
  int64_t weights = 0;
  for (const auto& [name, tensor] : l.model().state())
    weights += static_cast<int64_t>(tensor.nbytes());
  (void)l.lr_find({.steps = 6});
  EXPECT_EQ(copies, weights);
  EXPECT_GT(listed, 2 * weights);
  EXPECT_LE(listed, allocated);
}

TEST(LrFind, SeveralOptimizersKeepTheirRatio) {
  SearchScene s;
  s.options.optimizers = {
      {.name = "body", .parameters = {"first", "norm", "second"}, .options = {.lr = 1e-2}},
      {.name = "head", .parameters = {"head"}, .options = {.kind = "sgd", .lr = 1e-1}}};
  Learner* learner = nullptr;
  std::vector<double> ratios, rates;
  s.options.loss = watched([&](int64_t) {
    if (!learner) return;
    const double body = learner->optimizer("body").groups().front().lr;
    rates.push_back(body);
    ratios.push_back(learner->optimizer("head").groups().front().lr / body);
  });
  auto l = s.learner();
  l.fit(1);
  const State before = capture(l);
  const double of_head = l.optimizer("head").groups().front().lr;
  learner = &l;
  const LrFindResult found = l.lr_find({.start = 1e-5, .end = 1e-2, .steps = 12});
  ASSERT_EQ(found.points.size(), 12U);
  ASSERT_EQ(rates.size(), 12U);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(ratios[i], 10, 1e-9);
    EXPECT_NEAR(found.points[i].lr / rates[i], 1, 1e-9);
    EXPECT_NEAR(rates[i], 1e-5 * std::pow(1e3, static_cast<double>(i) / 12), 1e-9);
  }
  EXPECT_TRUE(capture(l) == before);
  EXPECT_EQ(l.optimizer("head").groups().front().lr, of_head);
}

TEST(LrFind, TakesPrecisionAndClipping) {
  for (const char* precision : {"bf16", "bf16-true"}) {
    SearchScene s;
    s.options.precision = precision;
    s.options.clip = {.norm = 0.5};
    auto l = s.learner();
    l.fit(1);
    const State before = capture(l);
    EXPECT_EQ(l.lr_find({.steps = 8}).points.size(), 8U) << precision;
    EXPECT_TRUE(capture(l) == before) << precision;
  }
}

TEST(LrFind, RefusesWhatAFitRefuses) {
  SearchScene s;
  auto l = s.learner();
  EXPECT_THROW((void)l.lr_find({.steps = 2}), ConfigError);
  EXPECT_THROW((void)l.lr_find({.start = 1, .end = 0.5}), ConfigError);
  Learner no_data(make_net(), {}, s.options);
  EXPECT_THROW((void)no_data.lr_find(), StateError);
  s.options.batch = 1000;
  auto large = s.learner();
  EXPECT_THROW((void)large.lr_find(), ConfigError);
  struct Search final : Callback {
    explicit Search(Learner& l) : learner(l) {}
    [[nodiscard]] std::string name() const override { return "search"; }
    Action after_step(FitContext&) override { return (void)learner.lr_find(), Action::proceed; }
    Learner& learner;
  };
  EXPECT_THROW(l.fit(1, {.callbacks = {std::make_shared<Search>(l)}}), StateError);
  l.destroy();
  EXPECT_THROW((void)l.lr_find(), StateError);
}

TEST(FitWithASearch, EqualsASearchAndAFitWithItsRate) {
  SearchScene s;
  Learner by_hand(make_net(), split_points(), s.options);
  torch::manual_seed(3);
  const LrFindResult found = by_hand.lr_find();
  const FitResult wanted = by_hand.fit_one_cycle(2, {.max_lr = found.lr()});
  EXPECT_FALSE(wanted.lr_find);
  auto l = s.learner();
  torch::manual_seed(3);
  const FitResult fit = l.fit_one_cycle(2, {.max_lr = LrFindOptions{}});
  ASSERT_TRUE(fit.lr_find);
  EXPECT_EQ(fit.lr_find->lr(), found.lr());
  EXPECT_TRUE(capture(l) == capture(by_hand));
  EXPECT_EQ(fit.epochs.size(), 2U);
}

TEST(FitWithASearch, ThrowsWithoutASuggestion) {
  SearchScene s;
  s.options.loss =
      Loss([n = std::make_shared<double>(1)](const at::Tensor& output, const at::Tensor&) {
        return output.sum() * 0 + (*n += 1);
      });
  auto l = s.learner();
  EXPECT_THROW(l.fit(1, {.lr = LrFindOptions{.stop_early = false}}), StateError);
  EXPECT_FALSE(l.can_resume());
}

TEST(FitWithASearch, IsResumedWithoutAnotherSearchOrAtTheSearch) {
  SearchScene s;
  int64_t stop_at = 0, losses = 0;
  s.options.loss = watched([&](int64_t) {
    if (++losses == stop_at) request_interrupt();
  });
  auto straight = s.learner();
  torch::manual_seed(3);
  const FitResult wanted = straight.fit_one_cycle(2, {.max_lr = LrFindOptions{.steps = 20}});
  for (const int64_t at : {5, 24}) {  // in the search, and in the fit behind it
    losses = 0;
    stop_at = at;
    auto first = s.learner();
    torch::manual_seed(3);
    const FitResult begun = first.fit_one_cycle(2, {.max_lr = LrFindOptions{.steps = 20}});
    EXPECT_EQ(begun.reason, StopReason::interrupted) << at;
    first.save("here");
    auto l = s.learner();
    EXPECT_TRUE(l.load("here").resumable) << at;
    losses = 0;
    stop_at = 0;
    const FitResult rest = l.resume();
    ASSERT_TRUE(rest.lr_find) << at;
    EXPECT_EQ(rest.lr_find->lr(), wanted.lr_find->lr()) << at;
    EXPECT_EQ(rest.lr_find->points.size(), wanted.lr_find->points.size()) << at;
    EXPECT_EQ(rest.epochs.size(), 2U) << at;
    EXPECT_TRUE(capture(l) == capture(straight)) << at;
    if (at > 20) {
      EXPECT_LT(losses, 12 + 2 * 2) << "no search again";
    }
  }
}

}  // namespace
}  // namespace tare::testing
