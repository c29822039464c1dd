// Opens the CUDA plug-in: adds a backend for each card.
#include "tare/runtime/plugin.h"

#include <c10/cuda/CUDAFunctions.h>

#include "tare/base/immortal.h"
#include "tare/cuda/cuda_backend.h"
#include "tare/cuda/nvtx.h"

extern "C" __attribute__((visibility("default"))) int tare_open_plugin(
    int version, tare::runtime::HostServices& services) {
  using tare::cuda::Shared;
  if (version != tare::runtime::kPluginVersion) return tare::runtime::kPluginVersion;
  // Never deleted: the allocator keeps a callback into it until the process ends.
  static tare::Immortal<Shared> shared(services);
  for (c10::DeviceIndex i = 0; i < c10::cuda::device_count(); ++i)
    services.add_backend(tare::cuda::make_cuda_backend(i, *shared));
  tare::cuda::mark_phases(services);
  return tare::runtime::kPluginVersion;
}
