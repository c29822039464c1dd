// A program of TorchScript, as Python's torch.jit.save writes them.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/torch.h>

#include <cmath>
#include <string>

namespace tare::testing {

/// Writes a perceptron of images with `inputs` pixels: a layer "fc" of 8 features with dropout and
/// a batch norm behind it, and a layer "head" with 10 outputs. All weights come from LibTorch's
/// generator.
inline void write_torchscript(const std::string& file, int64_t inputs) {
  torch::jit::Module fc("Fc"), head("Head"), net("Net");
  const auto linear = [](torch::jit::Module& layer, int64_t in, int64_t out) {
    layer.register_parameter("weight", (torch::randn({out, in}) / std::sqrt(in)).requires_grad_(), false);
    layer.register_parameter("bias", torch::zeros({out}).requires_grad_(), false);
    layer.define("def forward(self, x):\n  return torch.linear(x, self.weight, self.bias)\n");
  };
  linear(fc, inputs, 8);
  linear(head, 8, 10);
  net.register_module("fc", fc);
  net.register_module("head", head);
  net.register_buffer("mean", torch::zeros({8}));
  net.register_buffer("deviation", torch::ones({8}));
  net.register_attribute("training", c10::BoolType::get(), true);
  net.define(R"(
def forward(self, x):
    x = self.fc.forward(torch.flatten(x, 1))
    x = torch.batch_norm(x, None, None, self.mean, self.deviation, self.training, 0.1, 1e-5, False)
    return self.head.forward(torch.dropout(torch.relu(x), 0.5, self.training))
)");
  net.save(file);
}

}  // namespace tare::testing
