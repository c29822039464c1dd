// Losses by name or function, and what belongs to each: the loss of every sample, and the
// activation that turns raw outputs into predictions.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tare/config/registry.h"
#include "tare/data/batch.h"
#include "tare/memory/accountable.h"

namespace tare {

/// Maps (output, target), both [batch, ...], to a scalar, differentiable: the mean over the batch.
using LossFunction = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

/// Maps (outputs, batch) to a scalar, differentiable: the mean over the batch.
using BatchLossFunction = std::function<at::Tensor(const Outputs& outputs, const Batch& batch)>;
/// Returns the divisor of the mean loss of a batch, such as its number of tokens.
using BatchCountFunction = std::function<double(const Batch& batch)>;

/// Stands for the class label that losses and metrics ignore, as torch does by default.
inline constexpr int64_t kIgnoredLabel = -100;

/// Returns the divisor of a mean loss, >= 0: the number of labels, elements or samples of a target,
/// or the sum of their weights.
using CountFunction = std::function<double(const at::Tensor& target)>;

/// Holds a name of loss_names(), alone or with its options, or a function, with or without the
/// activation that turns the model's outputs into predictions (softmax | exp | sigmoid | none, over
/// dimension 1):
/// `.loss = "cross_entropy"`, `.loss = [](auto& output, auto& target) { ... }`,
/// `.loss = {my_cross_entropy, "softmax"}`,
/// `.loss = {"cross_entropy", CrossEntropyOptions{.label_smoothing = 0.1}}`.
/// A function whose mean is not over the samples comes with what it counts, so that means over
/// several batches are weighted by it: `.loss = {function, [](auto& target) { ... }}`.
struct Loss : std::variant<std::string, LossFunction> {
  using std::variant<std::string, LossFunction>::variant;
  /// Makes a loss by name with its options, as a recipe has it.
  Loss(config::Choice named)
      : std::variant<std::string, LossFunction>(std::move(named.name)),
        options(std::move(named.options)) {}
  /// Makes a loss by name with the options of that loss.
  template <config::Options O>
  Loss(std::string name, const O& of_name)
      : std::variant<std::string, LossFunction>(std::move(name)),
        options(config::to_node(of_name)) {}
  /// Makes a loss of a function of outputs and target, and of the activation that turns outputs
  /// into predictions.
  Loss(LossFunction function, std::string of_outputs)
      : std::variant<std::string, LossFunction>(std::move(function)),
        activation(std::move(of_outputs)) {}
  /// Makes a loss of a function of outputs and target, and of what its mean is over.
  Loss(LossFunction function, CountFunction counts)
      : std::variant<std::string, LossFunction>(std::move(function)), counted(std::move(counts)) {}
  /// Makes a loss of the whole batch, for masks, weights of samples, and several outputs or
  /// targets. If the function's mean is not over the samples, `counts` returns what it is over.
  [[nodiscard]] static Loss of_batch(BatchLossFunction function, BatchCountFunction counts = {}) {
    Loss loss{LossFunction()};
    loss.batch_function = std::move(function);
    loss.batch_counted = std::move(counts);
    return loss;
  }
  /// Makes a loss of a function object that lists its tensors by `void account(Ledger&) const`.
  template <class F>
  requires Accounting<F>
  explicit Loss(const std::shared_ptr<F>& function)
      : std::variant<std::string, LossFunction>(
            LossFunction([function](const at::Tensor& output, const at::Tensor& target) {
              return (*function)(output, target);
            })),
        account([function](Ledger& all) { function->account(all); }) {}

