// The optimizer Muon: Jordan et al., "Muon: An optimizer for hidden layers in neural networks",
// 2024, as torch.optim.Muon computes it. What is no matrix is stepped by AdamW.
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/optim/adam.h"

namespace tare {
namespace {

using at::Tensor;

/// Options of `muon` alone.
struct MuonOptions {
  bool nesterov_momentum = true;  ///< the gradient is added to the mean once more
  int64_t ns_steps = 5;           ///< iterations of Newton and Schulz, 1 to 99
  /// Names the factor on the rate of a matrix of [rows, columns]: match_rms_adamw, 0.2
  /// sqrt(max(rows, columns)); original, sqrt(max(1, rows / columns)); or spectral_unclamped,
  /// sqrt(rows / columns).
  std::string adjust_lr = "match_rms_adamw";
  /// Whether the iterations compute in float32 in place of bfloat16, as they should on a processor
  /// without instructions for bfloat16.
  bool float32 = false;
  bool convolutions = false;         ///< weights of more dimensions count as matrices, of rows
  std::vector<std::string> adamw{};  ///< submodules or parameters that AdamW steps, as a head
  double adamw_lr = 1;               ///< rate of AdamW, times that of the matrices, > 0
  double adamw_momentum = 0.9;       ///< beta1 of AdamW, in [0, 1)
};
void visit_fields(auto& visit, MuonOptions& o) {
  visit("nesterov_momentum", o.nesterov_momentum);
  visit("ns_steps", o.ns_steps, config::between(1, 99));
  visit("adjust_lr", o.adjust_lr,
        config::one_of({"original", "match_rms_adamw", "spectral_unclamped"}));
  visit("float32", o.float32);
  visit("convolutions", o.convolutions);
  visit("adamw", o.adamw);
  visit("adamw_lr", o.adamw_lr, config::above(0));
  visit("adamw_momentum", o.adamw_momentum, config::between(0, 0.9999999));
}

/// Returns beta sum + alpha first second. A card chooses between two libraries for addmm, with
/// other workspaces, by the version of LibTorch; baddbmm always takes one, which a plan knows.
Tensor add_product(const Tensor& sum, const Tensor& first, const Tensor& second, double beta,
                   double alpha, bool on_card) {
  if (!on_card) return at::addmm(sum, first, second, beta, alpha);
  return at::baddbmm(sum.unsqueeze(0), first.unsqueeze(0), second.unsqueeze(0), beta, alpha)
      .squeeze(0);
}

/// Returns about the nearest matrix with orthogonal rows or columns, after `steps` iterations.
Tensor orthogonal(const Tensor& matrix, int64_t steps, at::ScalarType type, bool on_card) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315, tiny = 1e-7;
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = matrix.to(type, /*non_blocking=*/false, /*copy=*/true);
  if (tall) x = x.t();
  x.div_(x.norm().clamp(tiny));
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor gram = at::mm(x, x.t());
    x = add_product(x, add_product(gram, gram, gram, b, c, on_card), x, a, 1, on_card);
  }
  return tall ? x.t() : x;
}

class Muon final : public FusedOptimizer {
 public:
  Muon(const OptimizerOptions& options, MuonOptions own, std::vector<ParameterGroup> groups,
       bool with_tensors)
      : FusedOptimizer(std::move(groups), adam_state()),
        own_(std::move(own)),
        beta2_(beta2_of(options)),
        eps_(eps_of(options)),
        matrix_{.buffers = {"momentum_buffer"}},
        rest_(adam_state()),
        with_tensors_(with_tensors) {
    for (const std::string& member : own_.adamw)
      if (!names_any(member))
        log::warning_once("[optimizer] options.adamw names '" + printable(member) +
                          "', which no trainable parameter has now");
  }
  [[nodiscard]] std::string kind() const override { return "muon"; }
  [[nodiscard]] bool steps_atomically() const override { return false; }

 protected:
  [[nodiscard]] const FusedState& kept_of(const Parameter& p) const override {
    const bool by_name = std::ranges::any_of(
        own_.adamw, [&](const std::string& member) { return covers(member, p.name); });
    const int64_t dims = p.tensor.dim();
    const bool matrix = dims == 2 || (own_.convolutions && dims > 2);
    return matrix && p.kind == ParameterKind::weight && !by_name ? matrix_ : rest_;
  }
  [[nodiscard]] std::vector<FusedState> all_kept() const override { return {matrix_, rest_}; }

  void launch(const ParameterGroup& g, FusedLists& lists) override {
    if (!lists.steps.empty())
      return step_adamw({g.lr * own_.adamw_lr, own_.adamw_momentum, g.beta2.value_or(beta2_), eps_,
                         g.weight_decay},
                        lists);
    for (size_t i = 0; i < lists.parameters.size(); ++i)
      step_matrix(g, lists.parameters[i], lists.gradients[i], lists.buffers[0][i]);
  }

 private:
  static bool covers(const std::string& member, const std::string& parameter) {
    return parameter == member || parameter.starts_with(member + ".");
  }
  [[nodiscard]] bool names_any(const std::string& member) const {
    return std::ranges::any_of(groups_, [&](const ParameterGroup& group) {
      return std::ranges::any_of(group.parameters,
                                 [&](const Parameter& p) { return covers(member, p.name); });
    });
  }

  [[nodiscard]] double factor(const Tensor& matrix) const {
    const auto rows = static_cast<double>(matrix.size(0));
    const auto columns = static_cast<double>(matrix.size(1));
    if (own_.adjust_lr == "match_rms_adamw") return 0.2 * std::sqrt(std::max(rows, columns));
    const double ratio = rows / columns;
    return std::sqrt(own_.adjust_lr == "original" ? std::max(1.0, ratio) : ratio);
  }

  void step_matrix(const ParameterGroup& g, const Tensor& parameter, const Tensor& gradient,
                   const Tensor& mean) const {
    if (parameter.numel() == 0) return;
    mean.lerp_(gradient, 1 - g.momentum);
    const Tensor wanted = own_.nesterov_momentum ? gradient.lerp(mean, g.momentum) : mean;
    const bool on_card = with_tensors_ || !(parameter.is_cpu() || parameter.is_meta());
    const Tensor update = orthogonal(wanted.flatten(1), own_.ns_steps,
                                     own_.float32 ? at::kFloat : at::kBFloat16, on_card);
    parameter.mul_(1 - g.lr * g.weight_decay);
    parameter.add_(update.to(parameter.scalar_type()).reshape(parameter.sizes()),
                   -g.lr * factor(update));
  }

  MuonOptions own_;
  double beta2_, eps_;
  FusedState matrix_, rest_;
  bool with_tensors_;
};

}  // namespace

namespace optimizers {
void add_muon(Registry& all) {
  all.add<MuonOptions>(
      "muon", "steps matrices by orthogonal updates, and other parameters as AdamW",
      [](const MuonOptions& own) {
        return OptimizerKind{.momentum = 0.95,
                             .beta2 = 0.999,
                             .eps = 1e-8,
                             .weight_decay = true,
                             .make = [own](const OptimizerOptions& options,
                                           std::vector<ParameterGroup> groups, bool with_tensors) {
                               return std::make_unique<Muon>(options, own, std::move(groups),
                                                             with_tensors);
                             }};
      });
}
}  // namespace optimizers

}  // namespace tare
