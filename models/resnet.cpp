// Builds ResNet-18, -34 and -50.
#include "models/resnet.h"

#include "models/common.h"

namespace tare::models {

using torch::nn::BatchNorm2d;
using torch::nn::Sequential;

namespace {

/// Makes the shortcut, which is empty if input and output have equal shapes.
Sequential shortcut(int64_t in, int64_t out, int64_t stride) {
  if (stride == 1 && in == out) return nullptr;
  return Sequential(conv(in, out, 1, stride), BatchNorm2d(out));
}

Sequential layer_of(const ResNetDepth& depth, size_t index, int64_t in, int64_t width) {
  Sequential layer;
  const int64_t out = depth.bottleneck ? 4 * width : width;
  for (int64_t b = 0; b < depth.blocks[index]; ++b) {
    const int64_t from = b == 0 ? in : out, stride = b == 0 && index > 0 ? 2 : 1;
    if (depth.bottleneck) {
      layer->push_back(Bottleneck(from, width, stride));
    } else {
      layer->push_back(BasicBlock(from, width, stride));
    }
  }
  return layer;
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(int64_t in, int64_t out, int64_t stride) {
  conv1 = register_module("conv1", conv(in, out, 3, stride));
  bn1 = register_module("bn1", BatchNorm2d(out));
  conv2 = register_module("conv2", conv(out, out, 3));
  bn2 = register_module("bn2", BatchNorm2d(out));
  downsample = shortcut(in, out, stride);
  if (downsample) register_module("downsample", downsample);
}

torch::Tensor BasicBlockImpl::forward(const torch::Tensor& x) {
  return in_block(
      *this, [this](const torch::Tensor& in) { return body(in); }, x);
}

torch::Tensor BasicBlockImpl::body(const torch::Tensor& x) {
  auto y = torch::relu(bn1(conv1(x)));
  y = bn2(conv2(y));
  y += downsample.is_empty() ? x : downsample->forward(x);
  return y.relu_();
}

BottleneckImpl::BottleneckImpl(int64_t in, int64_t width, int64_t stride) {
  conv1 = register_module("conv1", conv(in, width, 1));
  bn1 = register_module("bn1", BatchNorm2d(width));
  conv2 = register_module("conv2", conv(width, width, 3, stride));
  bn2 = register_module("bn2", BatchNorm2d(width));
  conv3 = register_module("conv3", conv(width, 4 * width, 1));
  bn3 = register_module("bn3", BatchNorm2d(4 * width));
  downsample = shortcut(in, 4 * width, stride);
  if (downsample) register_module("downsample", downsample);
}

torch::Tensor BottleneckImpl::forward(const torch::Tensor& x) {
  return in_block(
      *this, [this](const torch::Tensor& in) { return body(in); }, x);
}

torch::Tensor BottleneckImpl::body(const torch::Tensor& x) {
  auto y = torch::relu(bn1(conv1(x)));
  y = torch::relu(bn2(conv2(y)));
  y = bn3(conv3(y));
  y += downsample.is_empty() ? x : downsample->forward(x);
  return y.relu_();
}

ResNetImpl::ResNetImpl(const std::string& name, const ResNetDepth& depth,
                       const ModelOptions& options)
    : channels(image_channels(name, options)), dropout(options.dropout) {
  const int64_t width = or_default(options.width, 64);
  conv1 = register_module("conv1", conv(channels, width, 7, 2));
  bn1 = register_module("bn1", BatchNorm2d(width));
  int64_t in = width;
  for (size_t i = 0; i < depth.blocks.size(); ++i) {
    const int64_t stage = width << i;
    layers.push_back(
        register_module("layer" + std::to_string(i + 1), layer_of(depth, i, in, stage)));
    in = depth.bottleneck ? 4 * stage : stage;
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
                     const ResNetDepth& depth) {
  const std::vector<LayerGroup> groups{{"stem", {"conv1", "bn1"}}, {"layer1", {"layer1"}},
                                       {"layer2", {"layer2"}},     {"layer3", {"layer3"}},
                                       {"layer4", {"layer4"}},     {"fc", {"fc"}}};
  return {.name = name,
          .summary = summary,
          .sample_shape = {3, 224, 224},
          .options = {"width", "dropout"},
          .head = "fc",
          .make = [=](const ModelOptions& options) {
            return Model(ResNet(name, depth, options), groups);
          }};
}

}  // namespace

void add_resnet(Registry& all) {
  add(all, resnet_family("resnet18",
                         "classifies images by ResNet-18, with torchvision's parameter names",
                         {{2, 2, 2, 2}}));
  add(all, resnet_family("resnet34",
                         "classifies images by ResNet-34, with torchvision's parameter names",
                         {{3, 4, 6, 3}}));
  add(all, resnet_family("resnet50",
                         "classifies images by ResNet-50, with torchvision's parameter names",
                         {.blocks = {3, 4, 6, 3}, .bottleneck = true}));
}

}  // namespace tare::models
