// Tensors on a card are read, compared, copied in any order and type, and grow as results.
#include <torch/torch.h>

#include "trace/on_card.h"

namespace tare::plan {
namespace {

using at::Tensor;
using TensorsOnCard = OnCard<::testing::Test>;

TEST_F(TensorsOnCard, AreReadAndCompared) {
  const Tensor host = torch::rand({6, 8}), card = host.to(memory::CudaTraits::device());
  EXPECT_NEAR(card.sum().item<double>(), host.sum().item<double>(), 1e-4);
  EXPECT_TRUE(torch::equal(card, card.clone()));
  EXPECT_FALSE(torch::equal(card, card + 1));
  EXPECT_FALSE(torch::equal(card, card.slice(0, 0, 5)));
  EXPECT_TRUE(torch::allclose(card, card + 1e-9));
  EXPECT_TRUE(card.isfinite().all().item<bool>());
  EXPECT_FALSE((card / 0).isfinite().any().item<bool>());
}

TEST_F(TensorsOnCard, AreCopiedInAnyOrderAndType) {
  const auto options = torch::TensorOptions(memory::CudaTraits::device());
  const Tensor host = torch::rand({6, 8}), card = host.to(options);
  EXPECT_TRUE((card.t() + 1).cpu().equal(host.t() + 1));
  const Tensor half = torch::empty({8, 6}, options.dtype(at::kHalf));
  half.t().copy_(host);
  EXPECT_TRUE(half.cpu().equal(host.t().to(at::kHalf)));
  const Tensor back = torch::empty({8, 6}, at::kDouble);
  back.t().copy_(card);
  EXPECT_TRUE(back.equal(host.t().to(at::kDouble)));
  const Tensor part = torch::zeros({6, 16}, options);
  part.slice(1, 1, 16, 2).copy_(card);
  EXPECT_TRUE(part.cpu().slice(1, 1, 16, 2).equal(host));
  EXPECT_EQ(part.cpu().slice(1, 0, 16, 2).count_nonzero().item<int64_t>(), 0);
}

TEST_F(TensorsOnCard, GrowAsResults) {
  const auto options = torch::TensorOptions(memory::CudaTraits::device());
  const Tensor host = torch::rand({6, 8}), card = host.to(options);
  Tensor sum = torch::empty({0}, options), chosen = torch::empty({0}, options),
         places = torch::empty({0}, options.dtype(at::kLong));
  torch::add_out(sum, card, card);
  EXPECT_TRUE(sum.cpu().equal(host + host));
  torch::masked_select_out(chosen, card, card > 0.5);
  EXPECT_TRUE(chosen.cpu().equal(host.masked_select(host > 0.5)));
  torch::nonzero_out(places, card > 0.5);
  EXPECT_TRUE(places.cpu().equal((host > 0.5).nonzero()));
}

}  // namespace
}  // namespace tare::plan
