// tare::init(), the first line of main: allocator, devices, threads.
#pragma once

#include <string>

namespace tare {

/// Whether to load the CUDA backend, libtare_cuda.so beside the program or in ../lib.
enum class CudaMode {
  automatic,  ///< if there is a driver (libcuda.so.1); what cannot be loaded is not there, and
              ///< where a device is asked for, its absence is explained
  on,         ///< always; without a driver, backend or device init() throws DeviceError
  off         ///< never: host only, even on a machine with a GPU
};

/// Sets the number of threads and the use of CUDA for init().
struct InitOptions {
  /// Threads of one operator on the host, >= 0; 0: OMP_NUM_THREADS, else the smaller of CPU
  /// affinity and cgroup quota.
  int threads = 0;
  CudaMode cuda = CudaMode::automatic;  ///< whether the CUDA plug-in is loaded
};

/// Sets up the process: host allocator, CUDA backend, threads, malloc thresholds. Call it first in
/// main: LibTorch decides once whether there is CUDA, at the first seed, backward, convolution or
/// query, and without the backend loaded stays on the CPU for the life of the process. Throws
/// StateError if a tensor was created or LibTorch was asked for CUDA before; ConfigError for
/// negative threads; DeviceError as described at CudaMode::on. A second call does nothing, whatever
/// its options. Not thread-safe.
void init(const InitOptions& options = {});

/// Whether init() has returned.
[[nodiscard]] bool initialized();

}  // namespace tare