  config::Node options = config::Node::map();  ///< of a named loss; a missing one has its default
  /// Adds the tensors that the function holds to the Learner's ledger; may be empty.
  std::function<void(Ledger&)> account{};
  std::string activation = {};            ///< of a function; empty: none
  CountFunction counted = {};             ///< of a function; empty: the samples
  BatchLossFunction batch_function = {};  ///< of of_batch(), in place of a function of two tensors
  BatchCountFunction batch_counted = {};  ///< of of_batch(); empty: the samples
};

/// Reads a name, or a name with its options: `{cross_entropy: {label_smoothing: 0.1}}`. Whether a
/// loss has the name is checked where it is resolved. Throws ConfigError for an unknown option,
/// with the nearest one, and for a value that is not allowed.
void from_node(const config::Node& node, Loss& value);
/// Returns the name alone where all options have their defaults; null for a function.
[[nodiscard]] config::Node to_node(const Loss& value);

/// Holds the weights of classes: numbers, or the word `balanced` of a recipe.
struct ClassWeights {
  ClassWeights() = default;
  /// Takes a number for each class.
  ClassWeights(std::vector<double> of_classes) : numbers(std::move(of_classes)) {}
  /// Takes a number for each class.
  ClassWeights(std::initializer_list<double> of_classes) : numbers(of_classes) {}

