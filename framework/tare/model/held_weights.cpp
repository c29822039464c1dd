// Holds parameters as E4M3, and opens them while something computes.
#include "tare/model/held_weights.h"

#include <c10/core/GradMode.h>

#include <utility>

#include "tare/memory/saved_hooks.h"
#include "tare/model/precision.h"

namespace tare {
namespace {

using Hooks = torch::autograd::SavedVariableHooks;

/// Returns the dtype to which weights are dequantised now, on this thread.
c10::ScalarType type_of(const HeldWeight& weight) {
  const AutocastState autocast = AutocastState::of(weight.parameter.device().type());
  return autocast.enabled ? autocast.dtype : weight.type;
}

const HeldWeight* find(const HeldWeights& held, const at::Tensor& saved) {
  if (!saved.has_storage()) return nullptr;
  const auto* storage = saved.storage().unsafeGetStorageImpl();
  for (const HeldWeight& weight : held.all()) {
    const at::Tensor& full = weight.parameter;
    if (full.storage().unsafeGetStorageImpl() == storage &&
        full.scalar_type() == saved.scalar_type())
      return &weight;
  }
  return nullptr;
}

/// A dequantised weight, or a view of it, as E4M3; any other tensor as the scope around keeps it.
class SavedWeight final : public Hooks {
 public:
  SavedWeight(const HeldWeights& held, std::unique_ptr<Hooks> others)
      : held_(&held), others_(std::move(others)) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    const HeldWeight* weight = find(*held_, tensor);
    held_ = nullptr;  // it lives as long as the scope
    if (weight == nullptr) return others_->call_pack_hook(tensor);
    others_.reset();
    weight_ = weight->coded();
    type_ = tensor.scalar_type();
    offset_ = tensor.storage_offset();
    sizes_ = tensor.sizes().vec();
    strides_ = tensor.strides().vec();
  }
  at::Tensor call_unpack_hook() override {
    if (others_) return others_->call_unpack_hook();
    const c10::AutoGradMode no_grad(false);
    return dequantise(weight_, type_).as_strided(sizes_, strides_, offset_);
  }

 private:
  const HeldWeights* held_;
  std::unique_ptr<Hooks> others_;
  CodedWeight weight_;
  c10::ScalarType type_ = c10::kFloat;
  int64_t offset_ = 0;
  std::vector<int64_t> sizes_, strides_;
};

}  // namespace

CodedWeight HeldWeight::coded() const {
  return {values.defined() ? values : parameter.variable_data(), scale};
}

void HeldWeights::hold(const std::string& name, const at::Tensor& parameter) {
  HeldWeight weight{.name = name, .parameter = parameter, .type = parameter.scalar_type()};
  auto [values, scale] = quantise(parameter, name);
  weight.scale = std::move(scale);
  weights_.push_back(std::move(weight));
  parameter.set_data(values);
}

void HeldWeights::release(const std::function<bool(const HeldWeight&)>& chosen) {
  for (auto weight = weights_.begin(); weight != weights_.end();) {
    if (!chosen(*weight)) {
      ++weight;
      continue;
    }
    weight->parameter.set_data(dequantise(weight->coded(), weight->type));
    weight = weights_.erase(weight);
  }
}

void HeldWeights::move_scales(c10::Device device) {
  for (HeldWeight& weight : weights_) weight.scale = weight.scale.to(device);
}

void HeldWeights::account(Ledger& ledger, Category category) const {
  for (const HeldWeight& weight : weights_) {
    ledger.add(category, weight.name, weight.coded().values);
    ledger.add(category, scale_name(weight.name), weight.scale);
    if (open_) ledger.add(Category::workspace, weight.name, weight.parameter);
  }
}

class OpenWeights::Maker final : public memory::HookMaker {
 public:
  explicit Maker(const HeldWeights& held) : held_(held) {}
  std::unique_ptr<Hooks> make() override {
    return std::make_unique<SavedWeight>(held_, make_outer());
  }

 private:
  const HeldWeights& held_;
};

OpenWeights::OpenWeights(std::shared_ptr<HeldWeights> held) {
  if (held->open_) return;
  std::vector<at::Tensor> full;
  for (const HeldWeight& weight : held->weights_)
    full.push_back(dequantise(weight.coded(), type_of(weight)));
  if (c10::GradMode::is_enabled()) maker_ = std::make_unique<Maker>(*held);
  for (size_t i = 0; i < full.size(); ++i) {
    HeldWeight& weight = held->weights_[i];
    weight.values = weight.parameter.variable_data();
    weight.parameter.set_data(full[i]);
  }
  held->open_ = true;
  held_ = std::move(held);
}

OpenWeights::~OpenWeights() {
  if (!held_) return;
  for (HeldWeight& weight : held_->weights_)
    weight.parameter.set_data(std::exchange(weight.values, {}));
  held_->open_ = false;
}

}  // namespace tare
