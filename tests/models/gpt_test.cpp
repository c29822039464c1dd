// The GPT family: GPT-2's tensors, and its forward pass against plain loops.
#include "models/gpt.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "models/parameter_count.h"
#include "tare/base/error.h"
#include "tare/model/registry.h"
#include "tare/trace/trace.h"

namespace tare {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::parameter_count;

std::vector<std::pair<std::string, std::vector<int64_t>>> names_and_shapes(const Model& model) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> all;
  for (const auto& [name, tensor] : model.state()) all.emplace_back(name, tensor.sizes().vec());
  return all;
}

TEST(Gpt, HoldsTheTensorsOfGpt2) {
  const plan::MetaScope without_memory;
  const Model model = models::make("gpt", {.classes = 50257});
  const auto all = names_and_shapes(model);
  EXPECT_EQ(all.size(), 148u);  // openai-community/gpt2 without its masks "attn.bias"
  EXPECT_EQ(parameter_count(model), 124'439'808);
  EXPECT_EQ(all[0].first, "wte.weight");
  EXPECT_EQ(all[1].first, "wpe.weight");
  EXPECT_THAT(all, Contains(Pair("wte.weight", ElementsAre(50257, 768))));
  EXPECT_THAT(all, Contains(Pair("wpe.weight", ElementsAre(1024, 768))));
  EXPECT_THAT(all, Contains(Pair("ln_f.bias", ElementsAre(768))));
  const std::vector<std::pair<std::string, std::vector<int64_t>>> block{
      {"ln_1.weight", {768}},
      {"ln_1.bias", {768}},
      {"attn.c_attn.weight", {768, 2304}},
      {"attn.c_attn.bias", {2304}},
      {"attn.c_proj.weight", {768, 768}},
      {"attn.c_proj.bias", {768}},
      {"ln_2.weight", {768}},
      {"ln_2.bias", {768}},
      {"mlp.c_fc.weight", {768, 3072}},
      {"mlp.c_fc.bias", {3072}},
      {"mlp.c_proj.weight", {3072, 768}},
      {"mlp.c_proj.bias", {768}}};
  for (const char* layer : {"h.0.", "h.11."})
    for (const auto& [name, shape] : block) EXPECT_THAT(all, Contains(Pair(layer + name, shape)));
}

TEST(Gpt, StartsFromGpt2sDistribution) {
  torch::manual_seed(0);
  const Model model = models::make(
      "gpt", {.classes = 500, .sample_shape = {64}, .width = 128, .layers = 8, .heads = 4});
  for (const auto& p : model.parameters()) {
    if (p.name.ends_with("bias")) {
      EXPECT_TRUE(p.tensor.eq(0).all().item<bool>()) << p.name;
    } else if (p.kind == ParameterKind::norm) {
      EXPECT_TRUE(p.tensor.eq(1).all().item<bool>()) << p.name;
    } else {
      const double deviation = p.name.ends_with("c_proj.weight") ? 0.02 / 4 : 0.02;
      EXPECT_NEAR(p.tensor.std().item<double>(), deviation, 0.03 * deviation) << p.name;
    }
  }
}

TEST(Gpt, HasAGroupForEachBlock) {
  const Model model =
      models::make("gpt", {.sample_shape = {4}, .width = 8, .layers = 2, .heads = 2});
  std::vector<std::string> names;
  for (const auto& group : model.layer_groups()) names.push_back(group.name);
  EXPECT_THAT(names, ElementsAre("embedding", "h.0", "h.1", "ln_f"));
}

using Rows = std::vector<std::vector<double>>;

/// The tensors of a model by name, in float64.
class Weights {
 public:
  explicit Weights(const Model& model) : model_(model) {}

  [[nodiscard]] double at(const std::string& name, int64_t i, int64_t j = -1) const {
    for (const auto& p : model_.parameters()) {
      if (p.name != name) continue;
      return j < 0 ? p.tensor[i].item<double>() : p.tensor[i][j].item<double>();
    }
    throw std::out_of_range(name);
  }

 private:
  const Model& model_;
};

Rows linear(const Weights& w, const std::string& name, const Rows& x, int64_t out) {
  Rows y(x.size(), std::vector<double>(static_cast<size_t>(out)));
  for (size_t t = 0; t < x.size(); ++t) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = w.at(name + ".bias", o);
      for (size_t i = 0; i < x[t].size(); ++i)
        sum += x[t][i] * w.at(name + ".weight", static_cast<int64_t>(i), o);
      y[t][static_cast<size_t>(o)] = sum;
    }
  }
  return y;
}

Rows norm(const Weights& w, const std::string& name, Rows x) {
  for (auto& row : x) {
    const auto count = static_cast<double>(row.size());
    double mean = 0, variance = 0;
    for (const double v : row) mean += v / count;
    for (const double v : row) variance += (v - mean) * (v - mean) / count;
    for (size_t i = 0; i < row.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * w.at(name + ".weight", at) +
               w.at(name + ".bias", at);
    }
  }
  return x;
}

