// Clipping against torch.
#include <gmock/gmock.h>

#include <cmath>

#include "optim/support.h"
#include "tare/base/error.h"

namespace tare {
namespace {

using testing::backward;
using testing::make_net;
using testing::Net;

TEST(ClipGradNorm, EqualsTorch) {
  Net a = make_net(), b = make_net();
  for (const double limit : {0.05, 1e6}) {
    a->zero_grad();
    b->zero_grad();
    backward(a, 0);
    backward(b, 0);
    const auto norm = clip_grad_norm(make_groups(Model(a), {}), limit);
    const double reference = torch::nn::utils::clip_grad_norm_(b->parameters(), limit);
    EXPECT_NEAR(norm.item<double>(), reference, 1e-6);
    for (size_t i = 0; i < a->parameters().size(); ++i) {
      EXPECT_TRUE(
          torch::allclose(a->parameters()[i].grad(), b->parameters()[i].grad(), 1e-6, 1e-9));
    }
  }
}

TEST(ClipGradNorm, LeavesOutUndefinedGradients) {
  Net net = make_net();
  const auto groups = make_groups(Model(net), {});
  EXPECT_FALSE(clip_grad_norm(groups, 1).defined());
  net->fc->bias.mutable_grad() = torch::full({3}, 2.0);
  EXPECT_NEAR(clip_grad_norm(groups, 1).item<double>(), 2 * std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(net->fc->bias.grad().norm().item<double>(), 1, 1e-5);
  EXPECT_FALSE(net->fc->weight.grad().defined());
}

TEST(ClipGradNorm, ANormThatIsNotFiniteSpoilsEveryGradient) {
  Net net = make_net();
  backward(net, 0);
  net->fc->bias.mutable_grad().fill_(NAN);
  (void)clip_grad_norm(make_groups(Model(net), {}), 1);
  EXPECT_TRUE(net->conv->weight.grad().isnan().all().item<bool>());
}

TEST(ClipGradValue, ClampsEveryElement) {
  Net net = make_net();
  net->fc->bias.mutable_grad() = torch::tensor({-3.0f, 0.25f, 3.0f});
  clip_grad_value(make_groups(Model(net), {}), 0.5);
  EXPECT_TRUE(torch::equal(net->fc->bias.grad(), torch::tensor({-0.5f, 0.25f, 0.5f})));
}

TEST(ClipGrad, RefusesLimitsThatAreNotPositive) {
  EXPECT_THROW((void)clip_grad_norm({}, 0), ConfigError);
  EXPECT_THROW((void)clip_grad_norm({}, NAN), ConfigError);
  EXPECT_THROW(clip_grad_value({}, -1), ConfigError);
}

}  // namespace
}  // namespace tare
