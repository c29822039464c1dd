// FlopCount: the floating-point operations that forward and backward need, counted by operator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tare/callback/flops.h"

namespace tare {

/// Counts the operations of matrix products, convolutions, attention and recurrent layers, from
/// begin() on while it lives: those of operators that the calling thread calls and those of its
/// backward passes, which run on threads of LibTorch's for a card. A product and a sum are two
/// operations. Sums of biases, activations, norms, losses and the optimizer's step do not count,
/// and neither does what a backward computes a second time: a block that recomputes, and the scores
/// of fused attention. Attention counts whole rows of scores, also with a causal mask.
///
/// The formulas follow torch.utils.flop_counter of PyTorch (its documentation: "FlopCounterMode"),
/// except that it counts the scores of fused attention again, takes the weight gradient of a
/// grouped convolution for that of one group, and knows no recurrent layers.
///
/// An operator costs about a microsecond more meanwhile; its operands stay alive no longer.
class FlopCount {
 public:
  /// Begins to count; null while another object of the process counts.
  [[nodiscard]] static std::unique_ptr<FlopCount> begin();
  /// Ends counting, on the thread that began it.
  ~FlopCount();
  FlopCount(const FlopCount&) = delete;
  FlopCount& operator=(const FlopCount&) = delete;

  /// Returns what was counted; unset after an operator has failed, as work may be done again then.
  [[nodiscard]] std::optional<Flops> flops() const;

 private:
  struct Counts;
  explicit FlopCount(std::unique_ptr<Counts> counts);

  std::unique_ptr<Counts> counts_;
  uint64_t handle_;
};

}  // namespace tare
