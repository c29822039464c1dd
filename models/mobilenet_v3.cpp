// Builds MobileNetV3, large and small.
#include "models/mobilenet_v3.h"

#include <algorithm>

#include "models/common.h"

namespace tare::models {
namespace {

using namespace torch::nn;

constexpr int64_t kMobilenetWidth = 16;  // of the first convolution in the tables below
constexpr double kMobilenetNormEps = 0.001, kNormMomentum = 0.01, kLinearDeviation = 0.01;

// Table 1 of the paper: in, kernel, inner, out, squeezes, hard_swish, stride.
const MobileNetTable kLarge{.blocks = {{16, 3, 16, 16, false, false, 1},
                                       {16, 3, 64, 24, false, false, 2},
                                       {24, 3, 72, 24, false, false, 1},
                                       {24, 5, 72, 40, true, false, 2},
                                       {40, 5, 120, 40, true, false, 1},
                                       {40, 5, 120, 40, true, false, 1},
                                       {40, 3, 240, 80, false, true, 2},
                                       {80, 3, 200, 80, false, true, 1},
                                       {80, 3, 184, 80, false, true, 1},
                                       {80, 3, 184, 80, false, true, 1},
                                       {80, 3, 480, 112, true, true, 1},
                                       {112, 3, 672, 112, true, true, 1},
                                       {112, 5, 672, 160, true, true, 2},
                                       {160, 5, 960, 160, true, true, 1},
                                       {160, 5, 960, 160, true, true, 1}},
                            .last = 1280};

// Table 2 of the paper.
const MobileNetTable kSmall{.blocks = {{16, 3, 16, 16, true, false, 2},
                                       {16, 3, 72, 24, false, false, 2},
                                       {24, 3, 88, 24, false, false, 1},
                                       {24, 5, 96, 40, true, true, 2},
                                       {40, 5, 240, 40, true, true, 1},
                                       {40, 5, 240, 40, true, true, 1},
                                       {40, 5, 120, 48, true, true, 1},
                                       {48, 5, 144, 48, true, true, 1},
                                       {48, 5, 288, 96, true, true, 2},
                                       {96, 5, 576, 96, true, true, 1},
                                       {96, 5, 576, 96, true, true, 1}},
                            .last = 1024};

/// Rounds to a multiple of 8 that is at least 8 and no more than a tenth smaller.
int64_t rounded_to_8(double channels) {
  const int64_t near = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(near) < 0.9 * channels ? near + 8 : near;
}

struct Convolution {
  int64_t in, out, kernel = 1, stride = 1, groups = 1;
};

enum class Activation { none, relu, hard_swish };

/// Makes a convolution with its norm and activation.
Chain convolution(const Convolution& c, Activation activation) {
  Chain all(Conv2d(Conv2dOptions(c.in, c.out, c.kernel)
                       .stride(c.stride)
                       .padding(c.kernel / 2)
                       .groups(c.groups)
                       .bias(false)),
            BatchNorm2d(BatchNorm2dOptions(c.out).eps(kMobilenetNormEps).momentum(kNormMomentum)));
  if (activation == Activation::relu) all->push_back(ReLU(ReLUOptions(/*inplace=*/true)));
  if (activation == Activation::hard_swish)
    all->push_back(Functional([](torch::Tensor x) { return torch::hardswish_(x); }));
  return all;
}

MobileBlock widened(const MobileBlock& block, double factor) {
  MobileBlock wide = block;
  for (int64_t* channels : {&wide.in, &wide.inner, &wide.out})
    *channels = rounded_to_8(static_cast<double>(*channels) * factor);
  return wide;
}

}  // namespace

SqueezeImpl::SqueezeImpl(int64_t channels, int64_t inner) {
  fc1 = register_module("fc1", Conv2d(Conv2dOptions(channels, inner, 1)));
  fc2 = register_module("fc2", Conv2d(Conv2dOptions(inner, channels, 1)));
}

torch::Tensor SqueezeImpl::forward(const torch::Tensor& x) {
  const auto means = torch::adaptive_avg_pool2d(x, {1, 1});
  return torch::hardsigmoid(fc2(torch::relu(fc1(means)))) * x;
}

InvertedResidualImpl::InvertedResidualImpl(const MobileBlock& d)
    : has_shortcut(d.stride == 1 && d.in == d.out) {
  const auto activation = d.hard_swish ? Activation::hard_swish : Activation::relu;
  block = register_module("block", Sequential());
  if (d.inner != d.in) block->push_back(convolution({.in = d.in, .out = d.inner}, activation));
  block->push_back(convolution(
      {.in = d.inner, .out = d.inner, .kernel = d.kernel, .stride = d.stride, .groups = d.inner},
      activation));
  if (d.squeezes)
    block->push_back(Squeeze(d.inner, rounded_to_8(static_cast<double>(d.inner / 4))));
  block->push_back(convolution({.in = d.inner, .out = d.out}, Activation::none));
}

torch::Tensor InvertedResidualImpl::forward(const torch::Tensor& x) {
  return in_block(
      *this, [this](const torch::Tensor& in) { return body(in); }, x);
}

torch::Tensor InvertedResidualImpl::body(const torch::Tensor& x) {
  auto y = block->forward(x);
  if (has_shortcut) y += x;
  return y;
}

MobileNetV3Impl::MobileNetV3Impl(const std::string& name, const MobileNetTable& table,
                                 const ModelOptions& options)
    : channels(image_channels(name, options)) {
  const double factor =
      static_cast<double>(or_default(options.width, kMobilenetWidth)) / double{kMobilenetWidth};
  const int64_t first = widened(table.blocks.front(), factor).in;
  features->push_back(convolution({.in = channels, .out = first, .kernel = 3, .stride = 2},
                                  Activation::hard_swish));
  for (const MobileBlock& block : table.blocks)
    features->push_back(InvertedResidual(widened(block, factor)));
  const int64_t out = widened(table.blocks.back(), factor).out,
                last = rounded_to_8(static_cast<double>(table.last) * factor);
  features->push_back(convolution({.in = out, .out = 6 * out}, Activation::hard_swish));
  register_module("features", features);
  classifier->push_back(Linear(6 * out, last));
  classifier->push_back(Functional([](torch::Tensor x) { return torch::hardswish_(x); }));
  classifier->push_back(Dropout(options.dropout));
  classifier->push_back(Linear(last, options.classes));
  register_module("classifier", classifier);
  init_weights(*this);
  for (const auto& part : modules(/*include_self=*/false)) {
    if (auto* layer = part->as<Conv2dImpl>(); layer != nullptr && layer->bias.defined())
      init::zeros_(layer->bias);
    if (auto* layer = part->as<LinearImpl>()) {
      init::normal_(layer->weight, 0, kLinearDeviation);
      init::zeros_(layer->bias);
    }
  }
}

torch::Tensor MobileNetV3Impl::forward(const torch::Tensor& x) {
  require_images("models.mobilenet_v3", x, channels);
  const auto y = features->forward(x);
  return classifier->forward(torch::adaptive_avg_pool2d(y, {1, 1}).flatten(1));
}

namespace {

Family mobilenet_family(const std::string& name, const std::string& size,
                        const MobileNetTable& table) {
  std::vector<LayerGroup> groups;
  for (size_t i = 0; i < table.blocks.size() + 2; ++i) {
    const std::string part = "features." + std::to_string(i);
    groups.push_back({part, {part}});
  }
  for (const char* part : {"classifier.0", "classifier.3"}) groups.push_back({part, {part}});
  return {.name = name,
          .summary =
              "classifies images by MobileNetV3, " + size + ", with torchvision's parameter names",
          .sample_shape = {3, 224, 224},
          .options = {"width", "dropout"},
          .head = "classifier.3",
          .make = [=](const ModelOptions& options) {
            return Model(MobileNetV3(name, table, options), groups);
          }};
}

}  // namespace

void add_mobilenet_v3(Registry& all) {
  add(all, mobilenet_family("mobilenet_v3_large", "large", kLarge));
  add(all, mobilenet_family("mobilenet_v3_small", "small", kSmall));
}

}  // namespace tare::models
