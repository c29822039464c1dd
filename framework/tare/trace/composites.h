// Composite operators that ask for the device, and so would not do in a plan what the host does.
// Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace torch {
class Library;
}

namespace tare::plan {

/// Names oneDNN's kind of recurrent layer, as LibTorch numbers it.
inline constexpr int64_t kLstm = 2;

/// Makes them take the path of the host in a MetaScope, or throw NotPlannable there where that is
/// not known by shapes. Outside of one they are LibTorch's own. Once, for the life of the process.
void register_composites();
/// Adds LSTM, GRU and RNN; defined in recurrent.cpp.
void add_recurrent_composites(torch::Library& library);

/// Returns the layout in which a group norm takes its input: on the host that of the input, and on
/// a card the standard one unless its LibTorch has a kernel for channels that lie innermost.
at::MemoryFormat group_norm_format(const at::Tensor& input);

/// Computes scaled_dot_product_attention as the host does or, in a recording for a card, CUDA.
at::Tensor planned_attention(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const std::optional<at::Tensor>& mask,
                             double dropout, bool causal, std::optional<double> scale,
                             bool grouped);

}  // namespace tare::plan
