// The differences between the versions of LibTorch, from 2.11 to 2.15. Internal.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceType.h>
#include <c10/util/env.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>
#include <torch/version.h>

#include <cstddef>
#include <memory>
#include <utility>

#if TORCH_VERSION_MINOR >= 15
namespace at::cuda {
TORCH_CUDA_CPP_API bool isCUDABlasWorkspaceCachingEnabled();
}
#endif

namespace tare::libtorch {

/// Returns a weak pointer to a node of autograd, which a std::shared_ptr holds up to LibTorch 2.12
/// and a c10::intrusive_ptr from 2.13 on.
template <class T>
std::weak_ptr<T> weak(const std::shared_ptr<T>& node) {
  return node;
}
template <class T>
c10::weak_intrusive_ptr<T> weak(const c10::intrusive_ptr<T>& node) {
  return c10::weak_intrusive_ptr<T>(node);
}
/// Points to a node without owning it; expired() once its graph is gone.
using WeakNode = decltype(weak(std::declval<const at::Tensor&>().grad_fn()));

/// Returns the block of an entry in LibTorch's lists of workspaces, which has the block's size
/// beside it in later versions.
inline const void* block_of(const at::DataPtr& memory) { return memory.get(); }
inline const void* block_of(const std::pair<at::DataPtr, size_t>& memory) {
  return memory.first.get();
}

/// Names the device whose state of autocast holds for meta tensors in a plan: LibTorch has none for
/// them. No build of LibTorch for the processors and cards that Tare knows has this device.
inline constexpr c10::DeviceType kMetaAutocast = c10::DeviceType::IPU;

/// Whether one_hot() finds the smallest and the greatest class at once.
inline constexpr bool kOneHotFindsBoth = TORCH_VERSION_MINOR >= 15;

/// Whether cuBLAS and cublasLt keep a workspace for each thread from the first product on. From
/// 2.15 on each product takes one and gives it back, unless TORCH_CUBLAS_WORKSPACE_CACHE is 1.
inline constexpr bool kKeepsWorkspaces = TORCH_VERSION_MINOR < 15;
/// Whether cublasLt, where it keeps a workspace of its own, takes that of cuBLAS too.
inline constexpr bool kCublasLtTakesBoth = TORCH_VERSION_MINOR < 15;
/// Whether the libraries keep their workspaces in this process. A program that calls it links
/// LibTorch's CUDA library.
inline bool keeps_workspaces() {
#if TORCH_VERSION_MINOR >= 15
  return at::cuda::isCUDABlasWorkspaceCachingEnabled();
#else
  return true;
#endif
}

/// Whether cublasLt works in the workspace that cuBLAS keeps. From 2.15 on it does unless
/// TORCH_CUBLASLT_UNIFIED_WORKSPACE is 0. A program that calls it links LibTorch's CUDA library.
inline bool shares_workspace() {
  const auto wanted = c10::utils::check_env("TORCH_CUBLASLT_UNIFIED_WORKSPACE");
  return TORCH_VERSION_MINOR >= 15 ? keeps_workspaces() && wanted != false : wanted == true;
}

/// Whether cuBLAS takes its larger workspace on Hopper alone, and not on later cards too.
inline constexpr bool kHopperAloneTakesMore = TORCH_VERSION_MINOR < 12;

/// Whether a card keeps the seed and the offset of its generator on the card in memory-efficient
/// attention without dropout.
inline constexpr bool kAttentionHasSeeds = TORCH_VERSION_MINOR >= 15;
/// Whether the graphs of a card share one seed and offset of its generator, which the first of them
/// takes before it records; else each that draws random numbers takes its own when it first does.
inline constexpr bool kGraphsShareSeeds = TORCH_VERSION_MINOR < 15;
/// Whether cuDNN's attention takes up to 256 features of a head on Hopper and on data-centre
/// Blackwell, but in training only some of those above 128; else on Hopper alone, and in training
/// all of them.
inline constexpr bool kCudnnTakesLargeHeads = TORCH_VERSION_MINOR >= 15;
/// Whether cuDNN's attention takes a probability of dropout only if it is a multiple of 1/16.
inline constexpr bool kCudnnDropsInSixteenths = TORCH_VERSION_MINOR >= 15;
/// Whether flash attention adds up the gradient of the queries in several parts where its kernels
/// have to repeat their bits.
inline constexpr bool kFlashAddsUpInParts = TORCH_VERSION_MINOR < 15;
/// Whether a resize makes a tensor of one element on the way, where it fills what it takes.
inline constexpr bool kResizeTakesAnElement = TORCH_VERSION_MINOR < 15;
/// Whether a card sorts the indices of an embedding by the bits that they have, eight at a time,
/// and not by all 64.
inline constexpr bool kSortsByUsedBits = TORCH_VERSION_MINOR >= 15;
/// Whether a card makes the sorted indices unique in tiles of the sizes that CUB has in CUDA 13.2;
/// else of those in CUDA 13.0.
inline constexpr bool kUniqueInNewTiles = TORCH_VERSION_MINOR >= 15;
/// Whether a card lists the parts of each tensor in the norms of a list of tensors.
inline constexpr bool kListNormsHaveParts = TORCH_VERSION_MINOR >= 15;
/// Whether a card has a group norm for images whose channels lie innermost, and one for rows whose
/// gradient needs no sums over pixels.
inline constexpr bool kGroupNormHasTwoMoreKernels = TORCH_VERSION_MINOR >= 15;

}  // namespace tare::libtorch
