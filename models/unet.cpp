// Builds the U-Net.
#include "models/unet.h"

#include "models/common.h"

namespace tare::models {
namespace {

constexpr int64_t kUnetWidth = 64, kUnetStages = 4;
constexpr int64_t kLeast = int64_t{1} << kUnetStages;  // pixels a side: each stage halves them

}  // namespace

DoubleConvImpl::DoubleConvImpl(int64_t in, int64_t middle, int64_t out) {
  using namespace torch::nn;
  double_conv = register_module(
      "double_conv",
      Sequential(conv(in, middle, 3), BatchNorm2d(middle), ReLU(ReLUOptions(/*inplace=*/true)),
                 conv(middle, out, 3), BatchNorm2d(out), ReLU(ReLUOptions(/*inplace=*/true))));
}

torch::Tensor DoubleConvImpl::forward(const torch::Tensor& x) {
  return in_block(
      *this, [this](const torch::Tensor& in) { return double_conv->forward(in); }, x);
}

UnetDownImpl::UnetDownImpl(int64_t in, int64_t out) {
  maxpool_conv = register_module(
      "maxpool_conv", torch::nn::Sequential(torch::nn::MaxPool2d(2), DoubleConv(in, out, out)));
}

torch::Tensor UnetDownImpl::forward(const torch::Tensor& x) { return maxpool_conv->forward(x); }

UnetUpImpl::UnetUpImpl(int64_t in, int64_t out, bool bilinear) {
  if (!bilinear)
    up = register_module("up", torch::nn::ConvTranspose2d(
                                   torch::nn::ConvTranspose2dOptions(in, in / 2, 2).stride(2)));
  conv = register_module("conv", DoubleConv(in, bilinear ? in / 2 : out, out));
}

torch::Tensor UnetUpImpl::forward(const torch::Tensor& below, const torch::Tensor& skip) {
  torch::Tensor x = up.is_empty()
                        ? torch::upsample_bilinear2d(below, {2 * below.size(2), 2 * below.size(3)},
                                                     /*align_corners=*/true)
                        : up(below);
  const int64_t rows = skip.size(2) - x.size(2), columns = skip.size(3) - x.size(3);
  if (rows > 0 || columns > 0)
    x = torch::constant_pad_nd(x, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
  return conv(torch::cat({beside(x, skip), x}, /*dim=*/1));
}

UnetImpl::UnetImpl(const ModelOptions& options, const UnetOptions& own)
    : channels(image_channels("unet", options)), dropout(options.dropout) {
  const int64_t width = or_default(options.width, kUnetWidth), factor = own.bilinear ? 2 : 1;
  inc = register_module("inc", DoubleConv(channels, width, width));
  int64_t in = width;
  for (int64_t stage = 1; stage <= kUnetStages; ++stage) {
    const int64_t out = stage == kUnetStages ? 2 * in / factor : 2 * in;
    downs.push_back(register_module("down" + std::to_string(stage), UnetDown(in, out)));
    in = 2 * in;
  }
  for (int64_t stage = 1; stage <= kUnetStages; ++stage) {
    const int64_t out = stage == kUnetStages ? width : in / 2 / factor;
    ups.push_back(register_module("up" + std::to_string(stage), UnetUp(in, out, own.bilinear)));
    in = in / 2;
  }
  outc->push_back("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(width, options.classes, 1)));
  register_module("outc", outc);
  init_weights(*this);
}

torch::Tensor UnetImpl::forward(const torch::Tensor& x) {
  require_images("models.unet", x, channels, kLeast);
  std::vector<torch::Tensor> skips{inc(x)};
  for (auto& down : downs) skips.push_back(down(skips.back()));
  torch::Tensor y = skips.back();
  for (size_t i = 0; i < ups.size(); ++i) y = ups[i](y, skips[skips.size() - 2 - i]);
  return outc->forward(drop(y, dropout, is_training()));
}

void add_unet(Registry& all) {
  all.add<UnetOptions>("unet", "segments images by a U-Net: a score of each class for each pixel",
                       [](const UnetOptions& own) {
                         return Family{.sample_shape = {3, 256, 256},
                                       .options = {"width", "dropout"},
                                       .head = "outc",
                                       .make = [own](const ModelOptions& options) {
                                         return Model(Unet(options, own));
                                       }};
                       });
}

}  // namespace tare::models
