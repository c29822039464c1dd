// The losses that have a name, and what is known of each.
#include "tare/metric/loss.h"

#include <ATen/Context.h>
#include <ATen/Dispatch.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/nll_loss_nd.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/config/scalar.h"
#include "tare/memory/pinned_copy.h"
#include "tare/memory/reference_kernels.h"
#include "tare/metric/check.h"
#include "tare/metric/chunked_cross_entropy.h"
#include "tare/metric/stored_text.h"

namespace tare {
namespace {

using at::Tensor;

using config::Node;

/// Computes a loss with its options, up to the reduction.
using Reduced =
    std::function<Tensor(const Tensor& output, const Tensor& target, int64_t reduction)>;

struct Kind {
  std::string name{};
  std::string activation{};
  std::function<Reduced(const Node& options)> make{};
  std::function<void(losses::Registry&)> add{};
};

/// Throws ConfigError, with the option as its field, for what no rule of a single value refuses.
template <config::Options O>
void check_options(const O&) {}

void check_options(const CrossEntropyOptions& options) {
  if (options.class_weights.balanced)
    throw ConfigError("loss", "class_weights",
                      "has no numbers yet: a recipe alone counts the samples of its classes",
                      "a number for each class, such as losses::balanced(labels, classes)",
                      "balanced");
  const auto& weights = options.class_weights.numbers;
  for (size_t i = 0; i < weights.size(); ++i)
    if (!std::isfinite(weights[i]))
      throw ConfigError("loss", "class_weights." + std::to_string(i), "must be finite",
                        "a number >= 0", config::to_node(weights[i]).text);
  if (!weights.empty() && std::ranges::all_of(weights, [](double each) { return each == 0; }))
    throw ConfigError("loss", "class_weights", "leave no class to learn", "at least one number > 0",
                      "zeros only");
  if (options.label_smoothing > 0)
    for (size_t i = 0; i < weights.size(); ++i)
      if (weights[i] ==
          0)  // its labels would add to the sum of a batch, and nothing to the divisor
        throw ConfigError("loss", "class_weights." + std::to_string(i),
                          "gives a class no weight, while label_smoothing gives its samples a loss",
                          "a number > 0 together with label_smoothing, or label_smoothing=0", "0");
}

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
                all.add<O>(name, summary, [name](const O& options) {
                  check_options(options);
                  return Loss(name, options);
                });
              }};
}

Tensor bce_with_logits(const BceOptions& options, const Tensor& output, const Tensor& target,
                       int64_t reduction) {
  if (is_one_score(output, target))  // class 1 is what the score is for
    return bce_with_logits(options, output, target.unsqueeze(1).to(output.scalar_type()),
                           reduction);
  if (options.positive_weight == 1)
    return at::binary_cross_entropy_with_logits(output, target, {}, {}, reduction);
  // (1 - t) x + (1 + (w - 1) t) log(1 + e^-x), by operators that a plan knows.
  const Tensor factor = target.mul(options.positive_weight - 1).add(1);
  const Tensor each = target.mul(-1).add(1).mul(output).add(at::softplus(output.neg()).mul(factor));
  if (reduction == at::Reduction::None) return each;
  return reduction == at::Reduction::Mean ? each.mean() : each.sum();
}

/// Makes the class weights on the device and with the dtype of the output, anew for each use, so
/// that a loss owns no tensor; the numbers are copied without waiting for the device.
Tensor weights_like(const std::vector<double>& numbers, const Tensor& output) {
  const auto classes = static_cast<int64_t>(numbers.size());
  if (output.is_meta()) return at::empty({classes}, output.options());
  const Tensor host = at::from_blob(const_cast<double*>(numbers.data()), {classes}, at::kDouble);
  if (output.is_cpu()) return at::empty({classes}, output.options()).copy_(host);
  return memory::pinned_copy(host.to(output.scalar_type()), output.device());
}

/// Returns the sum of the labels' weights, or their number without weights; those that are ignored
/// have none.
Tensor weight_of(const Tensor& labels, const std::optional<Tensor>& weights) {
  if (!weights) return labels.ne(kIgnoredLabel).sum(at::kFloat);
  const Tensor ignored = labels.eq(kIgnoredLabel).flatten();
  const Tensor classes = labels.flatten().masked_fill(ignored, 0);
  return weights->gather(0, classes).masked_fill(ignored, 0).sum();
}

