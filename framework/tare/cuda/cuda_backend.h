// A CUDA device as a DeviceBackend, on LibTorch's caching allocator.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "tare/cuda/block_book.h"
#include "tare/runtime/plugin.h"

namespace tare::cuda {

/// Holds the state that the backends of all devices share; lives until the process ends.
struct Shared {
  /// Keeps a reference to `host`, which must outlive this object.
  explicit Shared(runtime::HostServices& host) : services(host), book(host) {}
  runtime::HostServices& services;  ///< what the program offers
  BlockBook book;                   ///< the live blocks of all cards
};

/// Makes the backend of a CUDA device. Touches no device: context and allocator are set up by the
/// first call that needs them.
///
/// Allocated bytes are rounded up to 512 by the allocator; live blocks carry the bytes asked for.
/// Peaks are the allocator's own peak, which a scope resets when it opens or closes: other code
/// that resets it meanwhile makes the peaks of open scopes too low.
[[nodiscard]] std::unique_ptr<memory::DeviceBackend> make_cuda_backend(c10::DeviceIndex index,
                                                                       Shared& shared);

}  // namespace tare::cuda
