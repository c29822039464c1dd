// The workspaces that cuDNN takes for convolutions, attention and recurrent layers, which only a
// card knows: each of them in a trace is done once on a card of this machine. Internal.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <optional>

#include "tare/trace/convolution_profile.h"
#include "tare/trace/recurrent_call.h"

namespace tare::plan {

/// Names the card on which traces of this process may measure, until the end of the scope; unset:
/// none. What a measurement has left in the allocator's cache is given back at the end.
class MeasuredCard {
 public:
  explicit MeasuredCard(std::optional<c10::Device> card);
  ~MeasuredCard();
  MeasuredCard(const MeasuredCard&) = delete;
  MeasuredCard& operator=(const MeasuredCard&) = delete;

 private:
  std::optional<c10::Device> before_;
};

/// Names the mark of a convolution in a trace of a card whose workspace is not known.
inline constexpr const char* kUnknownWorkspace = "unknown workspace of cuDNN";
/// Names the mark of a convolution in a trace of a card that one of LibTorch's own kernels
/// computes.
inline constexpr const char* kOwnConvolution = "convolution without cuDNN";

/// Holds the bytes of cuDNN's workspace for a call, whose operands have no gaps, while the result
/// lives; of a backward with one gradient. They are looked up in the measurements by the name of
/// the card, or measured on it, which waits for the device. Without a card, without free memory for
/// the operands, or where cuDNN tries its algorithms out (cudnn_benchmark) or does not compute the
/// call, as bfloat16 on cards before Ampere, it holds nothing and marks the trace.
[[nodiscard]] c10::DataPtr hold_workspace(const Convolution& call);

/// Names the mark of cuDNN's attention in a trace of a card where its workspace is not known.
inline constexpr const char* kUnknownAttention = "unknown workspace of cuDNN's attention";

/// Describes a call of cuDNN's attention.
struct CardAttention {
  Layout query{}, key{}, value{};
  Layout mask{};  ///< undefined: none
  Layout grad{};  ///< undefined: forward
  bool with_sums = false, causal = false;
  double dropout = 0;

  [[nodiscard]] bool backward() const { return !grad.sizes.empty(); }
};

/// Holds the workspace of a call of attention while the result lives, as it does for a convolution;
/// where it is not known, `at_least` bytes. What a measurement draws of the card's random numbers
/// is put back.
[[nodiscard]] c10::DataPtr hold_workspace(const CardAttention& call, int64_t at_least);

/// Names the mark of cuDNN's recurrent layers in a trace of a card where it is not known what they
/// take beside their operands and results.
inline constexpr const char* kUnknownRecurrent = "unknown memory of cuDNN's recurrent layers";

/// Names that memory among what a plan for a card does not contain.
inline constexpr const char* kRecurrentMemory =
    "the workspaces and the reserve of cuDNN's recurrent layers";

/// Holds the bytes that a card takes for recurrent layers.
struct RecurrentMemory {
  int64_t weights = 0;        ///< the block of all weights
  int64_t reserve = 0;        ///< what a training forward keeps for its backward
  int64_t forward = 0;        ///< the workspace of the forward
  int64_t backward = 0;       ///< the workspace of each part of the backward
  int64_t dropout_state = 0;  ///< the generator of dropout between the layers
};

/// Returns the memory of a call of recurrent layers, which is looked up or measured as that of a
/// convolution; of one without steps, that of its weights alone. Unset: it is not known.
[[nodiscard]] std::optional<RecurrentMemory> recurrent_memory(const CardRecurrent& call);

}  // namespace tare::plan
