// The loop that somebody who knows LibTorch well would write by hand: an MLP 64-128-10, batch 32,
// SGD with momentum on the fused kernel, on Tare's loader. The Learner is measured against it.
#pragma once

#include <ATen/ops/_fused_sgd.h>
#include <tare/tare.h>
#include <torch/torch.h>

#include <vector>

namespace tare::bench {

inline constexpr int64_t kBatch = 32;

inline torch::nn::Sequential small_mlp() {
  return torch::nn::Sequential(torch::nn::Linear(64, 128), torch::nn::ReLU(),
                               torch::nn::Linear(128, 10));
}

/// Features [count, 64] and classes of 10.
inline DatasetPtr rows(int64_t count) {
  return tensor_dataset(torch::rand({count, 64}), torch::randint(10, {count}));
}

class HandLoop {
 public:
  explicit HandLoop(const DatasetPtr& set) : loader_(set, {.batch = kBatch, .shuffle = true}) {
    for (const auto& p : parameters_) momenta_.push_back(torch::zeros_like(p));
    loader_.start(0);
  }

  /// One pass over the data. Returns the sum of the losses.
  double run() {
    double sum = 0;
    bool first = true;
    for (Batch batch; loader_.next(batch);) {
      auto loss = torch::cross_entropy_loss(net_->forward(batch.input()), batch.target());
      loss.backward();
      gradients_.clear();
      for (const auto& p : parameters_) gradients_.push_back(p.grad());
      at::_fused_sgd_(parameters_, gradients_, momenta_, 0.0, 0.9, 0.05, 0.0, false, false, first);
      first = false;
      for (const auto& p : parameters_) p.mutable_grad().reset();
      sum += *loss.const_data_ptr<float>();
    }
    return sum;
  }

 private:
  torch::nn::Sequential net_ = small_mlp();
  std::vector<at::Tensor> parameters_ = net_->parameters(), momenta_{}, gradients_{};
  Loader loader_;
};

/// The same training, for a Learner.
inline LearnerOptions same_training() {
  LearnerOptions o;
  o.device = "cpu";
  o.batch = kBatch;
  o.workers = 0;
  o.progress = false;
  o.optimizer = {.kind = "sgd", .lr = 0.05, .weight_decay = 0, .momentum = 0.9};
  return o;
}

}  // namespace tare::bench
