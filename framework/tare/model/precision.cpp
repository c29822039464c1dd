#include "tare/model/precision.h"

#include <ATen/autocast_mode.h>

#include <algorithm>

#include "tare/base/error.h"

namespace tare {
namespace {

void set(const AutocastState& state) {
  at::autocast::set_autocast_enabled(state.device, state.enabled);
  at::autocast::set_autocast_dtype(state.device, state.dtype);
  at::autocast::set_autocast_cache_enabled(state.cache);
}

}  // namespace

std::vector<std::string> precision_names() { return {"fp32", "bf16", "fp16", "bf16-true"}; }

Precision parse_precision(const std::string& name, const std::string& where) {
  const auto names = precision_names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw ConfigError(where, "precision must be fp32, bf16, fp16 or bf16-true, got '" + name + "'");
  return static_cast<Precision>(found - names.begin());
}

AutocastState AutocastState::of(c10::DeviceType device) {
  return {.device = device,
          .enabled = at::autocast::is_autocast_enabled(device),
          .dtype = at::autocast::get_autocast_dtype(device),
          .cache = at::autocast::is_autocast_cache_enabled()};
}

std::optional<AutocastState> autocast_for(Precision precision, c10::DeviceType device) {
  if (precision != Precision::bf16 && precision != Precision::fp16) return std::nullopt;
  return AutocastState{.device = device,
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
