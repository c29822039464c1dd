// Autocast of meta tensors, for which LibTorch has none. Internal.
#pragma once

#include <c10/core/DispatchKey.h>

namespace tare::plan {

/// Stands above autograd; included in a MetaScope, and active where at::autocast is enabled for
/// libtorch::kMetaAutocast.
inline constexpr c10::DispatchKey kAutocastKey = c10::DispatchKey::AutocastIPU;

/// Registers the fallback for kAutocastKey, once: operators on meta tensors cast their operands as
/// those on a card do, by LibTorch's own lists of operators (ATen/autocast_mode.h).
void register_autocast();

}  // namespace tare::plan
