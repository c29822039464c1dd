#include "tare/model/precision.h"

#include <ATen/autocast_mode.h>

namespace tare {
namespace {

void set(const AutocastState& state) {
  at::autocast::set_autocast_enabled(state.device, state.enabled);
  at::autocast::set_autocast_dtype(state.device, state.dtype);
  at::autocast::set_autocast_cache_enabled(state.cache);
}

}  // namespace

AutocastState AutocastState::of(c10::DeviceType device) {
  return {.device = device,
          .enabled = at::autocast::is_autocast_enabled(device),
          .dtype = at::autocast::get_autocast_dtype(device),
          .cache = at::autocast::is_autocast_cache_enabled()};
}

AutocastScope::AutocastScope(const AutocastState& state)
    : before_(AutocastState::of(state.device)) {
  at::autocast::increment_nesting();
  set(state);
}

AutocastScope::~AutocastScope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  set(before_);
}

}  // namespace tare
