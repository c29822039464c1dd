// TensorDataset: samples that are rows of tensors in memory. Internal: use tensor_dataset().
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/data/dataset.h"
#include "tare/data/level_source.h"

namespace tare {

/// Holds Dataset::sample_name() of each sample; null: none has one.
using SampleNames = std::shared_ptr<const std::vector<std::string>>;

/// Is a data set that applies further transforms in one pass with its own work.
class Transformable : public Dataset, public LevelSource {
 public:
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return sample_shape_; }
  [[nodiscard]] std::string sample_name(int64_t index) const override;
  [[nodiscard]] std::vector<std::string> labels() const override { return labels_; }
  [[nodiscard]] const Transforms* transforms() const override {
    return transforms_ || !read_with_.steps().empty() ? &all_ : nullptr;
  }
  /// Returns a data set of the same samples with further transforms.
  [[nodiscard]] virtual DatasetPtr with(const Transforms& more) const = 0;

 protected:
  /// Takes the shape of a sample before the transforms, and in `read_with` what a reader has
  /// already done to the samples.
  Transformable(std::vector<int64_t> raw_shape, std::vector<std::string> labels,
                Transforms read_with, SampleNames names);
  /// Adds to the transforms that get() applies. Throws what Transforms::output_shape() throws.
  void add(const Transforms& more);
  /// Returns the shape of a sample before the transforms.
  [[nodiscard]] const std::vector<int64_t>& raw_shape() const { return raw_shape_; }
  /// Returns the transforms that get() applies; nullptr: none.
  [[nodiscard]] const Transforms* applied() const { return transforms_ ? &*transforms_ : nullptr; }

 private:
  std::vector<int64_t> raw_shape_, sample_shape_;
  std::vector<std::string> labels_;
  std::optional<Transforms> transforms_;  // that get() applies
  Transforms read_with_, all_;            // all_: read_with_, then transforms_
  SampleNames names_;
};

/// Gives the rows of tensors, see tensor_dataset(); gathers and transforms in one pass.
class TensorDataset final : public Transformable {
 public:
  /// Holds the tensors; `read_with` lists what a reader has already done to the samples.
  TensorDataset(const NamedTensors& inputs, const NamedTensors& targets,
                std::vector<std::string> labels, Transforms read_with = {}, SampleNames names = {});
  [[nodiscard]] int64_t size() const override { return raw_input().size(0); }
  [[nodiscard]] Batch get(const BatchRequest& request) const override;
  [[nodiscard]] at::Tensor targets() const override;
  [[nodiscard]] bool in_memory() const override { return !applied(); }
  /// Returns the levels of the first input before the transforms; unset: not known.
  [[nodiscard]] std::optional<Levels> levels() const override { return levels_; }
  [[nodiscard]] std::string content() const override;
  void account(Ledger& ledger) const override;
  /// Returns the first input, [size, ...] on the host, contiguous, before its transforms.
  [[nodiscard]] const at::Tensor& raw_input() const { return inputs_.front().tensor; }
  [[nodiscard]] DatasetPtr with(const Transforms& more) const override;

 private:
  /// Takes checked tensors, of which the first `inputs` are inputs.
  TensorDataset(const NamedTensors& all, size_t inputs, std::vector<std::string> labels,
                Transforms read_with, SampleNames names);
  [[nodiscard]] at::Tensor gathered(size_t input, const BatchRequest& request, bool random) const;
  [[nodiscard]] bool moves(const at::Tensor& target) const;

  NamedTensors inputs_, targets_;
  std::optional<Levels> levels_;
};

}  // namespace tare
