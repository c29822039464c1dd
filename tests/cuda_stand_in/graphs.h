// The graphs of the stand-in: what a stream is given while it is captured is not done but kept, and
// is done when the graph is launched. As on a card, a call that waits ends the capture.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

namespace stand_in {

/// Returns the number of the capture that the stream is in; 0: it is in none.
[[nodiscard]] uint64_t capture_of(cudaStream_t stream);
/// Keeps the work where the stream is captured; else returns false.
bool keep(cudaStream_t stream, const std::function<cudaError_t()>& work);
/// Whether the stream, or any where it is null, is captured, which is then invalid: the caller is
/// about to wait.
[[nodiscard]] bool breaks_capture(cudaStream_t stream = nullptr);

}  // namespace stand_in
