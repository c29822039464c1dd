// The first line of main: devices, threads, allocator.
#pragma once

#include <string>

namespace tare {

enum class CudaMode {
  automatic,  ///< load the CUDA room where a driver is; a room that cannot be loaded is a warning
  on,         ///< the same, but no driver, no room or no device is a DeviceError
  off         ///< host only, also where there is a GPU
};

struct InitOptions {
  int threads = 0;  ///< for one operator on the host; 0: OMP_NUM_THREADS, else the smaller of
                    ///< affinity and cgroup quota
  CudaMode cuda = CudaMode::automatic;
};

/// Makes the process ready: host allocator, CUDA room (libtare_cuda.so beside the program or in
/// ../lib, loaded only where libcuda.so.1 is), threads, malloc thresholds. Call it first in main:
/// LibTorch settles once whether there is CUDA, at the first seed, backward, convolution or
/// question for it, and silently stays without for the life of the process. Throws StateError when
/// such a call, or a tensor, came before; ConfigError for negative threads; DeviceError as
/// CudaMode::on says. A second call does nothing, whatever its options. Not thread-safe.
void init(const InitOptions& options = {});

/// Whether init() has been done.
[[nodiscard]] bool initialized();

/// For the main() of a program, before init(): keeps LibTorch's OpenMP threads from spinning while
/// they wait, which on a busy machine makes a run many times slower. The run time reads its setting
/// before main, so where the user set neither GOMP_SPINCOUNT nor OMP_WAIT_POLICY this sets the
/// first and executes the program anew, once. `argv` is main's. Returns if there is nothing to do
/// or the program cannot be executed anew.
void bound_spinning(char** argv);

}  // namespace tare
