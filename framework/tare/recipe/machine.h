// Where a run was made, for its report. Internal.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace tare {

struct Machine {
  std::string tare{};       ///< version, and the commit that it was built from, where known
  std::string libtorch{};   ///< version
  std::string processor{};  ///< model name
  int64_t threads = 0;      ///< of an operator
  int64_t memory_bytes = 0;
  std::string device{};  ///< name of the run's device: the processor's, or that of the GPU
};

[[nodiscard]] Machine this_machine(c10::Device device);

}  // namespace tare
