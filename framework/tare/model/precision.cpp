// Names number formats, and switches autocast.
#include "tare/model/precision.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/memory/libtorch.h"
#include "tare/memory/machine.h"
#include "tare/memory/native_types.h"

namespace tare {
namespace {

/// Returns the device of LibTorch's state: meta tensors are autocast in plans only.
c10::DeviceType device_of_state(c10::DeviceType device) {
  return device == c10::kMeta ? libtorch::kMetaAutocast : device;
}

void set(const AutocastState& state) {
  at::autocast::set_autocast_enabled(state.device, state.enabled);
  at::autocast::set_autocast_dtype(state.device, state.dtype);
  at::autocast::set_autocast_cache_enabled(state.cache);
}

std::string name_of(Precision precision) {
  return precision_names()[static_cast<size_t>(precision)];
}

/// Whether this is the first of the warnings for the precision, on the host or on cards.
bool is_first(std::array<std::atomic<bool>, 4>& warned, Precision precision) {
  return !warned[static_cast<size_t>(precision)].exchange(true);
}

}  // namespace

std::vector<std::string> precision_names() { return {"fp32", "bf16", "fp16", "bf16-true"}; }

Precision parse_precision(const std::string& name, const std::string& where) {
  const auto names = precision_names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw ConfigError(where, "precision must be fp32, bf16, fp16 or bf16-true, got '" + name + "'")
        .about("precision", "fp32, bf16, fp16, bf16-true", name);
  return static_cast<Precision>(found - names.begin());
}

c10::ScalarType product_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return c10::kFloat;
    case Precision::fp16:
      return c10::kHalf;
    case Precision::bf16:
    case Precision::bf16_true:
      return c10::kBFloat16;
  }
  return c10::kFloat;
}

std::string slow_precision(Precision precision) {
  const c10::ScalarType type = product_type(precision);
  if (memory::processor_computes(type)) return {};
  std::array<char, 32> factor{};
  std::snprintf(factor.data(), factor.size(), "%.1f", memory::product_time_ratio(type));
  return "precision: " + name_of(precision) + " is slow here: this processor (" +
         memory::processor_name() + ") has no instructions for " + c10::toString(type) +
         ", and a product of matrices takes " + factor.data() +
         " times as long as in float32 (measured); use fp32 unless memory matters more";
}

void warn_of_slow_precision(Precision precision) {
  static std::array<std::atomic<bool>, 4> warned;
  if (!memory::processor_computes(product_type(precision)) && is_first(warned, precision))
    log::warning(slow_precision(precision));
}

void warn_of_bfloat16_on_card(Precision precision, const std::string& card) {
  static std::array<std::atomic<bool>, 4> warned;
  if (product_type(precision) == c10::kBFloat16 && is_first(warned, precision))
    log::warning("precision: " + name_of(precision) + " is slow on " + card +
                 ": its compute capability is below 8.0, so it has no instructions for BFloat16; "
                 "use fp16, for which it has some, unless you need the range of bf16");
}

AutocastState AutocastState::of(c10::DeviceType device) {
  device = device_of_state(device);
  return {.device = device,
          .enabled = at::autocast::is_autocast_enabled(device),
          .dtype = at::autocast::get_autocast_dtype(device),
          .cache = at::autocast::is_autocast_cache_enabled()};
}

std::optional<AutocastState> autocast_for(Precision precision, c10::DeviceType device) {
  if (precision != Precision::bf16 && precision != Precision::fp16) return std::nullopt;
  return AutocastState{.device = device_of_state(device),
                       .enabled = true,
                       .dtype = precision == Precision::bf16 ? c10::kBFloat16 : c10::kHalf,
                       .cache = false};
}

AutocastScope::AutocastScope(const std::optional<AutocastState>& state) {
  if (!state) return;
  before_ = AutocastState::of(state->device);
  at::autocast::increment_nesting();
  set(*state);
}

AutocastScope::~AutocastScope() {
  if (!before_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  set(*before_);
}

}  // namespace tare
