// Small models and data for the tests of the Learner.
#pragma once

#include <torch/torch.h>

#include "support/temp_dir.h"
#include "support/test_device.h"
#include "tare/data/dataset.h"
#include "tare/learner/learner.h"
#include "tare/memory/backend.h"

namespace tare::testing {

inline constexpr int64_t kFeatures = 8, kClasses = 3;

/// Two hidden layers, batch norm and dropout: everything that a mode, an RNG or a buffer can get
/// wrong.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(kFeatures, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    second = register_module("second", torch::nn::Linear(16, 16));
    head = register_module("head", torch::nn::Linear(16, kClasses));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(norm(first(x)));
    x = torch::dropout(torch::relu(second(x)), 0.1, is_training());
    return head(x);
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, head{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

inline Net make_net(uint64_t seed = 1) {
  torch::manual_seed(seed);
  return Net();
}

/// `n` points around the axes, one class an axis; separable but not trivially.
inline DatasetPtr points(int64_t n, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const auto target = torch::arange(n) % kClasses;
  auto input = torch::empty({n, kFeatures}).normal_(0, 0.5, generator);
  for (int64_t i = 0; i < n; ++i) input[i][i % kClasses] += 1.5;
  return tensor_dataset(input, target);
}

inline Splits split_points(int64_t train = 90, int64_t valid = 30) {
  return {.train = points(train, 11), .valid = points(valid, 12), .test = points(valid, 13)};
}

inline LearnerOptions quiet(const TempDir& folder) {
  LearnerOptions options;
  options.metrics = {"accuracy"};
  options.device = test_device();
  options.batch = 16;
  options.folder = folder.path();
  options.progress = false;
  return options;
}

inline int64_t tracked() { return memory::backend(c10::kCPU).usage().allocated_bytes; }
inline int64_t blocks() { return memory::backend(c10::kCPU).usage().blocks; }

/// All weights and buffers as one host tensor, for bit comparison.
inline torch::Tensor flat(Model& model) {
  std::vector<torch::Tensor> parts;
  for (const auto& [name, tensor] : model.state())
    parts.push_back(tensor.detach().cpu().to(torch::kDouble).flatten().clone());
  return torch::cat(parts);
}

}  // namespace tare::testing
