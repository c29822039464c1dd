// Wall time of the Learner: a step of an MLP 64-128-10 (batch 32, SGD with momentum) against a
// hand-written loop with the same kernel and loader, and purge and destroy against letting the same
// tensors go by hand.
//
// Run: OMP_NUM_THREADS=1 build/bin/bench_step [rounds]
#include "bench/hand_loop.h"
#include "bench/paired.h"

namespace {

using namespace tare;

using bench::kBatch;
using bench::rows;

constexpr int64_t kSteps = 500, kWidth = 2048;

// 34 MB of weights.
torch::nn::Sequential large() {
  return torch::nn::Sequential(torch::nn::Linear(64, kWidth), torch::nn::ReLU(),
                               torch::nn::Linear(kWidth, kWidth), torch::nn::ReLU(),
                               torch::nn::Linear(kWidth, kWidth), torch::nn::Linear(kWidth, 10));
}

double by_hand(const DatasetPtr& set) {
  bench::HandLoop loop(set);
  return bench::seconds([&] { loop.run(); });
}

double by_learner(const DatasetPtr& set) {
  Learner learner(bench::small_mlp(), {.train = set}, bench::same_training());
  return bench::seconds([&] { learner.fit(1, {.lr = 0.05}); });
}

// Times the release by hand of what purge frees (gradients, AdamW's two buffers), or with `all` of
// what destroy frees (the weights too).
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
  LearnerOptions options = bench::same_training();
  options.optimizer.kind = "adamw";
  Learner learner(large(), {.train = set}, options);
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
  std::puts("median of ratios, [quartiles]");
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
