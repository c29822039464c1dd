// State by name: saving, loading, freezing, clearing, accounting; for each fused kind.
#include <gmock/gmock.h>

#include <map>

#include "optim/support.h"
#include "tare/base/error.h"
#include "tare/memory/host_allocator.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::make_for;
using testing::make_net;
using testing::Net;
using testing::train;
using ::testing::UnorderedElementsAre;

std::vector<NamedTensor> copy_of(const Optimizer& optimizer) {
  std::vector<NamedTensor> all = optimizer.state();
  for (auto& entry : all) entry.tensor = entry.tensor.clone();
  return all;
}

std::vector<std::string> names(const std::vector<NamedTensor>& state) {
  std::vector<std::string> all;
  for (const auto& entry : state) all.push_back(entry.name);
  return all;
}

void copy_weights(Net& from, Net& to) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < from->parameters().size(); ++i)
    to->parameters()[i].copy_(from->parameters()[i]);
  for (size_t i = 0; i < from->buffers().size(); ++i) to->buffers()[i].copy_(from->buffers()[i]);
}

class OptimizerState : public ::testing::TestWithParam<std::string> {
 protected:
  OptimizerOptions options() const { return {.kind = GetParam(), .lr = 1e-2}; }
  /// The tensors of the state of the network, or of its last `parameters`.
  size_t entries(size_t parameters = 6) const {
    const std::map<std::string, size_t> of_kind{
        {"sgd", 1},      {"adam", 3},    {"adamw", 3}, {"adamw8bit", 3}, {"rmsprop", 1},
        {"adadelta", 2}, {"adagrad", 1}, {"nadam", 4}, {"lion", 1},      {"muon", 3}};
    const size_t fewer = GetParam() == "muon" ? 2 : 0;  // the matrix fc.weight has one
    return parameters * of_kind.at(GetParam()) - fewer;
  }
};

TEST_P(OptimizerState, RestoredRunEqualsTheStraightOne) {
  Net straight = make_net(), resumed = make_net(7);
  const auto first = make_for(straight, options());
  train(straight, *first, 5);
  const auto saved = copy_of(*first);
  EXPECT_EQ(saved.size(), entries());
  copy_weights(straight, resumed);
  const auto second = make_for(resumed, options());
  EXPECT_THAT(second->load_state(saved), IsEmpty());
  train(straight, *first, 5, 5);
  train(resumed, *second, 5, 5);
  EXPECT_EQ(testing::largest_difference(straight, resumed), 0);
}

TEST_P(OptimizerState, LoadedStateIsACopy) {
  Net net = make_net();
  const auto optimizer = make_for(net, options());
  train(net, *optimizer, 1);
  auto saved = copy_of(*optimizer);
  (void)optimizer->load_state(saved);
  for (auto& entry : saved) entry.tensor.fill_(9);
  for (const auto& entry : optimizer->state())
    EXPECT_FALSE(entry.tensor.eq(9).any().item<bool>()) << entry.name;
}

TEST_P(OptimizerState, NamesWithoutStateStartFresh) {
  Net net = make_net();
  const auto optimizer = make_for(net, options());
  train(net, *optimizer, 2);
  auto saved = copy_of(*optimizer);
  std::erase_if(saved, [](const NamedTensor& entry) { return entry.name.ends_with("/fc.bias"); });
  EXPECT_THAT(optimizer->load_state(saved), ElementsAre("fc.bias"));
  for (const auto& entry : optimizer->state()) {
    const int start = entry.name.starts_with("mu_product/") ? 1 : 0;
    EXPECT_EQ(entry.tensor.eq(start).all().item<bool>(), entry.name.ends_with("/fc.bias"))
        << entry.name;
  }
}

TEST_P(OptimizerState, NothingIsWrittenWhereSomethingDoesNotFit) {
  Net net = make_net();
  const auto optimizer = make_for(net, options());
  train(net, *optimizer, 1);
  const auto before = copy_of(*optimizer);
  auto wrong_shape = before, wrong_type = before, foreign = before;
  for (auto& entry : wrong_shape) entry.tensor = entry.tensor + 1;
  wrong_shape.back().tensor = torch::zeros({7});
  wrong_type.front().tensor = wrong_type.front().tensor.to(torch::kDouble);
  foreign.push_back({"foreign/fc.bias", torch::zeros({3})});
  EXPECT_THROW((void)optimizer->load_state(wrong_shape), ShapeError);
  EXPECT_THROW((void)optimizer->load_state(wrong_type), ShapeError);
  EXPECT_THROW((void)optimizer->load_state(foreign), ConfigError);
  const auto after = optimizer->state();
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(torch::equal(before[i].tensor, after[i].tensor));
}

