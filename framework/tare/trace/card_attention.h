// Attention as a card computes it. Internal.
#pragma once

#include <optional>

#include "tare/trace/attention_operands.h"
#include "tare/trace/dispatch.h"

namespace tare::plan {

/// Computes attention by the fused kernel that the card of the recording takes; unset: it takes
/// single products. Throws NotPlannable where it does so for a 16-bit type.
[[nodiscard]] std::optional<at::Tensor> card_attention(const at::Tensor& query,
                                                       const at::Tensor& key,
                                                       const at::Tensor& value, const Mask& mask,
                                                       double dropout, bool causal,
                                                       std::optional<double> scale, bool grouped);

/// Adds the fused kernels of a card.
void add_card_attention_kernels(Kernels& kernels);

}  // namespace tare::plan
