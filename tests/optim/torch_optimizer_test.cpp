// Optimizers of torch::optim against loops written by hand.
#include "tare/optim/torch_optimizer.h"

#include <gmock/gmock.h>

#include "optim/support.h"
#include "tare/base/error.h"

namespace tare {
namespace {

using testing::backward;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kSteps;
using testing::make_net;
using testing::Net;
using testing::train;
using torch::optim::OptimizerParamGroup;

// One way to make each known class by hand and wrapped.
struct Case {
  std::string kind;
  OptimizerFactory wrapped;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)> by_hand;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kind; }

template <class Concrete, class Options>
Case make_case(const std::string& kind, const Options& options) {
  return {kind, torch_optimizer<Concrete>(options), [options](std::vector<torch::Tensor> p) {
            return std::make_unique<Concrete>(std::move(p), options);
          }};
}

std::vector<Case> cases() {
  using namespace torch::optim;  // NOLINT: names of five classes
  return {make_case<SGD>("torch.sgd", SGDOptions(0.05).momentum(0.9).weight_decay(1e-3)),
          make_case<torch::optim::Adam>("torch.adam",
                                        AdamOptions(1e-2).weight_decay(1e-3).amsgrad(true)),
          make_case<torch::optim::AdamW>("torch.adamw", AdamWOptions(1e-2)),
          make_case<RMSprop>("torch.rmsprop", RMSpropOptions(1e-3).momentum(0.5).centered(true)),
          make_case<Adagrad>("torch.adagrad", AdagradOptions(1e-2).initial_accumulator_value(0.1))};
}

class Torch : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Optimizer> make(Net& net) const {
    return GetParam().wrapped(make_groups(Model(net), {}));
  }
};

TEST_P(Torch, EqualsAHandWrittenLoopToTheLastBit) {
  Net a = make_net(), b = make_net();
  const auto wrapped = make(a);
  EXPECT_EQ(wrapped->kind(), GetParam().kind);
  const auto by_hand = GetParam().by_hand(b->parameters());
  for (int64_t i = 0; i < kSteps; ++i) {
    wrapped->zero_grad();
    const double loss = backward(a, i);
    wrapped->step();
    by_hand->zero_grad();
    ASSERT_EQ(backward(b, i), loss) << "step " << i;
    by_hand->step();
  }
  EXPECT_EQ(testing::largest_difference(a, b), 0);
}

TEST_P(Torch, RestoredRunEqualsTheStraightOne) {
  Net straight = make_net(), resumed = make_net();
  const auto first = make(straight), second = make(resumed);
  train(straight, *first, 5);
  train(resumed, *second, 5);
  auto saved = first->state();
  ASSERT_FALSE(saved.empty());
  for (auto& entry : saved) entry.tensor = entry.tensor.clone();
  second->clear();
  EXPECT_THAT(second->load_state(saved), IsEmpty());
  train(straight, *first, 5, 5);
  train(resumed, *second, 5, 5);
  EXPECT_EQ(testing::largest_difference(straight, resumed), 0);
}

TEST_P(Torch, ClearDropsTheStateAndKeepsTheRates) {
  Net net = make_net();
  const auto optimizer = make(net);
  optimizer->groups()[0].lr = 0.125;
  train(net, *optimizer, 2);
  optimizer->clear();
  EXPECT_THAT(optimizer->state(), IsEmpty());
  EXPECT_EQ(optimizer->groups()[0].lr, 0.125);
  train(net, *optimizer, 1);
  EXPECT_EQ(static_cast<TorchOptimizer&>(*optimizer).torch().param_groups()[0].options().get_lr(),
            0.125);
}

TEST_P(Torch, FreezingKeepsWhatStaysAndFreesTheRest) {
  Net net = make_net();
  const auto optimizer = make(net);
  train(net, *optimizer, 2);
  for (auto& p : net->conv->parameters()) p.set_requires_grad(false);
  const StateChange change = optimizer->set_groups(make_groups(Model(net), {}));
  EXPECT_EQ(change.kept, 4);
  EXPECT_EQ(change.fresh, 0);
  EXPECT_EQ(change.freed, 2);
  EXPECT_GE(change.freed_bytes, static_cast<int64_t>(sizeof(float)) * (4 * 2 * 9 + 4));
  for (const auto& entry : optimizer->state()) {
    EXPECT_EQ(entry.name.find("conv"), std::string::npos);
    if (entry.name.starts_with("step/")) {
      EXPECT_EQ(entry.tensor.item<float>(), 2);
    }
  }
}

