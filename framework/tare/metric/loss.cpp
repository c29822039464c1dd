// The losses that have a name, and what is known of each.
#include "tare/metric/loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/nll_loss_nd.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>

#include <algorithm>
#include <limits>

#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/metric/check.h"

namespace tare {
namespace {

using at::Tensor;

using config::Node;

/// A loss with its options, up to the reduction.
using Reduced =
    std::function<Tensor(const Tensor& output, const Tensor& target, int64_t reduction)>;

struct Kind {
  std::string name{};
  std::string activation{};
  std::function<Reduced(const Node& options)> make{};
  std::function<void(losses::Registry&)> add{};
};

template <config::Options O>
Kind kind_of(const char* name, const char* summary, const char* activation,
             Tensor (*loss)(const O&, const Tensor&, const Tensor&, int64_t)) {
  return {.name = name,
          .activation = activation,
          .make = [loss](const Node& node) -> Reduced {
            return [loss, options = config::read<O>(node)](
                       const Tensor& output, const Tensor& target, int64_t reduction) {
              return loss(options, output, target, reduction);
            };
          },
          .add =
              [name, summary](losses::Registry& all) {
                all.add<O>(name, summary, [name](const O& options) { return Loss(name, options); });
              }};
}

Tensor bce_with_logits(const BceOptions& options, const Tensor& output, const Tensor& target,
                       int64_t reduction) {
  if (options.positive_weight == 1)
    return at::binary_cross_entropy_with_logits(output, target, {}, {}, reduction);
  // (1 - t) x + (1 + (w - 1) t) log(1 + e^-x), by operators that a plan knows.
  const Tensor factor = target.mul(options.positive_weight - 1).add(1);
  const Tensor each = target.mul(-1).add(1).mul(output).add(at::softplus(output.neg()).mul(factor));
  if (reduction == at::Reduction::None) return each;
  return reduction == at::Reduction::Mean ? each.mean() : each.sum();
}

const std::vector<Kind>& kinds() {
  using config::NoOptions;
  using O = const NoOptions&;
  using T = const Tensor&;
  static const std::vector<Kind> all{
      kind_of<BceOptions>("bce_with_logits", "binary cross-entropy of logits", "sigmoid",
                          bce_with_logits),
      kind_of<CrossEntropyOptions>(
          "cross_entropy", "cross-entropy of logits and class labels", "softmax",
          [](const CrossEntropyOptions& options, T o, T t, int64_t r) {
            return at::cross_entropy_loss(o, t, {}, r, kIgnoredLabel, options.label_smoothing);
          }),
      kind_of<NoOptions>("kl_div", "Kullback-Leibler divergence of log-probabilities", "exp",
                         [](O, T o, T t, int64_t r) { return at::kl_div(o, t, r); }),
      kind_of<NoOptions>("l1", "mean absolute error", "none",
                         [](O, T o, T t, int64_t r) { return at::l1_loss(o, t, r); }),
      kind_of<NoOptions>("mse", "mean squared error", "none",
                         [](O, T o, T t, int64_t r) { return at::mse_loss(o, t, r); }),
      kind_of<NoOptions>("nll", "negative log-likelihood of log-probabilities and class labels",
                         "exp",
                         [](O, T o, T t, int64_t r) { return at::nll_loss_nd(o, t, {}, r); }),
      kind_of<SmoothL1Options>("smooth_l1", "squared below an error of beta, absolute above",
                               "none", [](const SmoothL1Options& options, T o, T t, int64_t r) {
                                 return at::smooth_l1_loss(o, t, r, options.beta);
                               })};
  return all;
}

Tensor activate(const std::string& name, const Tensor& output) {
  if (name == "softmax") return at::softmax(output, 1);
  if (name == "exp") return at::exp(output);
  if (name == "sigmoid") return at::sigmoid(output);
  return output;
}

[[noreturn]] void refuse_name(const std::string& name) {
  const std::string near = nearest(name, loss_names());
  throw ConfigError("loss", "no loss is named '" + printable(name) + "'" +
                                (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                " Known: " + config::joined(loss_names()));
}

bool takes_labels(const std::string& loss) { return loss == "cross_entropy" || loss == "nll"; }

// Of each sample [n, ...], over the labels that count.
Tensor mean_of_labels(const Tensor& each, const Tensor& target) {
  const Tensor counts = target.ne(kIgnoredLabel).flatten(1).sum(1).clamp_min(1);
  return each.flatten(1).sum(1).div(counts);
}

ResolvedLoss resolve_kind(const Kind& kind, const Node& options) {
  const std::string name = kind.name;
  const Reduced loss = kind.make(options);
  const bool by_batch = name == "kl_div";  // its mean is the sum over the batch size
  const LossFunction mean = [loss](const Tensor& o, const Tensor& t) {
    return loss(o, t, at::Reduction::Mean);
  };
  const LossFunction batch_mean = [loss](const Tensor& o, const Tensor& t) {
    return loss(o, t, at::Reduction::Sum).div(o.size(0));
  };
  const bool by_labels = takes_labels(name);
  const LossFunction sum = [loss](const Tensor& o, const Tensor& t) {
    return loss(o, t, at::Reduction::Sum);
  };
  const LossFunction per_sample = [loss, by_batch, by_labels](const Tensor& o, const Tensor& t) {
    Tensor each = loss(o, t, at::Reduction::None);
    if (each.dim() < 2) return each;
    if (by_labels && t.scalar_type() == at::kLong) return mean_of_labels(each, t);
    return by_batch ? each.flatten(1).sum(1) : each.flatten(1).mean(1);
  };
  const std::string activation = kind.activation;
  return {.name = name,
          .mean = by_batch ? batch_mean : mean,
          .sum = by_labels ? sum : LossFunction{},
          .per_sample = per_sample,
          .activation = [activation](const Tensor& o) { return activate(activation, o); },
          .activation_name = activation};
}

std::string checked_activation(const std::string& name) {
  static const std::vector<std::string> known{"softmax", "exp", "sigmoid", "none"};
  if (name.empty()) return "none";
  if (std::ranges::find(known, name) != known.end()) return name;
  throw ConfigError("loss", "no activation is named '" + printable(name) + "'" +
                                did_you_mean(name, known) + "; known: softmax, exp, sigmoid, none");
}

bool has_labels(const ResolvedLoss& loss, const Tensor& target) {
  return takes_labels(loss.name) && target.defined() && !target.is_meta() &&
         target.scalar_type() == at::kLong;
}

/// Calls `f` for each label of a host tensor, but for labels that are ignored.
template <class F>
void for_each_label(const Tensor& target, F&& f) {
  const Tensor flat = target.contiguous();
  const int64_t* label = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i)
    if (label[i] != kIgnoredLabel) f(label[i]);
}

}  // namespace

namespace losses {

Registry& registry() {
  static Registry all("loss");
  static const bool filled = [] {
    for (const Kind& kind : kinds()) kind.add(all);
    return true;
  }();
  static_cast<void>(filled);
  return all;
}

std::string text_of(const Loss& loss) {
  const auto* name = std::get_if<std::string>(&loss);
  if (!name) return "";
  const auto complete = registry().complete({.name = *name, .options = loss.options});
  if (complete == registry().complete({.name = *name})) return *name;
  return config::flow_text(config::to_node(complete));
}

Loss from_text(const std::string& text) {
  if (!text.starts_with('{')) return text;
  return config::read<config::Choice>(config::parse_text(text, "the loss of a bundle"));
}

}  // namespace losses

ResolvedLoss resolve(const Loss& loss) {
  if (const auto* name = std::get_if<std::string>(&loss)) {
    if (!losses::registry().contains(*name)) refuse_name(*name);
    const Loss named = losses::registry().make({.name = *name, .options = loss.options});
    if (const auto* own = std::get_if<std::string>(&named))
      return resolve_kind(*std::ranges::find(kinds(), *own, &Kind::name), named.options);
    ResolvedLoss resolved = resolve(named);
    resolved.name = *name;
    return resolved;
  }
  const auto& function = std::get<LossFunction>(loss);
  if (!function && !loss.batch_function)
    throw ConfigError("loss", "the loss function is empty; give a name or a function");
  const std::string activation = checked_activation(loss.activation);
  return {.name = "custom",
          .custom = true,
          .mean = function,
          .activation = [activation](const Tensor& o) { return activate(activation, o); },
          .activation_name = activation,
          .counted = loss.counted,
          .batch_mean = loss.batch_function,
          .batch_counted = loss.batch_counted};
}

std::vector<std::string> loss_names() { return losses::registry().names(); }

std::optional<int64_t> counted(const ResolvedLoss& loss, const at::Tensor& target) {
  if (!target.defined()) return std::nullopt;
  if (has_labels(loss, target)) {
    if (!target.device().is_cpu()) return target.ne(kIgnoredLabel).sum().item<int64_t>();
    return label_range(loss, target)->count;
  }
  if (loss.counted) return loss.counted(target);
  const int64_t samples = target.dim() == 0 ? 1 : target.size(0);
  if (loss.custom || loss.name == "kl_div" || samples == 0) return samples;
  const bool probabilities = takes_labels(loss.name) && target.is_floating_point();
  return probabilities && target.dim() > 1 ? target.numel() / target.size(1) : target.numel();
}

std::optional<LabelRange> label_range(const ResolvedLoss& loss, const at::Tensor& target) {
  if (!has_labels(loss, target) || !target.device().is_cpu()) return std::nullopt;
  const Tensor flat = target.contiguous();
  const int64_t* label = flat.const_data_ptr<int64_t>();
  const int64_t all = flat.numel();
  int64_t low = std::numeric_limits<int64_t>::max(), high = std::numeric_limits<int64_t>::min();
  for (int64_t i = 0; i < all; ++i) {
    low = std::min(low, label[i]);
    high = std::max(high, label[i]);
  }
  if (all > 0 && low >= 0) return LabelRange{low, high, all};  // none is left out
  low = std::numeric_limits<int64_t>::max();
  high = std::numeric_limits<int64_t>::min();
  int64_t count = 0;
  for_each_label(target, [&](int64_t value) {
    low = std::min(low, value);
    high = std::max(high, value);
    ++count;
  });
  return count == 0 ? LabelRange{} : LabelRange{low, high, count};
}

void check_labels(const ResolvedLoss& loss, const LabelRange& labels, int64_t classes) {
  if (labels.high < labels.low || (labels.low >= 0 && labels.high < classes)) return;
  throw ConfigError("loss." + loss.name,
                    "the data has class labels " + std::to_string(labels.low) + " to " +
                        std::to_string(labels.high) + ", the model has " + std::to_string(classes) +
                        " outputs (labels 0 to " + std::to_string(classes - 1) +
                        "); build the model with as many classes as the data has");
}

void check_batch(const ResolvedLoss& loss, const at::Tensor& output, const at::Tensor& target) {
  const std::string where = "loss." + loss.name;
  const bool probabilities = loss.name == "cross_entropy" && output.defined() && target.defined() &&
                             target.is_floating_point() && target.sizes() == output.sizes();
  if (loss.custom) {
    check_batch_size(where, output, target);
  } else if (takes_labels(loss.name) && !probabilities) {
    check_classes(where, output, target);
    if (const auto labels = label_range(loss, target.cpu()))
      check_labels(loss, *labels, output.size(1));
  } else {
    check_same_shape(where, output, target);
  }
}

}  // namespace tare
