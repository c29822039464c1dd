// Gives samples of tensors in memory, transformed while they are copied.
#include "tare/data/tensor_dataset.h"

#include <set>
#include <utility>

#include "tare/base/error.h"
#include "tare/data/gather.h"

namespace tare {
namespace {

at::Tensor checked(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.device().is_cpu()) throw DeviceError("tensor_dataset", tensor.device().str(), "cpu");
  if (tensor.dim() == 0)
    throw ShapeError("tensor_dataset", what + " with a sample dimension", "a scalar");
  return tensor.detach().contiguous();
}

// Checks all tensors and returns them on the host and contiguous: the inputs, then the targets.
NamedTensors checked(const NamedTensors& inputs, const NamedTensors& targets) {
  NamedTensors all = inputs;
  all.append(targets.begin(), targets.end());
  if (inputs.empty() || !inputs.front().tensor.defined())
    throw ConfigError("tensor_dataset", "the input is undefined, give a tensor [samples, ...]");
  std::set<std::string> names;
  for (auto& [name, tensor] : all) {
    if (name.empty() || !names.insert(name).second)
      throw ConfigError("tensor_dataset", "each tensor needs a name of its own, got '" +
                                              printable(name) + "' " +
                                              (name.empty() ? "for one" : "twice"));
    if (!tensor.defined())
      throw ConfigError("tensor_dataset", printable(name) + " is undefined, omit it");
    tensor = checked(tensor, name);
    if (tensor.size(0) == 0 || all.front().tensor.numel() == 0)
      throw ConfigError("tensor_dataset", "the data set is empty, give at least one sample");
    if (tensor.size(0) != all.front().tensor.size(0))
      throw ShapeError("tensor_dataset",
                       "as many targets as inputs, " + std::to_string(all.front().tensor.size(0)),
                       std::to_string(tensor.size(0)) + " of " + printable(name));
  }
  return all;
}

}  // namespace

Transformable::Transformable(std::vector<int64_t> raw_shape, std::vector<std::string> labels,
                             Transforms read_with, SampleNames names)
    : raw_shape_(std::move(raw_shape)),
      sample_shape_(raw_shape_),
      labels_(std::move(labels)),
      read_with_(std::move(read_with)),
      all_(read_with_),
      names_(std::move(names)) {}

std::string Transformable::sample_name(int64_t index) const {
  check_indices({&index, 1}, size());
  return names_ ? names_->at(static_cast<size_t>(index)) : std::string();
}

void Transformable::add(const Transforms& more) {
  transforms_ = joined(applied(), more);
  all_ = joined(&read_with_, *transforms_);
  sample_shape_ = transforms_->output_shape(raw_shape_);
}

TensorDataset::TensorDataset(const NamedTensors& inputs, const NamedTensors& targets,
                             std::vector<std::string> labels, Transforms read_with,
                             SampleNames names)
    : TensorDataset(checked(inputs, targets), inputs.size(), std::move(labels),
                    std::move(read_with), std::move(names)) {}

TensorDataset::TensorDataset(const NamedTensors& all, size_t inputs,
                             std::vector<std::string> labels, Transforms read_with,
                             SampleNames names)
    : Transformable(all.front().tensor.sizes().slice(1).vec(), std::move(labels),
                    std::move(read_with), std::move(names)) {
  const auto first_target = all.begin() + static_cast<std::ptrdiff_t>(inputs);
  inputs_.assign(all.begin(), first_target);
  targets_.assign(first_target, all.end());
  levels_ = levels_of(raw_input());
  const auto count = static_cast<int64_t>(this->labels().size());
  if (count > 0 && !targets_.empty() && targets_.front().tensor.scalar_type() == at::kLong)
    check_labels(targets_.front().tensor, count);
}

// Gather and transforms are one pass.
at::Tensor TensorDataset::gathered(size_t input, const BatchRequest& request, bool random) const {
  const at::Tensor& rows = inputs_[input].tensor;
  if (!applied() || (input > 0 && rows.dim() != 4)) return gather_rows(rows, request.indices);
  const auto seeds = random ? sample_seeds(request, input) : std::vector<uint64_t>();
  return applied()->apply_rows(rows, request.indices, seeds, random);
}

// Whether a target is an image, which moves with the first input.
bool TensorDataset::moves(const at::Tensor& target) const {
  return applied() && Transforms::are_images(target.sizes(), raw_input().sizes());
}

Batch TensorDataset::get(const BatchRequest& request) const {
  check_indices(request.indices, size());
  Batch batch;
  const bool random = request.training && applied() && applied()->random();
  for (size_t i = 0; i < inputs_.size(); ++i)
    batch.inputs.push_back({inputs_[i].name, gathered(i, request, random)});
  for (const auto& [name, rows] : targets_) {
    at::Tensor target = gather_rows(rows, request.indices);
    if (moves(rows)) {
      const auto seeds = random ? sample_seeds(request) : std::vector<uint64_t>();
      target = applied()->apply_to_targets(target, seeds, random);
    }
    batch.targets.push_back({name, std::move(target)});
  }
  return batch;
}

at::Tensor TensorDataset::targets() const {
  if (targets_.empty()) return {};
  const at::Tensor& first = targets_.front().tensor;
  return moves(first) ? applied()->apply_to_targets(first, {}, false) : first;
}

std::string TensorDataset::content() const { return hash_of(Batch{inputs_, targets_}); }

void TensorDataset::account(Ledger& ledger) const {
  for (const auto* list : {&inputs_, &targets_})
    for (const auto& [name, tensor] : *list) ledger.add(Category::other, "dataset." + name, tensor);
}

DatasetPtr TensorDataset::with(const Transforms& more) const {
  auto result = std::make_shared<TensorDataset>(*this);
  result->add(more);
  for (const auto& [name, target] : targets_)
    result->applied()->check_targets_move(name, target.sizes(), raw_input().sizes());
  return result;
}

DatasetPtr tensor_dataset(const at::Tensor& input, const at::Tensor& target,
                          std::vector<std::string> labels) {
  const Batch all(input, target);
  return tensor_dataset(all.inputs, all.targets, std::move(labels));
}

DatasetPtr tensor_dataset(const NamedTensors& inputs, const NamedTensors& targets,
                          std::vector<std::string> labels) {
  return std::make_shared<TensorDataset>(inputs, targets, std::move(labels));
}

}  // namespace tare