TEST_P(Torch, AccountsForTheTensorsOfItsState) {
  Net net = make_net();
  const auto optimizer = make(net);
  train(net, *optimizer, 1);
  int64_t bytes = 0;
  for (const auto& entry : optimizer->state()) {
    if (!entry.name.starts_with("step/"))
      bytes += static_cast<int64_t>(entry.tensor.storage().nbytes());
  }
  Ledger ledger;
  optimizer->account(ledger);
  EXPECT_EQ(ledger.bytes()[Category::optimizer], bytes);
}

TEST_P(Torch, LoadingWhatDoesNotFitChangesNothing) {
  Net net = make_net();
  const auto optimizer = make(net);
  train(net, *optimizer, 1);
  const size_t before = optimizer->state().size();
  auto wrong = optimizer->state();
  wrong.front().tensor = torch::zeros({99});
  EXPECT_THROW((void)optimizer->load_state(wrong), ShapeError);
  EXPECT_THROW((void)optimizer->load_state({{"nothing/fc.bias", torch::zeros({3})}}), ConfigError);
  EXPECT_EQ(optimizer->state().size(), before);
}

INSTANTIATE_TEST_SUITE_P(Classes, Torch, ::testing::ValuesIn(cases()));

TEST(TorchOptimizer, OptionsOfTheGroupsGoBothWays) {
  Net net = make_net();
  const auto options = torch::optim::AdamWOptions(0.5).betas({0.75, 0.5}).weight_decay(0.25);
  const auto optimizer = torch_optimizer<torch::optim::AdamW>(options)(make_groups(Model(net), {}));
  ASSERT_EQ(optimizer->groups().size(), 5u);
  auto& group = optimizer->groups()[1];
  EXPECT_EQ(group.lr, 0.5);
  EXPECT_EQ(group.momentum, 0.75);
  EXPECT_EQ(group.weight_decay, 0.25);
  group.lr = 0.125;
  group.momentum = 0.625;
  group.weight_decay = 0;
  train(net, *optimizer, 1);
  auto& made = static_cast<torch::optim::AdamWOptions&>(
      static_cast<TorchOptimizer&>(*optimizer).torch().param_groups()[1].options());
  EXPECT_EQ(made.lr(), 0.125);
  EXPECT_EQ(std::get<0>(made.betas()), 0.625);
  EXPECT_EQ(std::get<1>(made.betas()), 0.5);
  EXPECT_EQ(made.weight_decay(), 0);
}

TEST(TorchOptimizer, TakesTheStateOfTheFusedOne) {
  Net fused_net = make_net(), torch_net = make_net();
  const OptimizerOptions options{.lr = 1e-3, .weight_decay = 1e-2, .decay_norm_and_bias = true};
  const auto fused = make_optimizer(options, make_groups(Model(fused_net), options));
  const auto torch = torch_optimizer<torch::optim::AdamW>()(make_groups(Model(torch_net), options));
  train(fused_net, *fused, 5);
  train(torch_net, *torch, 5);
  EXPECT_THAT(torch->load_state(fused->state()), IsEmpty());
  train(fused_net, *fused, 5, 5);
  train(torch_net, *torch, 5, 5);
  EXPECT_LT(testing::largest_difference(fused_net, torch_net), 1e-6);
}

TEST(TorchOptimizer, NamesWithoutStateStartFresh) {
  Net net = make_net();
  const auto optimizer = torch_optimizer<torch::optim::Adam>()(make_groups(Model(net), {}));
  train(net, *optimizer, 1);
  auto saved = optimizer->state();
  std::erase_if(saved, [](const NamedTensor& entry) { return entry.name.ends_with("/norm.bias"); });
  EXPECT_THAT(optimizer->load_state(saved), ElementsAre("norm.bias"));
}

TEST(TorchOptimizer, RefusesWhatFitsNoLoop) {
  Net net = make_net();
  const auto groups = make_groups(Model(net), {.decay_norm_and_bias = true});
  EXPECT_THROW(TorchOptimizer(TorchFactory{}, groups), ConfigError);
  EXPECT_THROW(TorchOptimizer([](auto) { return nullptr; }, groups), ConfigError);
  const TorchFactory lbfgs = [](std::vector<OptimizerParamGroup> made) {
    return std::make_unique<torch::optim::LBFGS>(made[0].params());
  };
  EXPECT_THROW(TorchOptimizer(lbfgs, groups), ConfigError);
}

}  // namespace
}  // namespace tare
