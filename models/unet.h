// Defines the U-Net (Ronneberger et al. 2015, "U-Net: Convolutional Networks for Biomedical Image
// Segmentation"), padded and with batch norms, with the tensor names of Pytorch-UNet.
#pragma once

#include <torch/nn.h>

#include <vector>

#include "tare/model/block.h"
#include "tare/model/registry.h"

namespace tare::models {

/// Configures what only this family has.
struct UnetOptions {
  /// The way up enlarges by bilinear interpolation, else by transposed convolutions, which learn.
  bool bilinear = false;
};
void visit_fields(auto& visit, UnetOptions& o) { visit("bilinear", o.bilinear); }

/// Applies two 3x3 convolutions, each with a batch norm and ReLU.
struct DoubleConvImpl : torch::nn::Module, Block {
  /// Makes convolutions from `in` to `middle` to `out` channels.
  DoubleConvImpl(int64_t in, int64_t middle, int64_t out);
  /// Takes float32 [batch, in, height, width] and returns [batch, out, height, width], as a block:
  /// with recomputation or offload if they are set.
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Sequential double_conv{nullptr};  ///< convolution, norm, ReLU, and again
};
TORCH_MODULE(DoubleConv);

/// Halves the sides by max pooling, and applies a DoubleConv.
struct UnetDownImpl : torch::nn::Module {
  /// Makes a stage from `in` to `out` channels.
  UnetDownImpl(int64_t in, int64_t out);
  /// Takes float32 [batch, in, height, width] and returns [batch, out, height / 2, width / 2],
  /// rounded down.
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Sequential maxpool_conv{nullptr};  ///< pooling, then the convolutions
};
TORCH_MODULE(UnetDown);

/// Doubles the sides, joins what the way down had at that size, and applies a DoubleConv.
struct UnetUpImpl : torch::nn::Module {
  /// Makes a stage from `in` to `out` channels. With `bilinear`, `in` counts both inputs together;
  /// else the first input has `in` channels, and the enlarged one half as many.
  UnetUpImpl(int64_t in, int64_t out, bool bilinear);
  /// Takes the image of the stage below and that of the way down, both float32; returns
  /// [batch, out, height, width] of the size of `skip`. A side that pooling had rounded down is
  /// padded by zeros.
  torch::Tensor forward(const torch::Tensor& below, const torch::Tensor& skip);

  torch::nn::ConvTranspose2d up{nullptr};  ///< 2x2 of stride 2; null: bilinear
  DoubleConv conv{nullptr};                ///< from both images, joined
};
TORCH_MODULE(UnetUp);

/// Gives each pixel a score for each class. Layer groups and stages: inc, down1, ..., down4, up1,
/// ..., up4, outc; blocks: the convolutions of each stage.
struct UnetImpl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `width` (default 64) and `dropout`. Throws
  /// ConfigError unless sample_shape is [channels, height, width].
  UnetImpl(const ModelOptions& options, const UnetOptions& own);
  /// Takes images, float32 [batch, channels, height, width] of at least 16 pixels a side, and
  /// returns logits, float32 [batch, classes, height, width]. Throws ShapeError for another shape.
  torch::Tensor forward(const torch::Tensor& x);

  DoubleConv inc{nullptr};      ///< from channels to width
  std::vector<UnetDown> downs;  ///< down1, ..., down4: to 16 width, bilinear: 8 width
  std::vector<UnetUp> ups;      ///< up1, ..., up4: to width
  torch::nn::Sequential outc;   ///< the head, a 1x1 convolution "conv": width to classes
  int64_t channels = 0;         ///< channels of an image
  double dropout = 0;           ///< probability of dropout before the head
};
TORCH_MODULE(Unet);

}  // namespace tare::models
