// Checks the inputs of families, and makes their common layers.
#include "models/common.h"

#include <sstream>

#include "tare/base/error.h"

namespace tare::models {

int64_t image_channels(const std::string& family, const ModelOptions& options) {
  const auto& shape = options.sample_shape;
  if (shape.size() != 3 || shape[0] < 1 || shape[1] < 1 || shape[2] < 1) {
    std::ostringstream got;
    got << torch::IntArrayRef(shape);
    throw ConfigError("models." + family, "sample_shape", "must be that of images",
                      "[channels, height, width], such as [3, 32, 32]", got.str());
  }
  return shape[0];
}

void require_images(const char* where, const torch::Tensor& input, int64_t channels,
                    int64_t least) {
  if (input.dim() == 4 && input.size(1) == channels && input.size(2) >= least &&
      input.size(3) >= least)
    return;
  std::ostringstream got;
  got << input.sizes();
  throw ShapeError(where,
                   "images [batch, " + std::to_string(channels) + ", height, width] of at least " +
                       std::to_string(least) + " pixels a side",
                   got.str());
}

torch::nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

torch::Tensor SequentialBlockImpl::forward(const torch::Tensor& x) {
  return in_block(
      *this, [this](const torch::Tensor& in) { return SequentialImpl::forward(in); }, x);
}

torch::Tensor ChainImpl::forward(const torch::Tensor& x) { return SequentialImpl::forward(x); }

void init_weights(torch::nn::Module& module) {
  for (const auto& part : module.modules(/*include_self=*/false)) {
    if (auto* layer = part->as<torch::nn::Conv2dImpl>()) {
      torch::nn::init::kaiming_normal_(layer->weight, 0, torch::kFanOut, torch::kReLU);
    } else if (auto* norm = part->as<torch::nn::BatchNorm2dImpl>()) {
      torch::nn::init::ones_(norm->weight);
      torch::nn::init::zeros_(norm->bias);
    }
  }
}

torch::Tensor drop(const torch::Tensor& x, double p, bool training) {
  return p > 0 && training ? torch::dropout(x, p, true) : x;
}

}  // namespace tare::models
