// Saved tensors that wait for their backward in the host's memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace tare::memory {

/// Copies, while in scope, everything that the thread's forwards save for a backward to the host's
/// memory, pinned for a GPU; finish() frees the device's. The backward gets it back, bit for bit:
/// the whole scope at the first tensor that it asks for, and at the same time, if memory allows,
/// the scope before, so that the copies run beside the computation. On a GPU they have a stream of
/// their own, and nothing waits for it but the device.
///
///     Offload offload(x.device(), layer->parameters());
///     auto y = layer->forward(x);
///     offload.finish();
///
/// Left where they are: the storages of `kept`, storages below 64 KiB or of other devices, and
/// tensors that are less than an eighth of their storage. A storage that several saved tensors
/// share, of this scope or the one before, moves once, as a whole. One that somebody else still
/// holds when it is asked for is not copied back; its memory was never free. On the CPU the copies
/// are ordinary memory, which saves nothing; the meta device has none.
///
/// A tensor that came back stays until its graph is freed: with retain_graph, and after a backward
/// that ends before the scope it has fetched ahead. Scopes of a thread are one chain, whatever
/// graphs they are of. Pinned memory is not in the host's budget; LibTorch rounds it up to powers
/// of two and keeps it for the next step.
///
/// A tensor that is changed in place inside the scope after it was saved makes the backward throw
/// StateError, as LibTorch does; after finish() a change does no harm. Scopes may nest: the
/// innermost one takes. A forward is on one stream; a graph is walked by one thread at a time.
/// (Rhu et al. 2016, "vDNN", with PyTorch's save_on_cpu hooks.)
class Offload {
 public:
  /// Moves what is saved, except `kept`: weights and buffers, which stay for the next step. Throws
  /// what SavedTensors::install() throws.
  Offload(c10::Device device, const std::vector<at::Tensor>& kept);
  /// Ends the scope. Without finish() what was saved stays on the device, with a copy on the host.
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  /// Ends the forward: what it saved leaves the device; what is saved in the rest of the scope
  /// stays. To be called once.
  void finish();

 private:
  class Maker;
  std::unique_ptr<Maker> maker_;
};

}  // namespace tare::memory