  /// Holds a number for each class, >= 0, at least one of them > 0. Empty: every class has 1.
  std::vector<double> numbers{};
  /// A run puts losses::balanced() of its training split in place of it. resolve() refuses it.
  bool balanced = false;
};
/// Reads `balanced` or a list of numbers. Throws ConfigError for anything else.
void from_node(const config::Node& node, ClassWeights& value);
[[nodiscard]] config::Node to_node(const ClassWeights& value);

/// Configures the loss `cross_entropy`.
struct CrossEntropyOptions {
  /// Share of each target that is spread evenly over all classes, in [0, 1]: Szegedy et al. 2016,
  /// Rethinking the Inception Architecture, section 7.
  double label_smoothing = 0;
  /// The loss of a label is multiplied by the number of its class, and a mean over labels is
  /// divided by the sum of their numbers, as by torch::nn::CrossEntropyLoss.
  ClassWeights class_weights{};
};
void visit_fields(auto& visit, CrossEntropyOptions& o) {
  visit("label_smoothing", o.label_smoothing, config::between(0, 1));
  visit("class_weights", o.class_weights, config::at_least(0));
}

/// Configures the loss `bce_with_logits`.
struct BceOptions {
  double positive_weight = 1;  ///< multiplies the loss where the target is 1, > 0; more: recall
};
void visit_fields(auto& visit, BceOptions& o) {
  visit("positive_weight", o.positive_weight, config::above(0));
}

/// Configures the loss `smooth_l1`.
struct SmoothL1Options {
  double beta = 1;  ///< error below which the loss is squared, > 0
};
void visit_fields(auto& visit, SmoothL1Options& o) { visit("beta", o.beta, config::above(0)); }

namespace losses {
/// Holds the losses that have a name. A program adds its own, each a function with its activation:
///   losses::registry().add<FocalOptions>("focal", "cross-entropy that favours hard samples",
///                                        [](const auto& o) { return Loss(focal(o), "softmax"); });
using Registry = config::Registry<Loss()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
/// Returns the loss as bundles store it: its name where all options have their defaults, else its
/// name with the options that have other values, `{cross_entropy: {label_smoothing: 0.1}}`; empty
/// for a function.
[[nodiscard]] std::string text_of(const Loss& loss);
/// Returns the loss of such a text. Throws ConfigError for a text that cannot be read.
[[nodiscard]] Loss from_text(const std::string& text);
/// Returns the numbers of a tensor [classes] of any dtype and device, for
/// CrossEntropyOptions::class_weights. Waits for the device. Throws ShapeError for another shape.
[[nodiscard]] std::vector<double> class_weights(const at::Tensor& weights);
/// Returns class weights with which every class counts as much as any other in the mean over these
/// labels (int64, any shape and device, those of -100 are ignored): labels / (classes x labels of
/// the class), and 0 for a class without a label. Waits for the device. Throws ShapeError for
/// another dtype; ConfigError for a label outside [0, classes), and where no label counts.
[[nodiscard]] std::vector<double> balanced(const at::Tensor& labels, int64_t classes);
}  // namespace losses

/// Holds a loss ready for use. The table lists Tare's own.
///
/// | name               | output                | target                       | activation |
/// |--------------------|-----------------------|------------------------------|------------|
/// | cross_entropy      | logits [n, c, ...]    | classes int64 [n, ...]       | softmax    |
/// | nll                | log-probs [n, c, ...] | classes int64 [n, ...]       | exp        |
/// | bce_with_logits    | logits [...]          | 0 to 1, floating, same shape | sigmoid    |
/// | kl_div             | log-probs [...]       | probabilities, same shape    | exp        |
/// | mse, l1, smooth_l1 | values [...]          | values, same shape           | none       |
///
/// `mean` divides by the number of elements of the target (kl_div: by the batch), as
/// torch::nn::functional does; cross_entropy and nll ignore labels of -100. The activation works
/// on dimension 1. With class weights, the mean of cross_entropy over class labels divides by the
/// sum of the weights of the labels. Options change nothing else of this, nor what a plan knows of
/// the loss.
///
/// Where a batch has several targets, the model gives as many outputs. A loss of two tensors then
/// takes each target with the output at its place, and the mean is over all that is counted in all
/// of them.
struct ResolvedLoss {
  std::string name{};   ///< "custom" for a function without a name
  bool custom = false;  ///< a function: nothing is known of what it takes
  LossFunction mean{};  ///< -> scalar
  /// -> scalar: the sum, for a loss that ignores labels; empty for other losses.
  LossFunction sum{};
  /// -> [batch]: the mean over each sample's elements, or over its labels that are not ignored (0
  /// for a sample without any), each times its class weight; empty for a function.
  LossFunction per_sample{};
  /// Identity for a function that names none.
  std::function<at::Tensor(const at::Tensor& output)> activation{};
  std::string activation_name{};        ///< "softmax", "exp", "sigmoid" or "none"
  std::vector<double> class_weights{};  ///< of cross_entropy; empty: every class has 1
  CountFunction counted{};              ///< of a function, see Loss
  BatchLossFunction batch_mean{};       ///< of Loss::of_batch(), in place of `mean`
  BatchCountFunction batch_counted{};   ///< of Loss::of_batch(), see there
};

/// Looks up a name, or wraps a function. Throws ConfigError for an unknown name of a loss, an
/// option or an activation, with the nearest one, for a value that is not allowed, and for an empty
/// function.
[[nodiscard]] ResolvedLoss resolve(const Loss& loss);

/// Returns the names in losses::registry(), sorted.
[[nodiscard]] std::vector<std::string> loss_names();

/// Checks a batch for mistakes that a loss reports unclearly or not at all: different batch sizes,
/// a target of the wrong dtype or shape, class labels outside [0, outputs), probabilities outside
/// [0, 1] or of a single output, class weights for another number of classes. Reads the target and
/// so waits for the device: meant for the first batch of a fit. For a custom loss only the batch
/// size is checked. Throws ShapeError for sizes or dtype, ConfigError for values, DeviceError.
void check_batch(const ResolvedLoss& loss, const at::Tensor& output, const at::Tensor& target);

/// Returns what `mean` is over: the labels without those of -100 that cross_entropy and nll
/// ignore, or the sum of the class weights of these labels; the elements of the target; or the
/// samples of kl_div and of a function without a count of its own. A mean over several batches is
/// weighted by it. Waits for the device for labels there. Unset: there is no target.
[[nodiscard]] std::optional<double> counted(const ResolvedLoss& loss, const at::Tensor& target);

/// Describes the class labels of a target: lowest, highest, and what a mean over them is over.
struct LabelRange {
  int64_t low = 0, high = -1;  ///< labels; high < low: there is none
  /// Counts the labels that are not ignored, or sums their class weights; see counted().
  double counted = 0;
};

/// Returns the range of an int64 target on the host, without the labels of -100 that cross_entropy
/// and nll ignore. Unset for a loss that takes no class labels, and for any other target.
[[nodiscard]] std::optional<LabelRange> label_range(const ResolvedLoss& loss,
                                                    const at::Tensor& target);
/// Throws ConfigError unless the labels are in [0, classes).
void check_labels(const ResolvedLoss& loss, const LabelRange& labels, int64_t classes);

}  // namespace tare
