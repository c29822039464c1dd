// What a device is and can do, so that no code asks for its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tare::memory {

/// How the memory of a fit is planned for a device (plan/target.h).
struct PlannerTarget {
  /// Whether tensors come from LibTorch's caching allocator, as plan::CudaCache models it; else
  /// each tensor takes exactly its bytes.
  bool caches = false;
  int64_t workspace_bytes = 0;    ///< that libraries take from the allocator at the first product
  bool computes_bfloat16 = true;  ///< by instructions of its own
};

/// What a device is and can do. A value, the same for the life of the process.
struct DeviceTraits {
  std::string type = "cpu";                ///< that names of such devices begin with: "cpu", "cuda"
  bool is_host = true;                     ///< its memory is that of the host
  bool autocasts = true;                   ///< LibTorch has an autocast mode for it
  std::optional<PlannerTarget> planner{};  ///< unset: plans cannot be made for it
};

/// The state of a device's default random generator, for one that counts what it has given.
struct GeneratorState {
  uint64_t seed = 0;    ///< of the sequence
  uint64_t offset = 0;  ///< numbers that were taken
};

}  // namespace tare::memory
