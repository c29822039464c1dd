// Wall time of the Learner: a step of an MLP 64-128-10 (batch 32, SGD with momentum) against a
// hand-written loop with the same kernel and loader, and purge and destroy against letting the same
// tensors go by hand.
//
// Run: OMP_NUM_THREADS=1 build/bin/bench_step [rounds]
#include <ATen/ops/_fused_sgd.h>
#include <tare/tare.h>
#include <torch/torch.h>

#include <memory>

#include "bench/paired.h"

namespace {

using namespace tare;

constexpr int64_t kBatch = 32, kSteps = 500, kWidth = 2048;

torch::nn::Sequential small() {
  return torch::nn::Sequential(torch::nn::Linear(64, 128), torch::nn::ReLU(),
                               torch::nn::Linear(128, 10));
}

// 34 MB of weights.
torch::nn::Sequential large() {
  return torch::nn::Sequential(torch::nn::Linear(64, kWidth), torch::nn::ReLU(),
                               torch::nn::Linear(kWidth, kWidth), torch::nn::ReLU(),
                               torch::nn::Linear(kWidth, kWidth), torch::nn::Linear(kWidth, 10));
}

DatasetPtr rows(int64_t count) {
  return tensor_dataset(torch::rand({count, 64}), torch::randint(10, {count}));
}

double by_hand(const DatasetPtr& set) {
  auto net = small();
  std::vector<at::Tensor> parameters = net->parameters(), momenta, gradients;
  for (const auto& p : parameters) momenta.push_back(torch::zeros_like(p));
  Loader loader(set, {.batch = kBatch, .shuffle = true});
  loader.start(0);
  bool first = true;
  return bench::seconds([&] {
    for (Batch batch; loader.next(batch);) {
      auto loss = torch::cross_entropy_loss(net->forward(batch.input), batch.target);
      loss.backward();
      gradients.clear();
      for (const auto& p : parameters) gradients.push_back(p.grad());
      at::_fused_sgd_(parameters, gradients, momenta, 0.0, 0.9, 0.05, 0.0, false, false, first);
      first = false;
      for (const auto& p : parameters) p.mutable_grad().reset();
    }
  });
}

LearnerOptions options(const char* optimizer) {
  LearnerOptions o;
  o.device = "cpu";
  o.batch = kBatch;
  o.workers = 0;
  o.progress = false;
  o.optimizer = {.kind = optimizer, .lr = 0.05, .weight_decay = 0, .momentum = 0.9};
  return o;
}

double by_learner(const DatasetPtr& set) {
  Learner learner(small(), {.train = set}, options("sgd"));
  return bench::seconds([&] { learner.fit(1, {.lr = 0.05}); });
}

// What purge and destroy give back, released by hand: gradients, AdamW's two buffers; then the
// weights too.
double release_by_hand(bool all) {
  auto net = large();
  std::vector<at::Tensor> state;
  for (auto& p : net->parameters()) {
    p.mutable_grad() = torch::ones_like(p);
    state.push_back(torch::ones_like(p));
    state.push_back(torch::ones_like(p));
  }
  return bench::seconds([&] {
    state.clear();
    for (auto& p : net->parameters()) p.mutable_grad().reset();
    if (all) net = nullptr;
    memory::backend(c10::kCPU).reclaim();
  });
}

double release_by_learner(bool all, const DatasetPtr& set) {
  Learner learner(large(), {.train = set}, options("adamw"));
  learner.fit(1);
  return bench::seconds([&] { all ? learner.destroy() : learner.purge(); });
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  init();
  const auto set = rows(kSteps * kBatch), one = rows(kBatch);
  by_hand(set);
  by_learner(set);
  std::puts("ratio of medians, [quartiles]");
  bench::print("500 steps, by hand against by hand (control)",
               bench::paired(
                   rounds, [&] { return by_hand(set); }, [&] { return by_hand(set); }));
  bench::print("500 steps, Learner against by hand",
               bench::paired(
                   rounds, [&] { return by_hand(set); }, [&] { return by_learner(set); }));
  bench::print(
      "release by hand against by hand (control)",
      bench::paired(
          rounds, [] { return release_by_hand(false); }, [] { return release_by_hand(false); }));
  bench::print("purge against release by hand",
               bench::paired(
                   rounds, [] { return release_by_hand(false); },
                   [&] { return release_by_learner(false, one); }));
  bench::print("destroy against release by hand",
               bench::paired(
                   rounds, [] { return release_by_hand(true); },
                   [&] { return release_by_learner(true, one); }));
}
