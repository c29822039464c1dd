// Whether this build runs under a sanitizer, which takes memory and time of its own and keeps freed
// blocks in quarantine.
#pragma once

namespace tare::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tare::testing
