// What the data sets have in common. Internal.
#pragma once

#include <optional>

#include "tare/data/dataset.h"

namespace tare {

/// Throws ConfigError unless every index is in [0, size).
void check_indices(std::span<const int64_t> indices, int64_t size);
/// The rows of a contiguous host tensor as a new tensor; each row in [0, source.size(0)).
[[nodiscard]] at::Tensor gather_rows(const at::Tensor& source, std::span<const int64_t> rows);
/// The seed of each sample of a request, for transforms.
[[nodiscard]] std::vector<uint64_t> sample_seeds(const BatchRequest& request);
/// The steps of `first`, then those of `second`.
[[nodiscard]] Transforms joined(const Transforms* first, const Transforms& second);
/// The whole data set in one batch, without random transforms.
[[nodiscard]] Batch get_all(const Dataset& data);

/// See tensor_dataset(). With transforms, gather and transforms are one pass.
class TensorDataset : public Dataset {
 public:
  /// `read_with`: what a reader did to the samples before they came here.
  TensorDataset(const at::Tensor& input, const at::Tensor& target, std::vector<std::string> labels,
                std::optional<Transforms> transforms, Transforms read_with = {});
  [[nodiscard]] int64_t size() const override { return input_.size(0); }
  [[nodiscard]] Batch get(const BatchRequest& request) const override;
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return sample_shape_; }
  [[nodiscard]] std::vector<std::string> labels() const override { return labels_; }
  [[nodiscard]] const Transforms* transforms() const override {
    return transforms_ || !read_with_.steps().empty() ? &all_ : nullptr;
  }
  [[nodiscard]] at::Tensor targets() const override;
  [[nodiscard]] bool in_memory() const override { return !transforms_; }
  void account(Ledger& ledger) const override;
  /// [size, ...] on the host, contiguous, before its transforms.
  [[nodiscard]] const at::Tensor& raw_input() const { return input_; }
  /// The same tensors with further transforms.
  [[nodiscard]] DatasetPtr with(const Transforms& more) const;

 private:
  at::Tensor input_, target_;
  std::vector<std::string> labels_;
  std::optional<Transforms> transforms_;  // that get() applies
  Transforms read_with_, all_;            // all_: read_with_, then transforms_
  bool moves_targets_ = false;            // targets that are images move with the inputs
  std::vector<int64_t> sample_shape_;
};

}  // namespace tare
