// Finds, replaces and cuts the tensors of a batch.
#include "tare/data/batch.h"

#include <algorithm>
#include <string>

#include "tare/base/content_hash.h"
#include "tare/base/error.h"

namespace tare {
namespace {

const at::Tensor& no_tensor() {
  static const at::Tensor none;
  return none;
}

const at::Tensor& first(const NamedTensors& all) {
  return all.empty() ? no_tensor() : all.front().tensor;
}

const at::Tensor& named(const NamedTensors& all, std::string_view name, const char* kind) {
  std::vector<std::string> names;
  for (const NamedTensor& one : all) {
    if (one.name == name) return one.tensor;
    names.push_back(one.name);
  }
  throw ConfigError("batch", "has no " + std::string(kind) + " '" + printable(std::string(name)) +
                                 "'" + did_you_mean(name, names));
}

void replace_first(NamedTensors& all, at::Tensor tensor, const char* name) {
  if (all.empty()) {
    all.push_back({name, std::move(tensor)});
  } else {
    all.front().tensor = std::move(tensor);
  }
}

NamedTensors narrowed(const NamedTensors& all, int64_t start, int64_t length) {
  NamedTensors part;
  for (const auto& [name, tensor] : all) part.push_back({name, tensor.narrow(0, start, length)});
  return part;
}

}  // namespace

Batch::Batch(at::Tensor input, at::Tensor target) {
  if (input.defined()) set_input(std::move(input));
  if (target.defined()) set_target(std::move(target));
}

const at::Tensor& Batch::input() const& { return first(inputs); }
const at::Tensor& Batch::target() const& { return first(targets); }
const at::Tensor& Batch::input(std::string_view name) const& {
  return named(inputs, name, "input");
}
const at::Tensor& Batch::target(std::string_view name) const& {
  return named(targets, name, "target");
}
void Batch::set_input(at::Tensor tensor) { replace_first(inputs, std::move(tensor), "input"); }
void Batch::set_target(at::Tensor tensor) { replace_first(targets, std::move(tensor), "target"); }

Batch Batch::narrow(int64_t start, int64_t length) const {
  return {narrowed(inputs, start, length), narrowed(targets, start, length)};
}

std::vector<at::Tensor> Batch::tensors() const {
  std::vector<at::Tensor> all;
  for (const auto* list : {&inputs, &targets})
    for (const NamedTensor& one : *list) all.push_back(one.tensor);
  return all;
}

Batch Batch::with(std::span<const at::Tensor> tensors) const {
  Batch other = *this;
  auto next = tensors.begin();
  for (auto* list : {&other.inputs, &other.targets})
    for (NamedTensor& one : *list) one.tensor = *next++;
  return other;
}

std::string hash_of(const Batch& batch) {
  std::string all;
  const auto add = [&all](const at::Tensor& tensor) {
    const at::Tensor flat = tensor.contiguous();
    all += content_hash({static_cast<const std::byte*>(flat.const_data_ptr()), flat.nbytes()});
  };
  for (const NamedTensor& input : batch.inputs) add(input.tensor);
  for (size_t i = 1; i < batch.targets.size(); ++i) add(batch.targets[i].tensor);
  return all;
}

Batch on_meta(Batch batch) {
  for (auto* list : {&batch.inputs, &batch.targets})
    for (NamedTensor& one : *list) one.tensor = one.tensor.to(c10::kMeta);
  return batch;
}

bool same_layout(const Batch& one, const Batch& other, size_t skip) {
  const auto same = [skip](const NamedTensor& a, const NamedTensor& b) {
    return a.name == b.name && a.tensor.scalar_type() == b.tensor.scalar_type() &&
           a.tensor.dim() == b.tensor.dim() &&
           a.tensor.sizes().slice(skip) == b.tensor.sizes().slice(skip);
  };
  return std::ranges::equal(one.inputs, other.inputs, same) &&
         std::ranges::equal(one.targets, other.targets, same);
}

Batch joined(std::vector<Batch> parts,
             const std::function<at::Tensor(const std::vector<at::Tensor>&)>& join) {
  Batch whole = parts.front();
  const auto join_all = [&](NamedTensors Batch::*list) {
    for (size_t i = 0; i < (whole.*list).size(); ++i) {
      std::vector<at::Tensor> tensors;
      for (Batch& part : parts) tensors.push_back(std::move((part.*list)[i].tensor));
      (whole.*list)[i].tensor.reset();
      (whole.*list)[i].tensor = join(tensors);
    }
  };
  join_all(&Batch::inputs);
  join_all(&Batch::targets);
  return whole;
}

const at::Tensor& Outputs::front() const { return all_.empty() ? no_tensor() : all_.front(); }

}  // namespace tare
