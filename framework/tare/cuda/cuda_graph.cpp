// Records and replays CUDA graphs, in a memory pool of their own.
#include "tare/cuda/cuda_graph.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/version.h>

#include <exception>
#include <optional>
#include <vector>

namespace tare::cuda {
namespace {

/// Returns the stream on which the graphs of a card are recorded, always the same one, so that
/// cuBLAS has one workspace for all of them.
c10::cuda::CUDAStream recording_stream(c10::DeviceIndex index) {
  static std::vector<std::optional<c10::cuda::CUDAStream>> streams(
      static_cast<size_t>(c10::cuda::device_count()));
  auto& stream = streams.at(static_cast<size_t>(index));
  if (!stream) stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index);
  return *stream;
}

class CudaGraph final : public memory::DeviceGraph {
 public:
  CudaGraph(c10::DeviceIndex index, const CudaGraph* other)
      : index_(index), pool_(other ? other->pool_ : at::cuda::graph_pool_handle()) {}

  ~CudaGraph() override {
    try {
      const c10::cuda::CUDAGuard device(index_);
      c10::cuda::device_synchronize();
    } catch (const c10::Error&) {  // the card is lost, and says so at its next call
    }
  }

  void record(const std::function<void()>& work) override {
    const c10::cuda::CUDAGuard device(index_);
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    const c10::cuda::CUDAStreamGuard stream(recording_stream(index_));
    // Other threads, such as those of a loader, go on to use the card meanwhile.
    graph_.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    try {
      graph_.capture_end();
    } catch (...) {
      abandon();
      if (!error) throw;
    }
    if (error) {
      graph_.reset();
      std::rethrow_exception(error);
    }
  }

  void replay() override { graph_.replay(); }

 private:
  /// LibTorch 2.11 leaves the allocator in the pool where a capture cannot be ended.
  void abandon() {
    static_cast<void>(cudaGetLastError());
    try {
      graph_.reset();
    } catch (const c10::Error&) {
      static_cast<void>(cudaGetLastError());
    }
    if constexpr (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 15) {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(index_, pool_);
      c10::cuda::CUDACachingAllocator::releasePool(index_, pool_);
    }
  }

  c10::DeviceIndex index_;
  at::cuda::MempoolId_t pool_;
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<memory::DeviceGraph> make_cuda_graph(c10::DeviceIndex index,
                                                     const memory::DeviceGraph* other) {
  return std::make_unique<CudaGraph>(index, static_cast<const CudaGraph*>(other));
}

}  // namespace tare::cuda
