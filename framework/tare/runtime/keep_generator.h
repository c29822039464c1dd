// Leaves a random generator as it is. Internal.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <mutex>

namespace tare::runtime {

/// Puts LibTorch's default generator of a device back at the end of the scope, so that what is
/// drawn inside it changes no random number after it. Another thread may draw meanwhile; what it
/// draws is then drawn again.
class KeepGenerator {
 public:
  explicit KeepGenerator(c10::Device device)
      : generator_(at::globalContext().defaultGenerator(device)) {
    const std::lock_guard lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  ~KeepGenerator() {
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(state_);
  }
  KeepGenerator(const KeepGenerator&) = delete;
  KeepGenerator& operator=(const KeepGenerator&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace tare::runtime
