// The cross-entropy of many logits, of some samples at a time. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace tare {

/// Counts the bytes of logits from which on their cross-entropy is computed in parts.
inline constexpr int64_t kChunkedFrom = int64_t{32} << 20;

/// Returns the cross-entropy of logits [n, classes, ...] and labels int64 [n, ...], where
/// `ignored` does not count, with the reduction of at::Reduction. Unset: the logits have fewer
/// bytes than kChunkedFrom, are not of float32, or lie in memory neither as they are indexed nor
/// with the classes innermost, so LibTorch's operator is as good.
///
/// LibTorch holds the log-probabilities of all samples from the forward to the backward, and their
/// gradient in the backward. Here both exist for a 16th of the samples at a time, because the
/// backward computes log-probabilities anew. The operators on each part are LibTorch's: for logits
/// that lie as they are indexed loss and gradient have the bits of at::cross_entropy_loss(), and
/// for others they differ by rounding. A backward of the backward takes LibTorch's way. Does not
/// wait for the device.
[[nodiscard]] std::optional<at::Tensor> chunked_cross_entropy(const at::Tensor& logits,
                                                              const at::Tensor& labels,
                                                              int64_t ignored, int64_t reduction);

}  // namespace tare
