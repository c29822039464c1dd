// Gives samples of tensors in memory, transformed while they are copied.
#include "tare/data/tensor_dataset.h"

#include <utility>

#include "tare/base/error.h"
#include "tare/data/gather.h"

namespace tare {
namespace {

at::Tensor checked(const at::Tensor& tensor, const char* what) {
  if (!tensor.device().is_cpu()) throw DeviceError("tensor_dataset", tensor.device().str(), "cpu");
  if (tensor.dim() == 0)
    throw ShapeError("tensor_dataset", std::string(what) + " with a sample dimension", "a scalar");
  return tensor.detach().contiguous();
}

}  // namespace

TensorDataset::TensorDataset(const at::Tensor& input, const at::Tensor& target,
                             std::vector<std::string> labels, std::optional<Transforms> transforms,
                             Transforms read_with, SampleNames names)
    : labels_(std::move(labels)),
      transforms_(std::move(transforms)),
      read_with_(std::move(read_with)),
      all_(joined(&read_with_, transforms_.value_or(Transforms{}))),
      names_(std::move(names)) {
  if (!input.defined())
    throw ConfigError("tensor_dataset", "the input is undefined, give a tensor [samples, ...]");
  input_ = checked(input, "input");
  if (input_.size(0) == 0 || input_.numel() == 0)
    throw ConfigError("tensor_dataset", "the data set is empty, give at least one sample");
  sample_shape_ = input_.sizes().slice(1).vec();
  if (transforms_) sample_shape_ = transforms_->output_shape(sample_shape_);
  if (!target.defined()) return;
  target_ = checked(target, "target");
  if (target_.size(0) != input_.size(0))
    throw ShapeError("tensor_dataset",
                     "as many targets as inputs, " + std::to_string(input_.size(0)),
                     std::to_string(target_.size(0)));
  moves_targets_ = transforms_ && Transforms::are_images(target_.sizes(), input_.sizes());
  if (!labels_.empty() && target_.scalar_type() == at::kLong)
    check_labels(target_, static_cast<int64_t>(labels_.size()));
}

Batch TensorDataset::get(const BatchRequest& request) const {
  check_indices(request.indices, size());
  Batch batch;
  const bool random = request.training && transforms_ && transforms_->random();
  const auto seeds = random ? sample_seeds(request) : std::vector<uint64_t>();
  batch.input = transforms_ ? transforms_->apply_rows(input_, request.indices, seeds, random)
                            : gather_rows(input_, request.indices);
  if (!target_.defined()) return batch;
  batch.target = gather_rows(target_, request.indices);
  if (moves_targets_) batch.target = transforms_->apply_to_targets(batch.target, seeds, random);
  return batch;
}

std::string TensorDataset::sample_name(int64_t index) const {
  check_indices({&index, 1}, size());
  return names_ ? names_->at(static_cast<size_t>(index)) : std::string();
}

at::Tensor TensorDataset::targets() const {
  return moves_targets_ ? transforms_->apply_to_targets(target_, {}, false) : target_;
}

void TensorDataset::account(Ledger& ledger) const {
  ledger.add(Category::other, "dataset.input", input_);
  ledger.add(Category::other, "dataset.target", target_);
}

DatasetPtr TensorDataset::with(const Transforms& more) const {
  return std::make_shared<TensorDataset>(input_, target_, labels_,
                                         joined(transforms_ ? &*transforms_ : nullptr, more),
                                         read_with_, names_);
}

DatasetPtr tensor_dataset(const at::Tensor& input, const at::Tensor& target,
                          std::vector<std::string> labels) {
  return std::make_shared<TensorDataset>(input, target, std::move(labels), std::nullopt);
}

}  // namespace tare
