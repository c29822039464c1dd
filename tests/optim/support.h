// A small network with convolution, norm and linear layers, and gradients for it.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/test_device.h"
#include "tare/model/model.h"
#include "tare/optim/optimizer.h"

namespace tare::testing {

// ReLU stands before the norm: a bias right before a norm has a gradient of nothing but rounding,
// which Adam blows up to steps of full size.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, 3)));
    norm = register_module("norm", torch::nn::BatchNorm2d(4));
    fc = register_module("fc", torch::nn::Linear(16, 3));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return fc(norm(torch::relu(conv(x))).flatten(1));
  }

  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Net);

/// The same weights for the same seed.
inline Net make_net(uint64_t seed = 0) {
  torch::manual_seed(seed);
  Net net;
  net->to(torch::Device(test_device()));
  return net;
}

/// Forward and backward of a batch that depends on `step` alone; returns the loss.
inline double backward(Net& net, int64_t step) {
  torch::manual_seed(1000 + static_cast<uint64_t>(step));
  const auto x = torch::randn({5, 2, 4, 4}), y = torch::randint(3, {5}, torch::kLong);
  const torch::Device device(test_device());
  const auto loss = torch::cross_entropy_loss(net(x.to(device)), y.to(device));
  loss.backward();
  return loss.item<double>();
}

inline double largest_difference(Net& a, Net& b) {
  double largest = 0;
  const auto first = a->parameters(), second = b->parameters();
  for (size_t i = 0; i < first.size(); ++i) {
    largest = std::max(largest, (first[i] - second[i]).abs().max().item<double>());
  }
  return largest;
}

inline std::unique_ptr<Optimizer> make_for(Net& net, const OptimizerOptions& options) {
  return make_optimizer(options, make_groups(Model(net), options));
}

/// `steps` steps of `optimizer` on `net`, from batch number `first` on.
inline void train(Net& net, Optimizer& optimizer, int64_t steps, int64_t first = 0) {
  for (int64_t i = first; i < first + steps; ++i) {
    optimizer.zero_grad();
    backward(net, i);
    optimizer.step();
  }
}

/// AdamW of 8 bits, also for the small parameters of the network.
inline OptimizerOptions all_of_8_bits(double lr = 1e-3) {
  config::OwnOptions own{config::Node::map()};
  own.node.set("min_elements", config::to_node(int64_t{0}));
  return {.kind = "adamw8bit", .lr = lr, .options = own};
}

constexpr int64_t kSteps = 50;
// Float32 kernels that round in another order: what 50 steps add up to on weights of order 1.
constexpr double kTolerance = 1e-6;

/// Trains two equal networks for kSteps steps, one with Tare's optimizer and one with LibTorch's.
/// Returns the largest difference of their weights.
template <class TorchOptimizer, class Options>
double difference_to_torch(const OptimizerOptions& ours, const Options& theirs) {
  Net a = make_net(), b = make_net(), fresh = make_net();
  const auto optimizer = make_for(a, ours);
  TorchOptimizer reference(b->parameters(), theirs);
  train(a, *optimizer, kSteps);
  for (int64_t i = 0; i < kSteps; ++i) {
    reference.zero_grad();
    backward(b, i);
    reference.step();
  }
  EXPECT_GT(largest_difference(a, fresh), 1e-3) << "it did learn";
  return largest_difference(a, b);
}

}  // namespace tare::testing
