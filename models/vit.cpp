// Builds the Vision Transformer.
#include "models/vit.h"

#include <cmath>

#include "models/common.h"
#include "tare/base/error.h"

namespace tare::models {
namespace {

constexpr int64_t kVitWidth = 768, kVitLayers = 12, kVitHeads = 12;  // torchvision's vit_b_16
constexpr double kPositionDeviation = 0.02, kBiasDeviation = 1e-6, kVitNormEps = 1e-6;

VitSizes sizes_of(const ModelOptions& options, const VitOptions& own) {
  const int64_t width = or_default(options.width, kVitWidth);
  const VitSizes sizes{.width = width,
                       .layers = or_default(options.layers, kVitLayers),
                       .heads = or_default(options.heads, kVitHeads),
                       .mlp = or_default(own.mlp, 4 * width),
                       .patch = own.patch};
  if (width % sizes.heads != 0)
    throw ConfigError("models.vit", "width", "must be a multiple of heads",
                      "a multiple of " + std::to_string(sizes.heads) + ", or other heads",
                      std::to_string(width));
  return sizes;
}

/// Returns the tokens of an image, the one of the class included.
int64_t tokens_of(const std::vector<int64_t>& image, int64_t patch) {
  if (image[1] % patch != 0 || image[2] % patch != 0)
    throw ConfigError("models.vit", "sample_shape", "must have sides that patches fill",
                      "multiples of " + std::to_string(patch) + ", or another options.patch",
                      c10::str(torch::IntArrayRef(image)));
  return image[1] / patch * (image[2] / patch) + 1;
}

torch::nn::LayerNorm vit_norm(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(kVitNormEps));
}

torch::nn::Linear inner_linear(int64_t in, int64_t out) {
  torch::nn::Linear layer(in, out);
  torch::nn::init::xavier_uniform_(layer->weight);
  torch::nn::init::normal_(layer->bias, 0, kBiasDeviation);
  return layer;
}

std::string layer_name(int64_t index) { return "encoder_layer_" + std::to_string(index); }

}  // namespace

VitAttentionImpl::VitAttentionImpl(int64_t width, int64_t head_count) : heads(head_count) {
  in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * width, width}));
  in_proj_bias = register_parameter("in_proj_bias", torch::zeros({3 * width}));
  out_proj = register_module("out_proj", torch::nn::Linear(width, width));
  torch::nn::init::xavier_uniform_(in_proj_weight);
  torch::nn::init::zeros_(out_proj->bias);
}

torch::Tensor VitAttentionImpl::forward(const torch::Tensor& x) {
  const int64_t batch = x.size(0), tokens = x.size(1), width = x.size(2);
  auto parts = torch::linear(x, in_proj_weight, in_proj_bias).split(width, /*dim=*/2);
  for (auto& part : parts) part = part.view({batch, tokens, heads, width / heads}).transpose(1, 2);
  const auto y = torch::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
  return out_proj(y.transpose(1, 2).reshape({batch, tokens, width}));
}

VitBlockImpl::VitBlockImpl(const VitSizes& sizes, double drop_rate) : dropout(drop_rate) {
  ln_1 = register_module("ln_1", vit_norm(sizes.width));
  self_attention = register_module("self_attention", VitAttention(sizes.width, sizes.heads));
  ln_2 = register_module("ln_2", vit_norm(sizes.width));
  mlp =
      register_module("mlp", torch::nn::Sequential(inner_linear(sizes.width, sizes.mlp),
                                                   torch::nn::GELU(), torch::nn::Dropout(drop_rate),
                                                   inner_linear(sizes.mlp, sizes.width),
                                                   torch::nn::Dropout(drop_rate)));
}

torch::Tensor VitBlockImpl::forward(const torch::Tensor& x) {
  return in_block(
      *this, [this](const torch::Tensor& in) { return body(in); }, x);
}

torch::Tensor VitBlockImpl::body(const torch::Tensor& x) {
  const auto y = x + drop(self_attention(ln_1(x)), dropout, is_training());
  return y + mlp->forward(ln_2(y));
}

VitEncoderImpl::VitEncoderImpl(int64_t tokens, const VitSizes& sizes, double drop_rate)
    : dropout(drop_rate) {
  pos_embedding = register_parameter("pos_embedding", torch::empty({1, tokens, sizes.width}));
  torch::nn::init::normal_(pos_embedding, 0, kPositionDeviation);
  for (int64_t i = 0; i < sizes.layers; ++i)
    layers->push_back(layer_name(i), VitBlock(sizes, drop_rate));
  register_module("layers", layers);
  ln = register_module("ln", vit_norm(sizes.width));
}

torch::Tensor VitEncoderImpl::forward(const torch::Tensor& x) {
  return ln(layers->forward(drop(x + pos_embedding, dropout, is_training())));
}

VitImpl::VitImpl(const ModelOptions& options, const VitOptions& own) : image(options.sample_shape) {
  const int64_t channels = image_channels("vit", options);
  const VitSizes sizes = sizes_of(options, own);
  const int64_t tokens = tokens_of(image, sizes.patch);
  class_token = register_parameter("class_token", torch::zeros({1, 1, sizes.width}));
  conv_proj = register_module(
      "conv_proj",
      torch::nn::Conv2d(
          torch::nn::Conv2dOptions(channels, sizes.width, sizes.patch).stride(sizes.patch)));
  const auto inputs = static_cast<double>(channels * sizes.patch * sizes.patch);
  torch::nn::init::normal_(conv_proj->weight, 0, std::sqrt(1 / inputs));
  torch::nn::init::zeros_(conv_proj->bias);
  encoder = register_module("encoder", VitEncoder(tokens, sizes, options.dropout));
  heads->push_back("head", torch::nn::Linear(sizes.width, options.classes));
  register_module("heads", heads);
}

torch::Tensor VitImpl::forward(const torch::Tensor& x) {
  if (x.dim() != 4 || x.sizes().slice(1) != torch::IntArrayRef(image))
    throw ShapeError("models.vit",
                     "images [batch, " + std::to_string(image[0]) + ", " +
                         std::to_string(image[1]) + ", " + std::to_string(image[2]) + "]",
                     c10::str(x.sizes()));
  const auto tokens = conv_proj(x).flatten(2).transpose(1, 2);
  const auto all = torch::cat({class_token.expand({x.size(0), 1, -1}), tokens}, /*dim=*/1);
  return heads->forward(encoder(all).select(1, 0));
}

namespace {

Model make_vit(const ModelOptions& options, const VitOptions& own) {
  Vit vit(options, own);
  std::vector<LayerGroup> groups{
      {"embedding", {"class_token", "conv_proj", "encoder.pos_embedding"}}};
  for (int64_t i = 0; i < or_default(options.layers, kVitLayers); ++i)
    groups.push_back({layer_name(i), {"encoder.layers." + layer_name(i)}});
  groups.push_back({"ln", {"encoder.ln"}});
  groups.push_back({"heads", {"heads"}});
  return Model(std::move(vit), std::move(groups));
}

}  // namespace

void add_vit(Registry& all) {
  all.add<VitOptions>("vit", "classifies images by a Vision Transformer, with torchvision's names",
                      [](const VitOptions& own) {
                        return Family{.sample_shape = {3, 224, 224},
                                      .options = {"width", "layers", "heads", "dropout"},
                                      .head = "heads",
                                      .make = [own](const ModelOptions& options) {
                                        return make_vit(options, own);
                                      }};
                      });
}

}  // namespace tare::models
