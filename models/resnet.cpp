#include "models/resnet.h"

#include "models/common.h"

namespace tare::models {

using torch::nn::BatchNorm2d;
using torch::nn::Sequential;

BasicBlockImpl::BasicBlockImpl(int64_t in, int64_t out, int64_t stride) {
  conv1 = register_module("conv1", conv(in, out, 3, stride));
  bn1 = register_module("bn1", BatchNorm2d(out));
  conv2 = register_module("conv2", conv(out, out, 3));
  bn2 = register_module("bn2", BatchNorm2d(out));
  if (stride != 1 || in != out) {
    downsample =
        register_module("downsample", Sequential(conv(in, out, 1, stride), BatchNorm2d(out)));
  }
}

torch::Tensor BasicBlockImpl::forward(const torch::Tensor& x) {
  auto y = torch::relu(bn1(conv1(x)));
  y = bn2(conv2(y));
  y += downsample.is_empty() ? x : downsample->forward(x);
  return y.relu_();
}

ResNetImpl::ResNetImpl(const std::string& name, const std::array<int64_t, 4>& blocks,
                       const ModelOptions& options)
    : channels(image_channels(name, options)), dropout(options.dropout) {
  int64_t in = options.width > 0 ? options.width : 64;
  conv1 = register_module("conv1", conv(channels, in, 7, 2));
  bn1 = register_module("bn1", BatchNorm2d(in));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int64_t out = i == 0 ? in : 2 * in;
    Sequential layer;
    for (int64_t b = 0; b < blocks[i]; ++b)
      layer->push_back(BasicBlock(b == 0 ? in : out, out, b == 0 && i > 0 ? 2 : 1));
    layers.push_back(register_module("layer" + std::to_string(i + 1), layer));
    in = out;
  }
  fc = register_module("fc", torch::nn::Linear(in, options.classes));
  init_weights(*this);
}

torch::Tensor ResNetImpl::forward(const torch::Tensor& x) {
  require_images("models.resnet", x, channels);
  auto y = torch::relu(bn1(conv1(x)));
  y = torch::max_pool2d(y, 3, 2, 1);
  for (auto& layer : layers) y = layer->forward(y);
  y = torch::adaptive_avg_pool2d(y, {1, 1}).flatten(1);
  return fc(drop(y, dropout, is_training()));
}

namespace {

Family resnet_family(const std::string& name, const std::string& summary,
                     const std::array<int64_t, 4>& blocks) {
  const std::vector<LayerGroup> groups{{"stem", {"conv1", "bn1"}}, {"layer1", {"layer1"}},
                                       {"layer2", {"layer2"}},     {"layer3", {"layer3"}},
                                       {"layer4", {"layer4"}},     {"fc", {"fc"}}};
  return {.name = name,
          .summary = summary,
          .sample_shape = {3, 224, 224},
          .options = {"width", "dropout"},
          .head = "fc",
          .make = [=](const ModelOptions& options) {
            return Model(ResNet(name, blocks, options), groups);
          }};
}

}  // namespace

Family resnet18_family() {
  return resnet_family("resnet18", "ResNet-18, torchvision's parameter names", {2, 2, 2, 2});
}

Family resnet34_family() {
  return resnet_family("resnet34", "ResNet-34, torchvision's parameter names", {3, 4, 6, 3});
}

}  // namespace tare::models
