// GlooBackend: an exchange by Gloo that can be seen to hold no tensors any more. Internal.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "tare/parallel/world.h"

namespace tare::parallel {

/// Is LibTorch's exchange by Gloo, whose threads hold the tensors of an exchange for a moment after
/// its result is there. What is measured in this moment would be wrong by their bytes.
class GlooBackend final : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;

  /// Waits, but not longer than `most`, until no thread holds an exchange whose result is there.
  void settle(std::chrono::milliseconds most);

 private:
  [[nodiscard]] bool is_settled();
};

/// Connects this rank with the others by the interface that GLOO_SOCKET_IFNAME names, by the
/// loopback where all ranks are on this machine, else by the interface of the host's name.
/// `timeout`: for a rank that takes part in an exchange late. Throws LibTorch's and Gloo's errors.
c10::intrusive_ptr<GlooBackend> connect_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                             const World& world, std::chrono::milliseconds timeout);

}  // namespace tare::parallel
