// Builds GPT-2: attention, blocks and head.
#include "models/gpt.h"

#include <cmath>
#include <sstream>

#include "models/common.h"
#include "tare/base/error.h"

namespace tare::models {
namespace {

constexpr int64_t kLayers = 12, kHeads = 12, kWidth = 768, kContext = 1024;  // GPT-2 small
constexpr double kDeviation = 0.02;

int64_t context_of(const ModelOptions& options) {
  const auto& shape = options.sample_shape;
  if (shape.size() == 1 && shape[0] >= 1) return shape[0];
  std::ostringstream got;
  got << torch::IntArrayRef(shape);
  throw ConfigError("models.gpt", "sample_shape", "must be the longest context of tokens",
                    "a list of one number >= 1, such as [1024]", got.str());
}

void check_heads(int64_t width, int64_t heads) {
  if (width % heads != 0)
    throw ConfigError("models.gpt", "width", "must be a multiple of heads",
                      "a multiple of " + std::to_string(heads) + ", or other heads",
                      std::to_string(width));
}

torch::nn::LayerNorm norm(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

}  // namespace

GptLinearImpl::GptLinearImpl(int64_t in, int64_t out) {
  weight = register_parameter("weight", torch::empty({in, out}));
  bias = register_parameter("bias", torch::zeros({out}));
  torch::nn::init::normal_(weight, 0, kDeviation);
}

torch::Tensor GptLinearImpl::forward(const torch::Tensor& x) {
  auto sizes = x.sizes().vec();
  sizes.back() = weight.size(1);
  return torch::addmm(bias, x.reshape({-1, weight.size(0)}), weight).view(sizes);
}

GptAttentionImpl::GptAttentionImpl(int64_t width, int64_t head_count, double drop_rate)
    : heads(head_count), dropout(drop_rate) {
  c_attn = register_module("c_attn", GptLinear(width, 3 * width));
  c_proj = register_module("c_proj", GptLinear(width, width));
}

torch::Tensor GptAttentionImpl::forward(const torch::Tensor& x) {
  const int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
  auto parts = c_attn(x).split(width, /*dim=*/2);  // query, key, value
  for (auto& part : parts) part = part.view({batch, time, heads, width / heads}).transpose(1, 2);
  const auto y = torch::scaled_dot_product_attention(parts[0], parts[1], parts[2], {},
                                                     is_training() ? dropout : 0,
                                                     /*is_causal=*/true);
  return drop(c_proj(y.transpose(1, 2).reshape({batch, time, width})), dropout, is_training());
}

GptMlpImpl::GptMlpImpl(int64_t width, double drop_rate) : dropout(drop_rate) {
  c_fc = register_module("c_fc", GptLinear(width, 4 * width));
  c_proj = register_module("c_proj", GptLinear(4 * width, width));
}

torch::Tensor GptMlpImpl::forward(const torch::Tensor& x) {
  return drop(c_proj(torch::gelu(c_fc(x), "tanh")), dropout, is_training());
}

GptBlockImpl::GptBlockImpl(int64_t width, int64_t heads, double dropout) {
  ln_1 = register_module("ln_1", norm(width));
  attn = register_module("attn", GptAttention(width, heads, dropout));
  ln_2 = register_module("ln_2", norm(width));
  mlp = register_module("mlp", GptMlp(width, dropout));
}

torch::Tensor GptBlockImpl::forward(const torch::Tensor& x) {
  return in_block(
      *this, [this](const torch::Tensor& in) { return body(in); }, x);
}

torch::Tensor GptBlockImpl::body(const torch::Tensor& x) {
  const auto y = x + attn(ln_1(x));
  return y + mlp(ln_2(y));
}

GptImpl::GptImpl(const ModelOptions& options)
    : context(context_of(options)), dropout(options.dropout) {
  const int64_t layers = or_default(options.layers, kLayers),
                heads = or_default(options.heads, kHeads),
                width = or_default(options.width, kWidth);
  check_heads(width, heads);
  wte = register_module("wte", torch::nn::Embedding(options.classes, width));
  wpe = register_module("wpe", torch::nn::Embedding(context, width));
  h = register_module("h", torch::nn::ModuleList());
  const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(layers));
  for (int64_t i = 0; i < layers; ++i) {
    GptBlock block(width, heads, dropout);
    torch::nn::init::normal_(block->attn->c_proj->weight, 0, residual);
    torch::nn::init::normal_(block->mlp->c_proj->weight, 0, residual);
    h->push_back(block);
  }
  ln_f = register_module("ln_f", norm(width));
  for (auto& embedding : {wte, wpe}) torch::nn::init::normal_(embedding->weight, 0, kDeviation);
}

torch::Tensor GptImpl::forward(const torch::Tensor& tokens) {
  if (tokens.scalar_type() != torch::kLong || tokens.dim() != 2 || tokens.size(1) < 1 ||
      tokens.size(1) > context) {
    std::ostringstream got;
    got << tokens.scalar_type() << " " << tokens.sizes();
    throw ShapeError("models.gpt",
                     "tokens int64 [batch, time] with a time of 1 to " + std::to_string(context),
                     got.str());
  }
  const auto positions = wpe->weight.narrow(0, 0, tokens.size(1));
  auto x = drop(wte(tokens) + positions, dropout, is_training());
  for (const auto& block : *h) x = block->as<GptBlockImpl>()->forward(x);
  x = ln_f(x);
  return torch::linear(x, beside(x, wte->weight)).transpose(1, 2);
}

void add_gpt(Registry& all) {
  Family family{.name = "gpt",
                .summary = "predicts the next token by GPT-2, with its parameter names",
                .sample_shape = {kContext},
                .options = {"width", "layers", "heads", "dropout"},
                .head = "",
                .make = {},
                .tokens = true};
  family.make = [](const ModelOptions& options) {
    std::vector<LayerGroup> groups{{"embedding", {"wte", "wpe"}}};
    for (int64_t i = 0; i < or_default(options.layers, kLayers); ++i)
      groups.push_back({"h." + std::to_string(i), {"h." + std::to_string(i)}});
    groups.push_back({"ln_f", {"ln_f"}});
    return Model(Gpt(options), std::move(groups));
  };
  add(all, std::move(family));
}

}  // namespace tare::models
