// Reads and writes a model's tensors in their stored types.
#include "tare/model/stored.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tare/base/error.h"
#include "tare/model/held_weights.h"

namespace tare {
namespace {

using Held = std::unordered_map<std::string, const HeldWeight*>;

Held held_in(const Model& model) {
  Held all;
  for (const auto& weights : model.held())
    for (const HeldWeight& weight : weights->all()) all.emplace(weight.name, &weight);
  return all;
}

/// Lists what values are loaded into: a held weight has no tensor, but a shape and a type.
std::vector<NamedTensor> targets_of(const Model& model, const Held& held) {
  std::vector<NamedTensor> targets = model.state();
  for (auto& [name, tensor] : targets) {
    const auto found = held.find(name);
    if (found == held.end()) continue;
    const auto options = at::TensorOptions(found->second->type).device(c10::kMeta);
    tensor = at::empty(tensor.sizes(), options);
  }
  return targets;
}

/// Copies out of a file, by name.
class Copies {
 public:
  Copies(const std::vector<NamedTensor>& stored, const std::map<std::string, at::Tensor>& scales,
         const Held& held)
      : scales_(scales), held_(held) {
    for (const auto& [name, tensor] : stored) by_name_.emplace(name, tensor);
  }

  /// Throws for a value that would be refused when others have been copied.
  void check(const std::vector<NamedTensor>& targets, std::string_view operation,
             const std::filesystem::path& path) const {
    for (const auto& [name, target] : targets) {
      const auto source = by_name_.find(name);
      if (!held_.contains(name) || source == by_name_.end() || scales_.contains(name)) continue;
      if (!fits_codes(source->second) || source->second.sizes() != target.sizes()) continue;
      try {
        (void)quantise(source->second, name);
      } catch (const ConfigError& error) {
        throw FormatError(operation, path.string(), printable(name), error.what());
      }
    }
  }

  void copy(const NamedTensor& target) const {
    const at::Tensor& source = by_name_.at(target.name);
    const auto scale = scales_.find(target.name);
    const auto held = held_.find(target.name);
    if (held == held_.end()) {
      if (scale == scales_.end()) {
        target.tensor.copy_(source);
      } else {
        dequantise_into(target.tensor, {source, scale->second});
      }
      return;
    }
    const CodedWeight into = held->second->coded();
    if (scale == scales_.end()) return quantise_into(into, source, target.name);
    if (source.scalar_type() != into.values.scalar_type())
      return quantise_into(into, dequantise({source, scale->second}, c10::kFloat), target.name);
    into.values.copy_(source);
    into.scale.copy_(scale->second);
  }

 private:
  const std::map<std::string, at::Tensor>& scales_;
  const Held& held_;
  std::unordered_map<std::string, at::Tensor> by_name_;
};

std::vector<NamedTensor> all_in_float32(std::vector<NamedTensor> tensors) {
  const c10::AutoGradMode no_grad(false);
  for (auto& [name, tensor] : tensors) tensor = in_float32(tensor);
  return tensors;
}

/// Returns tensors without codes in a storage other than as_is.
std::vector<NamedTensor> rounded(const std::vector<NamedTensor>& tensors,
                                 const std::vector<std::string>& parameters,
                                 const std::string& weights) {
  if (weights == "fp8") return as_fp8(tensors, parameters);
  if (weights == "int8") return as_int8(tensors, parameters);
  if (weights == "bf16") return as_16_bits(tensors, parameters, c10::kBFloat16);
  if (weights == "fp16") return as_16_bits(tensors, parameters, c10::kHalf);
  return all_in_float32(tensors);
}

}  // namespace

std::vector<NamedTensor> stored_state(const Model& model) {
  std::vector<NamedTensor> all;
  for (const auto& weights : model.held())
    for (const HeldWeight& weight : weights->all())
      all.push_back({scale_name(weight.name), weight.scale});
  for (auto& tensor : model.state()) all.push_back(std::move(tensor));
  return all;
}

std::vector<NamedTensor> computed_state(const Model& model) {
  const Held held = held_in(model);
  std::vector<NamedTensor> all = model.state();
  for (auto& [name, tensor] : all)
    if (const auto found = held.find(name); found != held.end())
      tensor = dequantise(found->second->coded(), found->second->type);
  return all;
}

std::vector<std::string> weight_storages() {
  return {"as_is", "fp32", "bf16", "fp16", "fp8", "int8"};
}

bool rounds_weights(const std::string& weights) { return weights != "as_is" && weights != "fp32"; }

void check_weight_storage(const std::string& weights, const std::string& where) {
  const auto known = weight_storages();
  if (std::ranges::find(known, weights) == known.end())
    throw ConfigError(where, "weights", "is no storage", listed(known), printable(weights));
}

std::vector<std::string> parameter_names(const Model& model) {
  std::vector<std::string> names;
  for (const auto& parameter : model.parameters()) names.push_back(parameter.name);
  return names;
}

std::vector<NamedTensor> state_for(const Model& model, const std::string& weights) {
  check_weight_storage(weights, "model.state_for");
  if (weights == "fp8") return as_fp8(stored_state(model), parameter_names(model));
  auto all = computed_state(model);
  return weights == "as_is" ? all : rounded(all, parameter_names(model), weights);
}

std::vector<NamedTensor> stored_for(const std::vector<NamedTensor>& stored,
                                    const std::vector<std::string>& parameters,
                                    const std::string& weights, std::string_view operation,
                                    const std::filesystem::path& path) {
  check_weight_storage(weights, std::string(operation));
  if (weights == "as_is") return stored;
  const std::string coding = coding_of(stored);
  if (weights == "fp8" && coding != "int8") return as_fp8(stored, parameters);
  if (weights == "int8" && coding != "fp8") return as_int8(stored, parameters);
  return rounded(dequantised(stored, operation, path), parameters, weights);
}

checkpoint::Match compare_stored(const Model& model, const std::vector<NamedTensor>& stored,
                                 std::string_view operation, const std::filesystem::path& path) {
  return checkpoint::compare(targets_of(model, held_in(model)),
                             outlined(stored, scales_in(stored, operation, path)));
}

checkpoint::CopyReport load_stored(Model& model, const std::vector<NamedTensor>& stored,
                                   bool strict, std::string_view operation,
                                   const std::filesystem::path& path) {
  const auto scales = scales_in(stored, operation, path);
  const Held held = held_in(model);
  const auto targets = targets_of(model, held);
  const Copies copies(stored, scales, held);
  copies.check(targets, operation, path);
  return checkpoint::copy_into(
      targets, outlined(stored, scales), strict, operation, path,
      [&](const NamedTensor& target, const at::Tensor&) { copies.copy(target); });
}

}  // namespace tare
