// Losses and optimizers.
#include "trace/operator_cases.h"

namespace tare::plan {
void add_losses(Cases& each) {
  auto loss = [&](const std::string& n, const std::function<Tensor(Tensor, Tensor)>& f) {
    each.add("loss_" + n, [=] { f(in({7, 12}), torch::rand({7, 12})).backward(); });
  };
  loss("bce_with_logits", [](const Tensor& x, const Tensor& t) {
    return torch::binary_cross_entropy_with_logits(x, t);
  });
  loss("smooth_l1", [](const Tensor& x, const Tensor& t) { return torch::smooth_l1_loss(x, t); });
  loss("l1", [](const Tensor& x, const Tensor& t) { return torch::l1_loss(x, t); });
  loss("huber", [](const Tensor& x, const Tensor& t) { return torch::huber_loss(x, t); });
  loss("bce", [](const Tensor& x, const Tensor& t) {
    return torch::binary_cross_entropy(torch::sigmoid(x), t);
  });
  loss("kl",
       [](const Tensor& x, const Tensor& t) { return torch::kl_div(torch::log_softmax(x, 1), t); });
  loss("hinge_emb",
       [](const Tensor& x, const Tensor& t) { return torch::hinge_embedding_loss(x, t); });
  loss("cos_emb", [](const Tensor& x, const Tensor& t) {
    return torch::cosine_embedding_loss(x, t, torch::ones({7}));
  });
  loss("margin", [](const Tensor& x, const Tensor& t) {
    return torch::margin_ranking_loss(x, t, torch::ones({7, 12}));
  });
  loss("triplet", [](const Tensor& x, const Tensor& t) {
    return torch::triplet_margin_loss(x, t, torch::rand({7, 12}));
  });
  loss("poisson", [](const Tensor& x, const Tensor& t) {
    return torch::poisson_nll_loss(x, t, true, false, 1e-8, at::Reduction::Mean);
  });
  loss("soft_margin",
       [](const Tensor& x, const Tensor& t) { return torch::soft_margin_loss(x, t); });
  loss("gaussian", [](const Tensor& x, const Tensor& t) { return F::mse_loss(x, t); });
  loss("cos_sim",
       [](const Tensor& x, const Tensor& t) { return torch::cosine_similarity(x, t).sum(); });
  loss("pairwise",
       [](const Tensor& x, const Tensor& t) { return torch::pairwise_distance(x, t).sum(); });
  auto cls = [&](const std::string& n, const std::function<Tensor(Tensor, Tensor)>& f) {
    each.add("loss_" + n, [=] { f(in({7, 12}), classes({7})).backward(); });
  };
  cls("ce", [](const Tensor& x, const Tensor& t) { return torch::cross_entropy_loss(x, t); });
  cls("ce_sum", [](const Tensor& x, const Tensor& t) {
    return torch::cross_entropy_loss(x, t, {}, at::Reduction::Sum);
  });
  cls("ce_w", [](const Tensor& x, const Tensor& t) {
    return torch::cross_entropy_loss(x, t, torch::rand({12}));
  });
  cls("ce_smooth", [](const Tensor& x, const Tensor& t) {
    return torch::cross_entropy_loss(x, t, {}, at::Reduction::Mean, -100, 0.1);
  });
  each.add("loss_ce_prob", [] {
    torch::cross_entropy_loss(in({7, 12}), torch::rand({7, 12})).backward();
  });
  each.add("loss_ce3", [] {
    torch::cross_entropy_loss(in({2, 7, 12}), classes({2, 12})).backward();
  });
  each.add("loss_ce3t", [] {
    torch::cross_entropy_loss(in({2, 12, 7}).transpose(1, 2), classes({2, 12})).backward();
  });
  each.add("loss_ce4", [] {
    torch::cross_entropy_loss(in({2, 7, 3, 4}), classes({2, 3, 4})).backward();
  });
  // One parameter: the order in which an optimizer drops its states is that of their addresses.
  auto opt = [&](const std::string& n, auto make) {
    each.add("opt_" + n, [=] {
      const Tensor weight = in({12, 5});
      const auto optimizer = make(std::vector<Tensor>{weight});
      for (int i = 0; i < 2; ++i) {
        optimizer->zero_grad();
        torch::mm(torch::rand({7, 12}), weight).sum().backward();
        optimizer->step();
      }
    });
  };
  opt("sgd",
      [](auto p) { return std::make_unique<torch::optim::SGD>(p, torch::optim::SGDOptions(0.1)); });
  opt("sgdm", [](auto p) {
    return std::make_unique<torch::optim::SGD>(
        p, torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
  });
  opt("adam", [](auto p) {
    return std::make_unique<torch::optim::Adam>(p, torch::optim::AdamOptions(0.1));
  });
  opt("adamw", [](auto p) {
    return std::make_unique<torch::optim::AdamW>(p, torch::optim::AdamWOptions(0.1));
  });
  opt("rmsprop", [](auto p) {
    return std::make_unique<torch::optim::RMSprop>(p, torch::optim::RMSpropOptions(0.1));
  });
  opt("adagrad", [](auto p) {
    return std::make_unique<torch::optim::Adagrad>(p, torch::optim::AdagradOptions(0.1));
  });
  each.add("fused_adamw", [] {
    std::vector<Tensor> p{torch::rand({3})}, g{torch::rand({3})}, m{torch::zeros({3})},
        v{torch::zeros({3})}, steps{torch::ones({})};
    torch::_fused_adamw_(p, g, m, v, {}, steps, 0.1, 0.9, 0.99, 0.01, 1e-8, false, false);
    torch::_fused_adam_(p, g, m, v, {}, steps, 0.1, 0.9, 0.99, 0.01, 1e-8, false, false);
  });
  each.add("fused_sgd", [] {
    std::vector<Tensor> p{torch::rand({3})}, g{torch::rand({3})}, m{torch::zeros({3})};
    torch::_fused_sgd_(p, g, m, 0.01, 0.9, 0.1, 0, false, false, true);
  });
  each.add("foreach", [] {
    std::vector<Tensor> a{torch::rand({3}), torch::rand({4})};
    auto n = torch::_foreach_norm(a);
    torch::_foreach_mul_(a, 0.5);
    auto s = torch::_foreach_add(a, a);
    torch::_foreach_mul_(a, torch::linalg_vector_norm(torch::stack(n)).clamp_max(1.0));
    torch::_foreach_clamp_min_(a, -0.5);
    torch::_foreach_clamp_max_(a, 0.5);
  });
}

}  // namespace tare::plan
