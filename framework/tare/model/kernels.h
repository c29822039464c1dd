// Which kernels operators take: LibTorch's switches, as options of a scope.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tare/config/field.h"

namespace tare {

/// Selects kernels of LibTorch; the defaults are LibTorch's.
struct KernelOptions {
  /// CUDA: float32 products with 10 bits of mantissa on tensor cores, several times as fast. Unset:
  /// convolutions do, matrix products do not.
  std::optional<bool> tf32{};
  bool cudnn =
      true;  ///< CUDA: convolutions and batch norms by cuDNN; false: slower, to find a fault
  /// CUDA: times cuDNN's algorithms at the first batch of each shape and takes the fastest, which
  /// may want more workspace and differ from run to run. For batches of one shape.
  bool cudnn_benchmark = false;
  /// Whether all kernels give the same bits each time; an operator without one throws. Slower, and
  /// new memory is filled. cuBLAS also wants CUBLAS_WORKSPACE_CONFIG=:4096:8 in the environment.
  bool deterministic = false;
  /// Weights of convolutions and batches of images lie channels innermost, which the convolutions
  /// of tensor cores and of 16-bit types on the host want; others may be slower.
  bool channels_last = false;
  /// Whether operators of the host have LibTorch's own kernels, and losses its operators, so that
  /// figures have the bits of a loop of LibTorch: no large matrices by oneDNN (tare/memory/
  /// host_products.h), no GELU of Tare (tare/memory/host_gelu.h), and no cross-entropy in parts.
  /// May be slower and need more memory.
  bool reference = false;

  bool operator==(const KernelOptions&) const = default;
};
void visit_fields(auto& visit, KernelOptions& o) {
  visit("tf32", o.tf32);
  visit("cudnn", o.cudnn);
  visit("cudnn_benchmark", o.cudnn_benchmark);
  visit("deterministic", o.deterministic);
  visit("channels_last", o.channels_last);
  visit("reference", o.reference);
}

/// Sets the switches of the process and restores what was set before. channels_last is no switch:
/// see Model::to_channels_last().
class KernelScope {
 public:
  /// Applies `options`.
  explicit KernelScope(const KernelOptions& options);
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  std::vector<std::function<void()>> undo_;  // only of switches that the options change
};

}  // namespace tare
