// Opens the CUDA plug-in: adds a backend for each card that LibTorch has kernels for.
#include "tare/runtime/plugin.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "tare/base/immortal.h"
#include "tare/cuda/cuda_backend.h"
#include "tare/cuda/kernel_images.h"
#ifdef TARE_HAS_NCCL
#include "tare/cuda/nccl_collectives.h"
#endif
#include "tare/cuda/nvml.h"
#include "tare/cuda/nvtx.h"

namespace {

using tare::cuda::Capability;
using tare::cuda::KernelImages;

/// Whether a card can be used; else notes why not. Makes no context.
bool is_usable(c10::DeviceIndex index, const KernelImages& kernels,
               tare::runtime::HostServices& services) {
  cudaDeviceProp card{};
  if (cudaGetDeviceProperties(&card, index) != cudaSuccess) return true;  // its use says why
  const Capability capability{card.major, card.minor};
  if (kernels.run_on(capability)) return true;
  services.note_absent({c10::kCUDA, index},
                       std::string("'") + card.name + "' has compute capability " +
                           capability.str() + ", and this LibTorch has kernels for " +
                           kernels.str() +
                           "; take another card, or a LibTorch that was built for "
                           "this one");
  return false;
}

void note_lost_cards(tare::runtime::HostServices& services) {
  const std::vector<size_t> lost = tare::cuda::NvmlDevice::lost_cards();
  if (lost.empty()) return;
  std::vector<std::string> others;
  for (const auto& device : tare::cuda::NvmlDevice::all()) others.push_back(device.uuid());
  services.note_lost_cards(lost, others);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int tare_open_plugin(
    int version, tare::runtime::HostServices& services) {
  using tare::cuda::Shared;
  if (version != tare::runtime::kPluginVersion) return tare::runtime::kPluginVersion;
  note_lost_cards(services);
  if (c10::cuda::device_count() == 0) return tare::runtime::kPluginVersion;
  // Never deleted: the allocator keeps a callback into it until the process ends.
  static tare::Immortal<Shared> shared(services);
  const auto kernels = KernelImages::parse(at::detail::getCUDAHooks().showConfig());
  for (c10::DeviceIndex i = 0; i < c10::cuda::device_count(); ++i)
    if (is_usable(i, kernels, services))
      services.add_backend(tare::cuda::make_cuda_backend(i, *shared));
#ifdef TARE_HAS_NCCL
  services.add_collectives(tare::cuda::make_nccl_collectives());
#endif
  tare::cuda::mark_phases(services);
  return tare::runtime::kPluginVersion;
}
