#include "tare/data/dataset.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "tare/base/error.h"
#include "tare/data/gather.h"
#include "tare/transform/random.h"

namespace tare {

void check_indices(std::span<const int64_t> indices, int64_t size) {
  for (const int64_t index : indices)
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(size))
      throw ConfigError("data.get", "sample index must be in [0, " + std::to_string(size) +
                                        "), got " + std::to_string(index));
}

at::Tensor gather_rows(const at::Tensor& source, std::span<const int64_t> rows) {
  c10::DimVector shape(source.sizes());
  shape[0] = static_cast<int64_t>(rows.size());
  at::Tensor result = at::empty(shape, source.options());
  const size_t bytes = source.nbytes() / static_cast<size_t>(source.size(0));
  const auto* in = static_cast<const std::byte*>(source.const_data_ptr());
  auto* out = static_cast<std::byte*>(result.mutable_data_ptr());
  for (const int64_t row : rows) {
    std::memcpy(out, in + static_cast<size_t>(row) * bytes, bytes);
    out += bytes;
  }
  return result;
}

std::vector<uint64_t> sample_seeds(const BatchRequest& request) {
  std::vector<uint64_t> seeds;
  seeds.reserve(request.indices.size());
  for (const int64_t index : request.indices)
    seeds.push_back(derive_seed(request.seed, static_cast<uint64_t>(index)));
  return seeds;
}

Transforms joined(const Transforms* first, const Transforms& second) {
  std::vector<Transform> steps = first ? first->steps() : std::vector<Transform>();
  steps.insert(steps.end(), second.steps().begin(), second.steps().end());
  return Transforms(std::move(steps));
}

Batch get_all(const Dataset& data) {
  constexpr int64_t kChunk = 256;
  std::vector<int64_t> indices;
  std::vector<at::Tensor> inputs, targets;
  for (int64_t begin = 0; begin < data.size(); begin += kChunk) {
    indices.resize(static_cast<size_t>(std::min(kChunk, data.size() - begin)));
    std::iota(indices.begin(), indices.end(), begin);
    Batch batch = data.get({.indices = indices});
    inputs.push_back(std::move(batch.input));
    if (batch.target.defined()) targets.push_back(std::move(batch.target));
  }
  return {at::cat(inputs), targets.empty() ? at::Tensor() : at::cat(targets)};
}

Batch Batch::narrow(int64_t start, int64_t length) const {
  return {input.narrow(0, start, length),
          target.defined() ? target.narrow(0, start, length) : at::Tensor()};
}

at::Tensor Dataset::targets() const { return get_all(*this).target; }

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
                             Transforms read_with)
    : labels_(std::move(labels)),
      transforms_(std::move(transforms)),
      read_with_(std::move(read_with)),
      all_(joined(&read_with_, transforms_.value_or(Transforms{}))) {
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

at::Tensor TensorDataset::targets() const {
  return moves_targets_ ? transforms_->apply_to_targets(target_, {}, false) : target_;
}

void TensorDataset::account(Ledger& ledger) const {
  ledger.add(Category::other, "dataset.input", input_);
  ledger.add(Category::other, "dataset.target", target_);
}

DatasetPtr TensorDataset::with(const Transforms& more) const {
  return std::make_shared<TensorDataset>(
      input_, target_, labels_, joined(transforms_ ? &*transforms_ : nullptr, more), read_with_);
}

DatasetPtr tensor_dataset(const at::Tensor& input, const at::Tensor& target,
                          std::vector<std::string> labels) {
  return std::make_shared<TensorDataset>(input, target, std::move(labels), std::nullopt);
}

void check_labels(const at::Tensor& targets, int64_t classes) {
  if (!targets.defined() || targets.scalar_type() != at::kLong || !targets.device().is_cpu())
    throw ShapeError("data.check_labels", "int64 class indices on the host",
                     targets.defined() ? targets.toString() : "an undefined tensor");
  constexpr int64_t kIgnored = -100;
  const at::Tensor flat = targets.contiguous();
  const int64_t* label = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i)
    if ((label[i] < 0 && label[i] != kIgnored) || label[i] >= classes)
      throw ConfigError("data.check_labels",
                        "class indices must be in [0, " + std::to_string(classes) + "), got " +
                            std::to_string(label[i]) + " at sample " + std::to_string(i) +
                            ": check the labels or the model's classes");
}

}  // namespace tare
