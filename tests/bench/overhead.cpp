// What the Learner adds to a step, counted in instructions: an MLP 64-128-10, batch 32, SGD with
// momentum on the fused kernel, against a hand-written loop with the same kernel and loader. Counts
// repeat to 1e-8, on busy machines too.
//
// Run under callgrind (tests/bench/overhead_test.cpp does, and holds the ratios); each mode's
// counts are dumped under its name. Every mode runs kWarm + kFew and kWarm + kMany steps; the
// difference is kMany - kFew steps without start and end.
#include <ATen/ops/_fused_sgd.h>
#include <tare/tare.h>
#include <torch/torch.h>
#include <valgrind/callgrind.h>

#include <iostream>

namespace {

using namespace tare;

constexpr int64_t kBatch = 32, kFew = 20, kMany = 120;

torch::nn::Sequential make_model() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(64, 128), torch::nn::ReLU(),
                               torch::nn::Linear(128, 10));
}

DatasetPtr data(int64_t steps) {
  torch::manual_seed(2);
  return tensor_dataset(torch::rand({steps * kBatch, 64}), torch::randint(10, {steps * kBatch}));
}

// What somebody who knows LibTorch well would write.
void by_hand(const DatasetPtr& set) {
  auto net = make_model();
  std::vector<at::Tensor> parameters = net->parameters(), momenta, gradients;
  for (const auto& p : parameters) momenta.push_back(torch::zeros_like(p));
  Loader loader(set, {.batch = kBatch, .shuffle = true});
  loader.start(0);
  double sum = 0;
  bool first = true;
  for (Batch batch; loader.next(batch);) {
    auto loss = torch::cross_entropy_loss(net->forward(batch.input), batch.target);
    loss.backward();
    gradients.clear();
    for (const auto& p : parameters) gradients.push_back(p.grad());
    at::_fused_sgd_(parameters, gradients, momenta, 0.0, 0.9, 0.05, 0.0, false, false, first);
    first = false;
    for (const auto& p : parameters) p.mutable_grad().reset();
    sum += *loss.const_data_ptr<float>();
  }
  if (!(sum > 0)) std::abort();
}

void by_learner(const DatasetPtr& set, const std::vector<CallbackPtr>& callbacks,
                const std::string& schedule) {
  LearnerOptions options;
  options.device = "cpu";
  options.batch = kBatch;
  options.workers = 0;
  options.progress = false;
  options.optimizer = {.kind = "sgd", .lr = 0.05, .weight_decay = 0, .momentum = 0.9};
  Learner learner(make_model(), {.train = set}, options);
  learner.fit(1, {.lr = 0.05, .schedule = {.kind = schedule}, .callbacks = callbacks});
}

/// Sees every event and does nothing.
class Empty final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "empty"; }
};

template <class Run>
void count(const char* name, Run run) {
  const auto few = data(kFew), many = data(kMany);
  run(few);  // warm
  const auto measure = [&](const DatasetPtr& set, const std::string& label) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    run(set);
    CALLGRIND_DUMP_STATS_AT(label.c_str());
    CALLGRIND_STOP_INSTRUMENTATION;
  };
  measure(few, std::string(name) + "-few");
  measure(many, std::string(name) + "-many");
}

}  // namespace

int main() {
  at::set_num_threads(1);
  count("hand", by_hand);
  count("bare", [](const DatasetPtr& set) { by_learner(set, {}, "constant"); });
  count("full", [](const DatasetPtr& set) {
    by_learner(set, {std::make_shared<Recorder>()}, "one_cycle");
  });
  count("empty", [](const DatasetPtr& set) {
    std::vector<CallbackPtr> ten;
    for (int i = 0; i < 10; ++i) ten.push_back(std::make_shared<Empty>());
    by_learner(set, ten, "constant");
  });
  count("again", by_hand);  // the same as the first: the control
}
