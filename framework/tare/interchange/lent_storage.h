// Gives the tensors of a model other memory for a while. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "tare/model/model.h"

namespace tare::interchange {

/// Puts tensors onto another device until the end of the scope, by every handle to them. Their own
/// memory stays as it is meanwhile, and they have it back at the end. Not thread-safe.
class LentStorage {
 public:
  LentStorage() = default;
  ~LentStorage();
  LentStorage(const LentStorage&) = delete;
  LentStorage& operator=(const LentStorage&) = delete;

  /// Leaves the tensors without values, on the meta device.
  void take_values(const std::vector<NamedTensor>& tensors);
  /// Gives the tensors a copy of their memory on the host; those that lie there stay as they are.
  /// Tensors that share memory share the copy. Waits for the device. Throws OutOfMemory.
  void copy_to_host(const std::vector<NamedTensor>& tensors);

 private:
  struct Own {
    at::Tensor tensor;  // of the model
    c10::Storage storage;
    c10::Device device;
  };
  void give(const at::Tensor& tensor, c10::Storage storage, c10::Device device);
  std::vector<Own> own_;
};

}  // namespace tare::interchange