void add(Rows& x, const Rows& y) {
  for (size_t t = 0; t < x.size(); ++t)
    for (size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
}

/// Softmax over the places up to `t` of query * key / sqrt(size), times the values, of one head.
void attend(const Rows& qkv, size_t t, size_t head, size_t size, size_t width,
            std::vector<double>& out) {
  std::vector<double> share(t + 1);
  double total = 0;
  for (size_t s = 0; s <= t; ++s) {
    double score = 0;
    for (size_t i = head * size; i < (head + 1) * size; ++i) score += qkv[t][i] * qkv[s][width + i];
    share[s] = std::exp(score / std::sqrt(static_cast<double>(size)));
    total += share[s];
  }
  for (size_t i = head * size; i < (head + 1) * size; ++i)
    for (size_t s = 0; s <= t; ++s) out[i] += share[s] / total * qkv[s][2 * width + i];
}

Rows attention(const Weights& w, const Rows& x, size_t heads) {
  const size_t width = x[0].size();
  const Rows qkv = linear(w, "h.0.attn.c_attn", x, static_cast<int64_t>(3 * width));
  Rows y(x.size(), std::vector<double>(width));
  for (size_t t = 0; t < x.size(); ++t)
    for (size_t head = 0; head < heads; ++head) attend(qkv, t, head, width / heads, width, y[t]);
  return linear(w, "h.0.attn.c_proj", y, static_cast<int64_t>(width));
}

Rows feed_forward(const Weights& w, const Rows& x) {
  const auto width = static_cast<int64_t>(x[0].size());
  Rows y = linear(w, "h.0.mlp.c_fc", x, 4 * width);
  for (auto& row : y)
    for (double& v : row)
      v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  return linear(w, "h.0.mlp.c_proj", y, width);
}

/// Logits [time, vocabulary] of a model of one block.
Rows forward(const Weights& w, const std::vector<int64_t>& tokens, size_t width, size_t heads,
             int64_t vocabulary) {
  Rows x(tokens.size(), std::vector<double>(width));
  for (size_t t = 0; t < tokens.size(); ++t)
    for (size_t i = 0; i < width; ++i)
      x[t][i] = w.at("wte.weight", tokens[t], static_cast<int64_t>(i)) +
                w.at("wpe.weight", static_cast<int64_t>(t), static_cast<int64_t>(i));
  add(x, attention(w, norm(w, "h.0.ln_1", x), heads));
  add(x, feed_forward(w, norm(w, "h.0.ln_2", x)));
  x = norm(w, "ln_f", x);
  Rows logits(tokens.size(), std::vector<double>(static_cast<size_t>(vocabulary)));
  for (size_t t = 0; t < tokens.size(); ++t)
    for (int64_t v = 0; v < vocabulary; ++v)
      for (size_t i = 0; i < width; ++i)
        logits[t][static_cast<size_t>(v)] +=
            x[t][i] * w.at("wte.weight", v, static_cast<int64_t>(i));
  return logits;
}

TEST(Gpt, ComputesWhatPlainLoopsDo) {
  constexpr int64_t kWidth = 6, kHeads = 2, kVocabulary = 5;
  constexpr double kRounding = 1e-5;  // float32 against float64, logits of about 1
  torch::manual_seed(3);
  const Model model = models::make(
      "gpt",
      {.classes = kVocabulary, .sample_shape = {8}, .width = kWidth, .layers = 1, .heads = kHeads});
  const torch::NoGradGuard no_grad;
  for (const auto& p : model.parameters()) at::Tensor(p.tensor).normal_(0, 0.5);  // biases too
  const std::vector<int64_t> tokens{4, 0, 2, 2, 1};
  const auto output = model.forward(torch::tensor(tokens).unsqueeze(0));
  ASSERT_EQ(output.sizes(), torch::IntArrayRef({1, kVocabulary, 5}));
  const Rows wanted = forward(Weights(model), tokens, kWidth, kHeads, kVocabulary);
  for (size_t t = 0; t < tokens.size(); ++t)
    for (size_t v = 0; v < kVocabulary; ++v)
      EXPECT_NEAR(output[0][static_cast<int64_t>(v)][static_cast<int64_t>(t)].item<double>(),
                  wanted[t][v], kRounding);
}

TEST(Gpt, SeesNoLaterToken) {
  Model model =
      models::make("gpt", {.classes = 7, .sample_shape = {6}, .width = 8, .layers = 2, .heads = 2});
  const torch::NoGradGuard no_grad;
  const auto a = torch::tensor({{1, 2, 3, 4}}), b = torch::tensor({{1, 2, 6, 0}});
  const auto early = [&](const torch::Tensor& tokens) {
    return model.forward(tokens).narrow(2, 0, 2).contiguous();
  };
  EXPECT_TRUE(torch::equal(early(a), early(b)));
  EXPECT_FALSE(torch::equal(model.forward(a), model.forward(b)));
}

TEST(Gpt, TakesShorterTextsOnly) {
  const Model model =
      models::make("gpt", {.sample_shape = {6}, .width = 8, .layers = 1, .heads = 2});
  EXPECT_EQ(model.forward(torch::zeros({2, 3}, torch::kLong)).sizes(),
            torch::IntArrayRef({2, 10, 3}));
  for (const auto& wrong : {torch::zeros({2, 7}, torch::kLong), torch::zeros({2, 0}, torch::kLong),
                            torch::zeros({6}, torch::kLong), torch::zeros({2, 6})})
    EXPECT_THROW((void)model.forward(wrong), ShapeError) << wrong.sizes();
}

TEST(Gpt, RefusesOptionsThatDoNotFitTogether) {
  EXPECT_THROW((void)models::make("gpt", {.sample_shape = {1, 28, 28}}), ConfigError);
  EXPECT_THROW((void)models::make("gpt", {.sample_shape = {0}}), ConfigError);
  EXPECT_THROW((void)models::make("resnet9", {.layers = 3}), ConfigError);
  EXPECT_THROW((void)models::make("mlp", {.heads = 3}), ConfigError);
  try {
    (void)models::make("gpt", {.width = 10, .heads = 4});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("width must be a multiple of heads, got 10; allowed: a multiple of 4"));
  }
}

}  // namespace
}  // namespace tare
