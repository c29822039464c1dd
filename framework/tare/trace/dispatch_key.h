// The dispatch key by which operators reach their shape-only kernels. Internal.
#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace tare::plan {

/// Is below autograd and above every backend; no tensor has it and nothing else in LibTorch uses
/// it.
inline constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;

/// Whether this thread is in a MetaScope.
[[nodiscard]] inline bool planning() { return c10::impl::tls_is_dispatch_key_included(kKey); }

}  // namespace tare::plan
