// Tests what is drawn on a card: a seed gives its numbers again, mean and spread are what they
// should be, and gradients are those of what was drawn in the forward pass.
#include <algorithm>

#include "trace/on_card.h"
#include "trace/operator_cases.h"

namespace tare::plan {
namespace {

constexpr int64_t kDrawn = 20'000;

Tensor drawn_from(const std::function<Tensor()>& draw, uint64_t seed) {
  torch::manual_seed(seed);
  return draw();
}
torch::TensorOptions card() { return memory::CudaTraits::device(); }

using DrawnOnCard = OnCard<::testing::Test>;

TEST_F(DrawnOnCard, DistributionsHaveTheirMeanAndSpread) {
  struct Distribution {
    const char* name;
    std::function<Tensor()> draw;
    double mean, deviation;
  };
  const auto empty = [] { return torch::empty({kDrawn}, card()); };
  const auto ones = [] { return torch::ones({kDrawn}, card()); };
  const std::vector<Distribution> all{
      {"rand", [] { return torch::rand({kDrawn}, card()); }, 0.5, std::sqrt(1. / 12)},
      {"randn", [] { return torch::randn({kDrawn}, card()); }, 0, 1},
      {"randn_half", [] { return torch::randn({kDrawn}, card().dtype(at::kHalf)); }, 0, 1},
      {"randint", [] { return torch::randint(10, {kDrawn}, card()); }, 4.5, std::sqrt(99. / 12)},
      {"uniform", [=] { return empty().uniform_(-1, 3); }, 1, std::sqrt(16. / 12)},
      {"normal", [=] { return empty().normal_(2, 3); }, 2, 3},
      {"exponential", [=] { return empty().exponential_(2); }, 0.5, 0.5},
      {"geometric", [=] { return empty().geometric_(0.5); }, 2, std::sqrt(2.)},
      {"log_normal", [=] { return empty().log_normal_(0, 0.25).log(); }, 0, 0.25},
      {"bernoulli", [=] { return torch::bernoulli(ones() * 0.25); }, 0.25, std::sqrt(0.1875)},
      {"bernoulli_in_place", [=] { return empty().bernoulli_(0.25); }, 0.25, std::sqrt(0.1875)},
      {"poisson", [=] { return torch::poisson(ones() * 4); }, 4, 2},
      {"multinomial",
       [] {
         return torch::tensor({1., 3.}, card()).multinomial(kDrawn, true);
       },
       0.75, std::sqrt(0.1875)},
      {"dropout", [=] { return torch::dropout(ones(), 0.25, true); }, 1, std::sqrt(1. / 3)},
      {"feature_dropout",
       [=] {
         return torch::feature_dropout(ones().view({200, 100, 1}), 0.5, true);
       },
       1, 1},
      {"alpha_dropout",
       [=] { return torch::alpha_dropout(torch::randn({kDrawn}, card()), 0.25, true); }, 0, 1},
      {"rrelu", [=] { return torch::rrelu(-ones(), 0.25, 0.75, true); }, -0.5,
       std::sqrt(0.25 / 12)},
  };
  for (const Distribution& each : all) {
    SCOPED_TRACE(each.name);
    const Tensor first = drawn_from(each.draw, 7);
    EXPECT_TRUE(first.is_cuda());
    EXPECT_TRUE(torch::equal(first, drawn_from(each.draw, 7)));
    EXPECT_FALSE(torch::equal(first, drawn_from(each.draw, 8)));
    const Tensor numbers = first.to(at::kDouble);
    constexpr double kErrors = 6;  // standard errors
    EXPECT_NEAR(numbers.mean().item<double>(), each.mean,
                kErrors * each.deviation / std::sqrt(kDrawn));
    EXPECT_NEAR(numbers.std().item<double>(), each.deviation, 0.05 * each.deviation);
  }
}

TEST_F(DrawnOnCard, PermutationsHaveEachNumberOnce) {
  const auto draw = [] { return torch::randperm(5000, card().dtype(at::kLong)); };
  const Tensor first = drawn_from(draw, 7);
  EXPECT_TRUE(torch::equal(std::get<0>(first.sort()).cpu(), torch::arange(5000)));
  EXPECT_TRUE(torch::equal(first, drawn_from(draw, 7)));
  EXPECT_FALSE(torch::equal(first, drawn_from(draw, 8)));
}

// The backward pass must take the mask of the forward pass: a quotient of differences, with the
// seed of each forward, is the gradient.
TEST_F(DrawnOnCard, GradientsAreOfWhatWasDrawn) {
  struct Layer {
    const char* name;
    std::vector<int64_t> sizes;
    std::function<Tensor(const Tensor&)> compute;
  };
  torch::manual_seed(1);
  nn::LSTM lstm(nn::LSTMOptions(8, 8).num_layers(2).dropout(0.5));
  const auto attention = [](const Tensor& x) {
    return at::scaled_dot_product_attention(x, x * 0.5, x + 1, {}, 0.5);
  };
  const std::vector<int64_t> heads{2, 4, 8, 8}, images{2, 8, 6, 6};
  const std::vector<Layer> all{
      {"dropout", {64, 32}, [](const Tensor& x) { return torch::dropout(x, 0.5, true); }},
      {"dropout_in_place",
       {64, 32},
       [](const Tensor& x) {
         Tensor y = x * 1;
         return torch::dropout_(y, 0.5, true);
       }},
      {"feature_dropout", images, [](const Tensor& x) { return F::dropout2d(x); }},
      {"alpha_dropout",
       {64, 32},
       [](const Tensor& x) { return torch::alpha_dropout(x, 0.5, true); }},
      {"rrelu", {64, 32}, [](const Tensor& x) { return torch::rrelu(x, 0.1, 0.9, true); }},
      {"fractional_max_pool", images,
       [](const Tensor& x) {
         return F::fractional_max_pool2d(x, F::FractionalMaxPool2dFuncOptions(2).output_size(3));
       }},
      {"attention", heads, attention},
      {"lstm",
       {5, 3, 8},
       [&](const Tensor& x) {
         lstm->to(x.device());
         return std::get<0>(lstm(x));
       }},
  };
  for (const Layer& each : all) {
    SCOPED_TRACE(each.name);
    Tensor x = torch::randn(each.sizes, card());
    x = (x + 0.1 * x.sign()).requires_grad_();  // no step crosses 0, where slopes change
    const Tensor direction = torch::randn(each.sizes, card());
    const auto value_at = [&](const Tensor& input) {
      return drawn_from([&] { return each.compute(input).square().sum(); }, 3);
    };
    const double gradient =
        (torch::autograd::grad({value_at(x)}, {x})[0] * direction).sum().item<double>();
    constexpr double kStep = 1e-3;
    const torch::NoGradGuard no_grad;
    const Tensor difference = value_at(x + kStep * direction) - value_at(x - kStep * direction);
    EXPECT_NEAR(difference.item<double>() / (2 * kStep), gradient, 0.02 * (1 + std::abs(gradient)));
  }
}

}  // namespace
}  // namespace tare::plan
