// The registry of callbacks: those that a recipe can name.
#pragma once

#include "tare/callback/callback.h"
#include "tare/config/registry.h"

namespace tare::callbacks {

/// Makes callbacks by name. It holds Tare's own (`tare ls callbacks` lists them); a program adds
/// its own before it reads a recipe that names one.
using Registry = config::Registry<CallbackPtr()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process

}  // namespace tare::callbacks