/// Whether Tare itself adds up the losses of labels, several of which a sample has: for that a card
/// has no kernel of LibTorch's that repeats its bits (ATen/native/cuda/NLLLoss2d.cu).
bool adds_up(const Tensor& output, const Tensor& target, int64_t reduction) {
  return reduction != at::Reduction::None && output.dim() > 2 &&
         target.scalar_type() == at::kLong && at::globalContext().deterministicAlgorithms();
}

/// Returns the sum, or the mean by weight, of the losses of labels.
Tensor added_up(const Tensor& each, const Tensor& labels, const std::optional<Tensor>& weights,
                int64_t reduction) {
  const Tensor sum = each.sum();
  return reduction == at::Reduction::Mean ? sum.div(weight_of(labels, weights)) : sum;
}

Tensor cross_entropy(const CrossEntropyOptions& options, const Tensor& output, const Tensor& target,
                     int64_t reduction) {
  const double smoothing = options.label_smoothing;
  std::optional<Tensor> weights;
  const std::vector<double>& numbers = options.class_weights.numbers;
  if (!numbers.empty()) weights = weights_like(numbers, output);
  const auto loss = [&](int64_t reduced) {
    return at::cross_entropy_loss(output, target, weights, reduced, kIgnoredLabel, smoothing);
  };
  if (adds_up(output, target, reduction))
    return added_up(loss(at::Reduction::None), target, weights, reduction);
  const bool many = static_cast<int64_t>(output.nbytes()) >= kChunkedFrom;
  if (many && !weights && smoothing == 0 && !memory::reference_kernels())
    if (auto chunked = chunked_cross_entropy(output, target, kIgnoredLabel, reduction))
      return *chunked;
  const bool own_mean = weights && reduction == at::Reduction::Mean && smoothing > 0 &&
                        target.scalar_type() == at::kLong;
  // LibTorch divides by a sum over tensors whose sizes depend on the labels, which no plan knows.
  return own_mean ? loss(at::Reduction::Sum).div(weight_of(target, weights)) : loss(reduction);
}

Tensor nll(const config::NoOptions&, const Tensor& output, const Tensor& target,
           int64_t reduction) {
  if (!adds_up(output, target, reduction)) return at::nll_loss_nd(output, target, {}, reduction);
  return added_up(at::nll_loss_nd(output, target, {}, at::Reduction::None), target, {}, reduction);
}

