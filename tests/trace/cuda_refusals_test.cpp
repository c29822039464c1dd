// Operators refuse on a card what they refuse on the host: operands on two devices, wrong shapes
// and types. What they have allocated meanwhile is given back.
#include <gmock/gmock.h>

#include <set>

#include "tare/memory/backend.h"
#include "trace/on_card.h"
#include "trace/operator_cases.h"

namespace tare::plan {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class RefusalsOnCard : public OnCard<::testing::Test> {
 protected:
  /// The thread of a backward frees its last operands when it begins another task: here one without
  /// numbers, so that nothing of tests before is freed while bytes are compared.
  void SetUp() override {
    OnCard::SetUp();
    if (IsSkipped()) return;
    const Tensor none = torch::empty({0}, memory::CudaTraits::device()).set_requires_grad(true);
    none.view({0}).backward(torch::empty_like(none));
    // The libraries keep workspaces from their first product and inverse on.
    if (memory::kernels_compute())
      (void)torch::linalg_inv(torch::eye(2, memory::CudaTraits::device()));
  }
  /// Expects an error of LibTorch, and that the card holds no more than before. Returns its text.
  static std::string refusal(const std::string& name, const std::function<void()>& work) {
    const auto& backend = memory::backend(memory::CudaTraits::device());
    const memory::Usage before = backend.usage();
    std::string text;
    try {
      work();
      ADD_FAILURE() << name << " was computed";
    } catch (const c10::Error& error) {
      text = error.what_without_backtrace();
    }
    EXPECT_EQ(backend.usage().allocated_bytes, before.allocated_bytes) << name;
    EXPECT_EQ(backend.usage().blocks, before.blocks) << name;
    return text;
  }
};

TEST_F(RefusalsOnCard, OperandsOnTwoDevices) {
  const Tensor host = torch::rand({6, 6}), card = host.to(memory::CudaTraits::device());
  const Tensor rows = torch::zeros({6}, torch::kLong), rows_on_card = rows.to(card.device());
  const Tensor image = torch::rand({2, 3, 6, 6}, card.device()), filter = torch::rand({4, 3, 3, 3});
  const std::vector<Case> refused{
      {"add", [&] { (void)(card + host); }},
      {"mul_", [&] { (void)card.clone().mul_(host); }},
      {"mm", [&] { (void)card.mm(host); }},
      {"addmm", [&] { (void)torch::addmm(card, card, host); }},
      {"bmm", [&] { (void)card.unsqueeze(0).bmm(host.unsqueeze(0)); }},
      {"linear", [&] { (void)F::linear(card, host); }},
      {"cat",
       [&] {
         (void)torch::cat({card, host});
       }},
      {"where", [&] { (void)torch::where(card > 0, card, host); }},
      {"gather",
       [&] {
         (void)card.gather(0, rows.view({1, 6}));
       }},
      {"index_select", [&] { (void)card.index_select(0, rows); }},
      {"embedding", [&] { (void)torch::embedding(card, rows); }},
      {"embedding of the host", [&] { (void)torch::embedding(host, rows_on_card); }},
      {"conv2d", [&] { (void)torch::conv2d(image, filter); }},
      {"batch_norm",
       [&] {
         (void)at::batch_norm(image, {}, {}, torch::zeros({3}), torch::ones({3}), true, 0.1, 1e-5,
                              true);
       }},
      {"layer_norm", [&] { (void)at::layer_norm(card, {6}, torch::rand({6})); }},
      {"cross_entropy", [&] { (void)F::cross_entropy(card, rows); }},
      {"attention",
       [&] {
         const Tensor q = card.view({1, 1, 6, 6});
         (void)at::scaled_dot_product_attention(q, q, host.view({1, 1, 6, 6}));
       }},
      {"lstm_cell",
       [&] {
         (void)at::lstm_cell(card, {card, card}, torch::rand({24, 6}), torch::rand({24, 6}));
       }},
      {"masked_select", [&] { (void)card.masked_select(host > 0); }},
      {"equal", [&] { (void)card.equal(host); }},
      {"solve", [&] { (void)at::linalg_solve(card, host); }},
      {"solve_triangular", [&] { (void)at::linalg_solve_triangular(card, host, true); }},
      {"cholesky_solve", [&] { (void)at::cholesky_solve(card, host); }},
      {"ormqr", [&] { (void)at::ormqr(card, torch::rand({6}), card); }},
      {"foreach",
       [&] {
         std::vector<Tensor> on_card{card.clone()}, on_host{host};
         at::_foreach_add_(on_card, on_host);
       }},
  };
  const auto names = [](const char* one, const char* other) {
    return AllOf(HasSubstr(one), HasSubstr(other));
  };
  for (const Case& each : refused)
    EXPECT_THAT(refusal(each.name, each.work),
                AnyOf(names("cuda:0", "cpu"), names("CUDAFloatType", "CPUFloatType")))
        << each.name;
}

TEST_F(RefusalsOnCard, WrongShapesAndTypes) {
  const auto refused = [](c10::Device device) {
    const Tensor a = torch::rand({6, 8}, device), rows = torch::zeros({6}, device);
    const Tensor image = torch::rand({2, 3, 6, 6}, device);
    return std::vector<Case>{
        {"add", [=] { (void)(a + a.t()); }},
        {"mm", [=] { (void)a.mm(a); }},
        {"bmm", [=] { (void)a.unsqueeze(0).bmm(a.unsqueeze(0)); }},
        {"linear", [=] { (void)F::linear(a, a.t()); }},
        {"view",
         [=] {
           (void)a.view({7, 7});
         }},
        {"cat",
         [=] {
           (void)torch::cat({a, a.t()});
         }},
        {"conv2d",
         [=] {
           (void)torch::conv2d(image, torch::rand({4, 2, 3, 3}, device));
         }},
        {"conv2d of a large filter",
         [=] {
           (void)torch::conv2d(image, torch::rand({4, 3, 9, 9}, device));
         }},
        {"max_pool2d", [=] { (void)torch::max_pool2d(image, 9); }},
        {"batch_norm",
         [=] { (void)at::batch_norm(image, rows, {}, {}, {}, true, 0.1, 1e-5, true); }},
        {"layer_norm", [=] { (void)at::layer_norm(a, {6}); }},
        {"cross_entropy", [=] { (void)F::cross_entropy(a, rows.slice(0, 0, 5).to(at::kLong)); }},
        {"nll_loss of numbers", [=] { (void)F::nll_loss(a, rows); }},
        {"embedding of numbers", [=] { (void)torch::embedding(a, rows); }},
        {"gather", [=] { (void)a.gather(3, a.to(at::kLong)); }},
        {"masked_select", [=] { (void)a.masked_select(rows > 0); }},
        {"masked_select of numbers", [=] { (void)a.masked_select(a); }},
        {"inverse", [=] { (void)at::linalg_inv(a); }},
        {"solve", [=] { (void)at::linalg_solve(a, a); }},
        {"cholesky", [=] { (void)at::linalg_cholesky(a); }},
        {"cholesky of no definite matrix",
         [=] { (void)at::linalg_cholesky(-torch::eye(3, device)); }},
        {"inverse of a singular matrix",
         [=] {
           (void)at::linalg_inv(torch::zeros({3, 3}, device));
         }},
        {"irfft", [=] { (void)at::fft_irfft(at::fft_rfft(a), 0); }},
        {"ctc",
         [=] {
           (void)at::ctc_loss(a.view({6, 1, 8}).log_softmax(2),
                              torch::ones({2, 1}, torch::TensorOptions(device).dtype(at::kLong)),
                              at::IntArrayRef{6}, at::IntArrayRef{1});
         }},
        {"lstm_cell",
         [=] {
           (void)at::lstm_cell(a, {a, a}, a, a);
         }},
        {"multinomial", [=] { (void)a.multinomial(9); }},
        {"dropout", [=] { (void)torch::dropout(a, 1.5, true); }},
    };
  };
  const bool played = std::getenv("TARE_STAND_IN") != nullptr;
  const std::set<std::string> names_the_device{"nll_loss of numbers", "embedding of numbers",
                                               "ctc"};
  const auto on_host = refused(c10::kCPU), on_card = refused(memory::CudaTraits::device());
  for (size_t i = 0; i < on_host.size(); ++i) {
    const std::string name = on_host[i].name;
    const std::string host = refusal(name, on_host[i].work), card = refusal(name, on_card[i].work);
    const bool has_words_of_its_own = names_the_device.contains(name) || !played;
    EXPECT_TRUE(has_words_of_its_own || card == host) << name << ": " << card << " / " << host;
  }
}

}  // namespace
}  // namespace tare::plan
