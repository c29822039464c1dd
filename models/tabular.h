// Defines a network for tables: embeddings of categories beside numbers, then linear layers (Guo
// and Berkhahn 2016, "Entity Embeddings of Categorical Variables"), with the tensor names of
// fastai's TabularModel, so that its weights load.
#pragma once

#include <torch/nn.h>

#include <vector>

#include "tare/model/registry.h"

namespace tare::models {

/// Is written as one number for all outputs, or as a list with a number for each.
struct PerOutput {
  std::vector<double> numbers{};  ///< one for all outputs, or one for each of them, in their order
};
/// Reads a number or a list. Throws ConfigError for an empty list.
void from_node(const config::Node& node, PerOutput& value);
/// Writes one number without a list.
[[nodiscard]] config::Node to_node(const PerOutput& value);

/// Configures what only this family has.
struct TabularOptions {
  /// Categories of each of the first columns, whose values are codes from 0 on; empty: all columns
  /// are numbers.
  std::vector<int64_t> categories{};
  PerOutput output_mean{{0}};       ///< is added to the outputs
  PerOutput output_deviation{{1}};  ///< multiplies the outputs before; > 0
};
void visit_fields(auto& visit, TabularOptions& o) {
  visit("categories", o.categories, config::between(1, kLargestSize));
  visit("output_mean", o.output_mean);
  visit("output_deviation", o.output_deviation, config::above(0));
}

/// Returns the channels of the embedding of so many categories, by fastai's rule: 1.6 times their
/// 0.56th power, rounded, and at most 600.
[[nodiscard]] int64_t embedding_width(int64_t categories);

/// Classifies rows of a table. Layer groups: embedding (embeds, bn_cont), layers.0, layers.1, ...,
/// the last of which is the head.
struct TabularImpl : torch::nn::Module {
  /// Uses the options `classes`, `sample_shape`, `hidden` (default 200 and 100) and `dropout`.
  /// Throws ConfigError unless sample_shape is [columns] with at least the columns of `categories`,
  /// and for lists of output_mean and output_deviation that are not as long as `classes`.
  TabularImpl(const ModelOptions& options, const TabularOptions& own);
  /// Takes rows, float32 [batch, columns], the categories first, and returns logits, float32
  /// [batch, classes], or values in the units of the targets with output_mean and output_deviation,
  /// so that the layers compute with values around 0. Throws ShapeError for another shape, and for
  /// rows of 16 bits where these cannot hold each code. A code outside of its categories is an
  /// error of LibTorch.
  torch::Tensor forward(const torch::Tensor& rows);

  torch::nn::ModuleList embeds;             ///< an embedding for each column of categories
  torch::nn::BatchNorm1d bn_cont{nullptr};  ///< normalises the numbers; null: there are none
  torch::nn::Sequential layers;             ///< linear, ReLU, norm, dropout; the last: linear
  std::vector<int64_t> categories;          ///< as in the options
  int64_t columns = 0;                      ///< of a row
  /// Hold the numbers of the options, one for all outputs or one for each. Both have one length.
  std::vector<double> output_mean, output_deviation;
};
TORCH_MODULE(Tabular);

}  // namespace tare::models
