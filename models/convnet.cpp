// Builds the plain convolutional network.
#include "models/convnet.h"

namespace tare::models {
namespace {

SequentialBlock block(int64_t in, int64_t out) {
  return SequentialBlock(conv(in, out, 3), torch::nn::BatchNorm2d(out), torch::nn::ReLU());
}

}  // namespace

ConvNetImpl::ConvNetImpl(const ModelOptions& options)
    : channels(image_channels("convnet", options)), dropout(options.dropout) {
  const int64_t width = options.width > 0 ? options.width : 16;
  block1 = register_module("block1", block(channels, width));
  block2 = register_module("block2", block(width, 2 * width));
  block3 = register_module("block3", block(2 * width, 4 * width));
  fc = register_module("fc", torch::nn::Linear(4 * width, options.classes));
  init_weights(*this);
}

torch::Tensor ConvNetImpl::forward(const torch::Tensor& x) {
  require_images("models.convnet", x, channels, 4);
  auto y = torch::max_pool2d(block1->forward(x), 2);
  y = torch::max_pool2d(block2->forward(y), 2);
  y = torch::adaptive_avg_pool2d(block3->forward(y), {1, 1}).flatten(1);
  return fc(drop(y, dropout, is_training()));
}

void add_convnet(Registry& all) {
  Family family{.name = "convnet",
                .summary = "classifies images by three convolution blocks and a linear head",
                .sample_shape = {1, 28, 28},
                .options = {"width", "dropout"},
                .head = "fc",
                .make = {}};
  add(all, make_family<ConvNet>(std::move(family), {}));  // block1, block2, block3, fc
}

}  // namespace tare::models
