// Segmentation: which pixels of a noisy picture are ink? The target is an image, and the random
// turns and shifts of a picture move its mask too.
//
// Run: build/bin/segmentation [BUDGET]     Expect: about 97 % of all pixels right, an IoU of 0.87.
#include <torch/nn.h>

#include "planned_fit.h"

namespace {

using namespace tare;

torch::nn::Conv2d conv(int64_t in, int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1));
}

/// A small U-Net: half the size and back, with the first features beside the last.
struct SmallUnetImpl : torch::nn::Module {
  SmallUnetImpl() {
    first = register_module("first", conv(1, 8));
    middle = register_module("middle", conv(8, 16));
    last = register_module("last", conv(16 + 8, 8));
    head = register_module("head", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 2, 1)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor whole = torch::relu(first(x));
    const torch::Tensor half = torch::relu(middle(torch::max_pool2d(whole, 2)));
    const torch::Tensor back = torch::upsample_nearest2d(half, {x.size(2), x.size(3)});
    return head(torch::relu(last(torch::cat({back, whole}, 1))));
  }
  torch::nn::Conv2d first{nullptr}, middle{nullptr}, last{nullptr}, head{nullptr};
};
TORCH_MODULE(SmallUnet);

/// Pictures under noise, [1, 28, 28], with masks [28, 28]: 1 where there is ink.
DatasetPtr masked_digits(int64_t count) {
  const at::Tensor ink = get_all(*generated_digits({.count = count, .style = "written"})).input();
  const at::Tensor noisy = ink.to(torch::kFloat) / 255 + 0.3 * torch::randn(ink.sizes());
  const at::Tensor masks = ink.squeeze(1).gt(127).to(torch::kLong);
  return transformed(
      tensor_dataset({{"picture", noisy}}, {{"mask", masks}}),
      {Normalise{.mean = {0.13}, .std = {0.4}}, Affine{.degrees = 10}, Shift{.pixels = 2}});
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  models::add("small_unet", [](int64_t) { return Model(SmallUnet()); });
  torch::manual_seed(1);
  LearnerOptions options = options_for("segmentation");
  options.metrics = {"accuracy", "iou", "dice"};
  Learner learner(models::make("small_unet"), split(masked_digits(1000)), options);
  planned_fit(learner, 4, 1e-2, argc, argv);
} catch (...) {
  return report_error(std::current_exception());
}
