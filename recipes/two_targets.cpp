// Regression with two targets: where is the ink of a picture, and how much of it is there? The
// module returns a pair; each output goes with the target at its place, and each metric has a
// column for each target.
//
// Run: build/bin/two_targets [BUDGET]     Expect: mean errors below 0.01 for both.
#include <torch/nn.h>

#include <utility>

#include "planned_fit.h"

namespace {

using namespace tare;

struct MeasuringImpl : torch::nn::Module {
  MeasuringImpl() {
    body = register_module(
        "body", torch::nn::Sequential(
                    torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).stride(2).padding(1)),
                    torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Linear(8 * 8 * 8, 32),
                    torch::nn::ReLU()));
    centre = register_module("centre", torch::nn::Linear(32, 2));
    ink = register_module("ink", torch::nn::Linear(32, 1));
  }
  std::pair<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x) {
    const torch::Tensor features = body->forward(x);
    return {centre(features), ink(features)};
  }
  torch::nn::Sequential body{nullptr};
  torch::nn::Linear centre{nullptr}, ink{nullptr};
};
TORCH_MODULE(Measuring);

/// Pictures with the centre of their ink, as shares of width and height, and its share of the area.
DatasetPtr measured_digits(int64_t count) {
  const Batch all = get_all(*generated_digits({.count = count, .size = 16, .style = "written"}));
  const at::Tensor x = all.input().to(torch::kFloat) / 255;
  const at::Tensor sum = x.sum({1, 2, 3}), place = torch::arange(16).to(torch::kFloat) / 15;
  const at::Tensor across = (x.sum({1, 2}) * place).sum(1) / sum,
                   down = (x.sum({1, 3}) * place).sum(1) / sum;
  return tensor_dataset({{"picture", x}}, {{"centre", torch::stack({across, down}, 1)},
                                           {"ink", (sum / 256).unsqueeze(1)}});
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  models::add("measuring", [](int64_t) { return Model(Measuring()); });
  torch::manual_seed(1);
  LearnerOptions options = options_for("two_targets");
  options.loss = "mse";
  options.metrics = {"mae"};
  Learner learner(models::make("measuring"), split(measured_digits(4000)), options);
  planned_fit(learner, 10, 5e-3, argc, argv);
} catch (...) {
  return report_error(std::current_exception());
}
