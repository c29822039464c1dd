// Builds ResNet-9.
#include "models/resnet9.h"

namespace tare::models {
namespace {

SequentialBlock conv_block(int64_t in, int64_t out, int64_t stride = 1) {
  return SequentialBlock(conv(in, out, 3, stride), torch::nn::BatchNorm2d(out),
                         torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true)));
}

SequentialBlock residual_block(int64_t in, int64_t out) {
  SequentialBlock layer = conv_block(in, out, 2);
  layer->push_back(Residual(out));
  return layer;
}

}  // namespace

ResidualImpl::ResidualImpl(int64_t channels) {
  conv1 = register_module("conv1", conv_block(channels, channels));
  conv2 = register_module("conv2", conv_block(channels, channels));
}

torch::Tensor ResidualImpl::forward(const torch::Tensor& x) {
  return x + conv2->forward(conv1->forward(x));
}

ResNet9Impl::ResNet9Impl(const ModelOptions& options)
    : channels(image_channels("resnet9", options)), dropout(options.dropout) {
  const int64_t width = options.width > 0 ? options.width : 8;
  prep = register_module("prep", conv_block(channels, width));
  layer1 = register_module("layer1", residual_block(width, 2 * width));
  layer2 = register_module("layer2", conv_block(2 * width, 4 * width, 2));
  layer3 = register_module("layer3", residual_block(4 * width, 8 * width));
  fc = register_module("fc", torch::nn::Linear(8 * width, options.classes));
  init_weights(*this);
}

torch::Tensor ResNet9Impl::forward(const torch::Tensor& x) {
  require_images("models.resnet9", x, channels);
  const auto y = layer3->forward(layer2->forward(layer1->forward(prep->forward(x))));
  return fc(drop(y.amax({2, 3}), dropout, is_training()));
}

void add_resnet9(Registry& all) {
  Family family{.name = "resnet9",
                .summary = "classifies small images by a small residual network",
                .sample_shape = {1, 28, 28},
                .options = {"width", "dropout"},
                .head = "fc",
                .make = {}};
  add(all, make_family<ResNet9>(std::move(family), {}));  // prep, layer1, layer2, layer3, fc
}

}  // namespace tare::models