const std::vector<Kind>& kinds() {
  using config::NoOptions;
  using O = const NoOptions&;
  using T = const Tensor&;
  static const std::vector<Kind> all{
      kind_of<BceOptions>("bce_with_logits", "computes the binary cross-entropy of logits",
                          "sigmoid", bce_with_logits),
      kind_of<CrossEntropyOptions>("cross_entropy",
                                   "computes the cross-entropy of logits and class labels",
                                   "softmax", cross_entropy),
      kind_of<NoOptions>("kl_div", "computes the Kullback-Leibler divergence of log-probabilities",
                         "exp", [](O, T o, T t, int64_t r) { return at::kl_div(o, t, r); }),
      kind_of<NoOptions>("l1", "computes the mean absolute error", "none",
                         [](O, T o, T t, int64_t r) { return at::l1_loss(o, t, r); }),
      kind_of<NoOptions>("mse", "computes the mean squared error", "none",
                         [](O, T o, T t, int64_t r) { return at::mse_loss(o, t, r); }),
      kind_of<NoOptions>(
          "nll", "computes the negative log-likelihood of log-probabilities and class labels",
          "exp", nll),
      kind_of<SmoothL1Options>("smooth_l1",
                               "computes the error, squared below beta and absolute above it",
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

bool takes_labels(const std::string& loss) { return loss == "cross_entropy" || loss == "nll"; }

/// Returns the mean of each sample [n, ...], over the labels that count.
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
          .activation_name = activation,
          .class_weights = name == "cross_entropy"
                               ? config::read<CrossEntropyOptions>(options).class_weights.numbers
                               : std::vector<double>{}};
}

std::string checked_activation(const std::string& name) {
  static const std::vector<std::string> known{"softmax", "exp", "sigmoid", "none"};
  if (name.empty()) return "none";
  if (std::ranges::find(known, name) != known.end()) return name;
  throw unknown_name("loss", "activation", name, known, "loss");
}

bool has_labels(const ResolvedLoss& loss, const Tensor& target) {
  return loss.sum && target.defined() && !target.is_meta() && target.scalar_type() == at::kLong;
}

/// Returns the weight of a label in a mean; 0 for one without an output of the model, which is
/// refused later.
double weight_of(const ResolvedLoss& loss, int64_t label) {
  if (loss.class_weights.empty()) return 1;
  const auto at = static_cast<size_t>(label);
  return label >= 0 && at < loss.class_weights.size() ? loss.class_weights[at] : 0;
}

void check_class_weights(const ResolvedLoss& loss, const Tensor& output) {
  const auto given = static_cast<int64_t>(loss.class_weights.size());
  if (given == 0 || output.dim() < 2 || given == output.size(1)) return;
  const std::string classes = std::to_string(output.size(1));
  throw ConfigError("loss", "cross_entropy.class_weights",
                    "needs a number for each of the " + classes + " classes of the model",
                    classes + " numbers", std::to_string(given) + " of them");
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

void from_node(const Node& node, ClassWeights& value) {
  if (node.kind == config::Kind::scalar && node.text == "balanced") {
    value = {};
    value.balanced = true;
    return;
  }
  if (node.kind != config::Kind::sequence)
    throw ConfigError(node.source, "", "must be balanced or a list of numbers", "",
                      config::describe(node));
  value = config::read<std::vector<double>>(node);
}

Node to_node(const ClassWeights& value) {
  return value.balanced ? Node::string("balanced") : config::to_node(value.numbers);
}

void from_node(const Node& node, Loss& value) {
  auto read = config::read<config::Choice>(node);
  const auto& all = losses::registry();
  if (all.contains(read.name)) {
    const config::Choice complete = all.complete(read);
    // Options at their defaults are as good as none.
    read.options = complete == all.complete({.name = read.name}) ? Node::map() : complete.options;
  }
  value = Loss(std::move(read));
}

Node to_node(const Loss& value) {
  const auto* name = std::get_if<std::string>(&value);
  if (!name) return {};
  const config::Choice choice{.name = *name, .options = value.options};
  const auto& all = losses::registry();
  if (all.contains(*name) && all.complete(choice) == all.complete({.name = *name}))
    return Node::string(*name);
  return config::to_short_node(choice);
}

namespace losses {

Registry& registry() {
  static Registry all("loss", [](Registry& entries) {
    for (const Kind& kind : kinds()) kind.add(entries);
  });
  return all;
}

std::string text_of(const Loss& loss) {
  const auto* name = std::get_if<std::string>(&loss);
  if (!name) return "";
  return stored_text(registry(), {.name = *name, .options = loss.options});
}

Loss from_text(const std::string& text) {
  if (!text.starts_with('{')) return text;
  return config::read<config::Choice>(config::parse_text(text, "the loss of a bundle"));
}

std::vector<double> class_weights(const at::Tensor& weights) {
  if (!weights.defined() || weights.dim() != 1)
    throw ShapeError("losses.class_weights", "a tensor [classes]", describe(weights));
  const Tensor numbers = weights.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* first = numbers.const_data_ptr<double>();
  return {first, first + numbers.numel()};
}

std::vector<double> balanced(const at::Tensor& labels, int64_t classes) {
  if (!labels.defined() || labels.scalar_type() != at::kLong)
    throw ShapeError("losses.balanced", "class labels int64", describe(labels));
  if (classes < 1)
    throw ConfigError("losses.balanced", "classes must be >= 1, got " + std::to_string(classes));
  std::vector<double> of_class(static_cast<size_t>(classes), 0.0);
  double all = 0;
  for_each_label(labels.cpu(), [&](int64_t label) {
    if (label < 0 || label >= classes)
      throw ConfigError("losses.balanced", "a label is " + std::to_string(label) +
                                               ", must be from 0 to " +
                                               std::to_string(classes - 1) + "; raise classes");
    ++of_class[static_cast<size_t>(label)];
    ++all;
  });
  if (all == 0)
    throw ConfigError("losses.balanced", "there is no label that counts; give some that are not " +
                                             std::to_string(kIgnoredLabel));
  for (double& weight : of_class)
    weight = weight > 0 ? all / (static_cast<double>(classes) * weight) : 0;
  return of_class;
}

}  // namespace losses

ResolvedLoss resolve(const Loss& loss) {
  if (const auto* name = std::get_if<std::string>(&loss)) {
    if (!losses::registry().contains(*name))
      throw config::unknown_entry("loss", "loss", *name, loss_names());
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

std::optional<double> counted(const ResolvedLoss& loss, const at::Tensor& target) {
  if (!target.defined()) return std::nullopt;
  if (has_labels(loss, target)) {
    if (!target.device().is_cpu() && loss.class_weights.empty())
      return static_cast<double>(target.ne(kIgnoredLabel).sum().item<int64_t>());
    return label_range(loss, target.cpu())->counted;
  }
  if (loss.counted) return loss.counted(target);
  const int64_t samples = target.dim() == 0 ? 1 : target.size(0);
  if (loss.custom || loss.name == "kl_div" || samples == 0) return static_cast<double>(samples);
  const bool probabilities = takes_labels(loss.name) && target.is_floating_point();
  return static_cast<double>(probabilities && target.dim() > 1 ? target.numel() / target.size(1)
                                                               : target.numel());
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
  if (all > 0 && low >= 0 && loss.class_weights.empty())  // none is ignored
    return LabelRange{low, high, static_cast<double>(all)};
  low = std::numeric_limits<int64_t>::max();
  high = std::numeric_limits<int64_t>::min();
  double counted = 0;
  for_each_label(target, [&](int64_t value) {
    low = std::min(low, value);
    high = std::max(high, value);
    counted += weight_of(loss, value);
  });
  return high < low ? LabelRange{} : LabelRange{low, high, counted};
}

void check_labels(const ResolvedLoss& loss, const LabelRange& labels, int64_t classes) {
  if (labels.high < labels.low || (labels.low >= 0 && labels.high < classes)) return;
  throw ConfigError("loss." + loss.name,
                    "the data has class labels " + std::to_string(labels.low) + " to " +
                        std::to_string(labels.high) + ", the model has " +
                        (classes == 1 ? "1 output (label 0"
                                      : std::to_string(classes) + " outputs (labels 0 to " +
                                            std::to_string(classes - 1)) +
                        "); build the model with as many classes as the data has");
}

namespace {

/// Holds the lowest and highest of some values.
struct ValueRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;
};

/// Returns the range of floating-point values on the host; of none, one whose low is above high.
ValueRange range_of(const Tensor& values) {
  ValueRange range;
  const Tensor all = values.contiguous();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, all.scalar_type(), "range_of", [&] {
    const scalar_t* value = all.const_data_ptr<scalar_t>();
    for (int64_t i = 0; i < all.numel(); ++i) {
      range.low = std::min(range.low, static_cast<double>(value[i]));
      range.high = std::max(range.high, static_cast<double>(value[i]));
    }
  });
  return range;
}

/// Throws ConfigError for class labels other than 0 and 1.
void check_two_classes(const std::string& where, const Tensor& target) {
  if (target.is_meta()) return;
  const Tensor labels = target.cpu().contiguous();
  const int64_t* label = labels.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    if (label[i] != 0 && label[i] != 1)
      throw ConfigError(where,
                        "takes the class labels 0 and 1 with one output of the model, and "
                        "the data have " +
                            std::to_string(label[i]) + "; cross_entropy takes more classes");
}

/// Returns the digits that float32 holds.
std::string float_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

/// Throws ConfigError for targets that are not probabilities.
void check_probabilities(const std::string& where, const Tensor& target) {
  if (target.is_meta()) return;
  const ValueRange range = range_of(target.cpu());
  if (range.low >= 0 && range.high <= 1) return;
  throw ConfigError(where, "takes targets from 0 to 1, the probability of each output, and " +
                               (range.low == range.high
                                    ? "a target of the data is " + float_text(range.low)
                                    : "those of the data reach from " + float_text(range.low) +
                                          " to " + float_text(range.high)) +
                               "; mse or l1 takes any values");
}

}  // namespace

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
  } else if (loss.name == "bce_with_logits" && is_one_score(output, target)) {
    check_batch_size(where, output, target);
    check_two_classes(where, target);
  } else {
    check_same_shape(where, output, target);
    if (probabilities && output.size(1) == 1)
      throw ConfigError(where,
                        "is 0 for a single output, whatever the model gives; mse trains a value, "
                        "bce_with_logits a probability");
    if (probabilities || loss.name == "bce_with_logits" || loss.name == "kl_div")
      check_probabilities(where, target);
  }
  if (!loss.class_weights.empty()) check_class_weights(loss, output);
}

}  // namespace tare