TEST_P(OptimizerState, ClearFreesItAndTheNextStepStartsAnew) {
  Net net = make_net();
  const auto optimizer = make_for(net, options());
  const int64_t before = memory::host_allocator::counters().live_bytes;
  optimizer->prepare();
  Ledger ledger;
  optimizer->account(ledger);
  const int64_t held = memory::host_allocator::counters().live_bytes - before;
  EXPECT_GT(held, 0);
  EXPECT_EQ(ledger.bytes()[Category::optimizer], held);
  EXPECT_EQ(ledger.bytes().total(), held);
  optimizer->clear();
  EXPECT_EQ(memory::host_allocator::counters().live_bytes, before);
  EXPECT_THAT(optimizer->state(), IsEmpty());
  train(net, *optimizer, 1);
  EXPECT_EQ(optimizer->state().size(), entries());
}

TEST_P(OptimizerState, FreezingKeepsWhatStaysAndFreesTheRest) {
  Net net = make_net();
  const auto optimizer = make_for(net, options());
  train(net, *optimizer, 3);
  const auto before = copy_of(*optimizer);
  for (auto& p : net->conv->parameters()) p.set_requires_grad(false);
  const int64_t live = memory::host_allocator::counters().live_bytes;
  const StateChange frozen = optimizer->set_groups(make_groups(Model(net), options()));
  EXPECT_EQ(frozen.kept, 4);
  EXPECT_EQ(frozen.fresh, 0);
  EXPECT_EQ(frozen.freed, 2);
  EXPECT_EQ(memory::host_allocator::counters().live_bytes, live - frozen.freed_bytes);
  for (const auto& kept : optimizer->state()) {
    for (const auto& old : before) {
      if (old.name == kept.name) {
        EXPECT_TRUE(torch::equal(old.tensor, kept.tensor)) << kept.name;
      }
    }
  }
  for (auto& p : net->conv->parameters()) p.set_requires_grad(true);
  const StateChange all = optimizer->set_groups(make_groups(Model(net), options()));
  EXPECT_EQ(all.kept, 4);
  EXPECT_EQ(all.fresh, 2);
  EXPECT_EQ(all.freed, 0);
  train(net, *optimizer, 1, 3);
  for (const auto& entry : optimizer->state()) {
    if (entry.name == "step/conv.weight") {
      EXPECT_EQ(entry.tensor.item<float>(), 1);
    }
    if (entry.name == "step/fc.bias") {
      EXPECT_EQ(entry.tensor.item<float>(), 4);
    }
  }
}

TEST_P(OptimizerState, StateOfParametersThatAreNotThereIsIgnored) {
  Net net = make_net();
  const auto optimizer = make_for(net, options());
  train(net, *optimizer, 1);
  const auto saved = copy_of(*optimizer);
  for (auto& p : net->conv->parameters()) p.set_requires_grad(false);
  (void)optimizer->set_groups(make_groups(Model(net), options()));
  EXPECT_THAT(optimizer->load_state(saved), IsEmpty());
  EXPECT_EQ(optimizer->state().size(), entries(4));
}

INSTANTIATE_TEST_SUITE_P(Kinds, OptimizerState, ::testing::ValuesIn(optimizer_kinds()));

TEST(OptimizerStateNames, AreBufferAndParameter) {
  Net net = make_net();
  for (auto& p : net->parameters()) p.set_requires_grad(false);
  net->fc->bias.set_requires_grad(true);
  const auto sgd = make_for(net, {.kind = "sgd"}), adamw = make_for(net, {.kind = "adamw"});
  sgd->prepare();
  adamw->prepare();
  EXPECT_THAT(names(sgd->state()), UnorderedElementsAre("momentum_buffer/fc.bias"));
  EXPECT_THAT(names(adamw->state()),
              UnorderedElementsAre("exp_avg/fc.bias", "exp_avg_sq/fc.bias", "step/fc.bias"));
}

TEST(OptimizerStateNames, IncompleteStateIsRefused) {
  Net net = make_net();
  const auto optimizer = make_for(net, {});
  optimizer->prepare();
  auto saved = copy_of(*optimizer);
  std::erase_if(saved, [](const NamedTensor& entry) { return entry.name == "step/fc.bias"; });
  EXPECT_THROW((void)optimizer->load_state(saved), ConfigError);
}

}  // namespace
}  // namespace tare
