// Where a plan is to run: the host or a CUDA card, and how much memory tensors can have there.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/memory/device_traits.h"
#include "tare/trace/trace_events.h"

namespace tare::plan {

/// Describes the target of a plan: a device, its capacity and the types that it computes with. A
/// value.
struct Target {
  std::string name = "host";  ///< as it was given
  bool caches = false;  ///< tensors come from LibTorch's caching allocator, as on a card; else the
                        ///< host's allocator gives each its bytes
  /// Limits the bytes of tensors: allocated ones, or reserved ones where the allocator caches.
  int64_t capacity_bytes = 0;
  /// All memory of a card that is here, where less is free on it, which is the limit; else unset.
  std::optional<int64_t> total_bytes{};
  /// CUDA: the settings of the allocator in this process; those of a card that is not here are
  /// LibTorch's defaults.
  memory::CacheSettings cache{};
  /// CUDA: what cuBLAS takes from the allocator for a matrix product.
  int64_t workspace_bytes = 0;
  /// CUDA: what cublasLt takes from the allocator beside cuBLAS for a linear layer with a bias.
  int64_t linear_workspace_bytes = 0;
  /// CUDA: whether cublasLt computes every product, also without a bias.
  bool prefers_cublaslt = false;
  /// CUDA: whether each library keeps its workspace from the first product on, beside that of the
  /// backward; else each product takes one and gives it back.
  bool keeps_workspaces = true;
  /// CUDA: for the buffers of long sums; unknown for a card that is given by its size alone, whose
  /// plan is without them.
  memory::Multiprocessors multiprocessors{};
  /// CUDA: the compute capability, 10 x major + minor, on which the kernels of attention depend. A
  /// card that is given by its size alone is taken for one of Ampere.
  int64_t capability = 0;
  /// Whether products of bfloat16 matrices are computed by instructions of their own there. A card
  /// that is given by its size alone is taken for one that has them, as all since 2020 do.
  bool computes_bfloat16 = true;

  /// CUDA: the card of this machine that it is, on which workspaces of cuDNN are measured; unset
  /// for a card that is not here, and where no context may be made.
  std::optional<c10::Device> card{};

  /// Returns the machine whose kernels run there.
  [[nodiscard]] Machine machine() const {
    if (!caches) return Machine::host;
    return {.capability = capability, .multiprocessors = multiprocessors.count};
  }
};

/// Returns the target that a text names:
///
/// | text                | capacity                                                              |
/// |---------------------|-----------------------------------------------------------------------|
/// | host, cpu, auto     | what the machine, or its control group or budget, has available now   |
/// | host:8GiB           | as given                                                              |
/// | cuda, cuda:0        | what a device of this machine has available; DeviceError without one  |
/// | cuda:H200           | the card's memory less 600 MiB for its context; no GPU needed         |
/// | cuda:24GiB          | as given; no GPU needed                                               |
///
/// "auto" is the first accelerator if there is one. Throws ConfigError for any other text, naming
/// the nearest card, and for a size of 0. `capacity`: the bytes for a device that is there, where
/// they are known; unset, the device is asked, which makes a context of this process on a card.
[[nodiscard]] Target parse_target(const std::string& text,
                                  std::optional<int64_t> capacity = std::nullopt);

/// Returns "24 GiB"; "20 MiB free of 24 GiB" where Target::total_bytes is known.
[[nodiscard]] std::string capacity_text(int64_t capacity_bytes, std::optional<int64_t> total_bytes);

/// Returns the cards known by name, sorted.
[[nodiscard]] std::vector<std::string> card_names();

}  // namespace tare::plan
