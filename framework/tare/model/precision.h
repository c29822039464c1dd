// Number formats of a model's computation: their names, and autocast as a scope.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

namespace tare {

/// Selects the types in which a model computes and keeps its parameters.
enum class Precision {
  fp32,
  bf16,       ///< weights float32; matrix products and convolutions in bfloat16, by autocast
  fp16,       ///< the same with float16, whose gradients need a scaler (optim/grad_scaler.h)
  bf16_true,  ///< weights, gradients and optimizer state bfloat16 but for batch norms
};

/// Returns fp32 | bf16 | fp16 | bf16-true, in the order of Precision.
[[nodiscard]] std::vector<std::string> precision_names();
/// Throws ConfigError, naming `where`, for another name.
[[nodiscard]] Precision parse_precision(const std::string& name, const std::string& where);

/// Returns the type that matrix products are computed in.
[[nodiscard]] c10::ScalarType product_type(Precision precision);

/// Returns one line for a precision that this processor has no instructions for
/// (memory/native_types.h), with the factor that it was measured to cost; empty where it has them.
[[nodiscard]] std::string slow_precision(Precision precision);
/// Logs that line as a warning, once per process and precision.
void warn_of_slow_precision(Precision precision);
/// Logs a warning, once per process and precision, that a card without instructions for bfloat16,
/// of a compute capability below 8.0, computes bf16 and bf16-true slowly. Does nothing for others.
/// `card`: its name for the reader.
void warn_of_bfloat16_on_card(Precision precision, const std::string& card);

/// Holds a thread's autocast: whether operators on a device type take inputs as `dtype` where that
/// is safe (matrix products and convolutions; sums and losses stay float32). A value.
struct AutocastState {
  c10::DeviceType device = c10::kCPU;      ///< whose operators it applies to
  bool enabled = false;                    ///< whether autocast is in force
  c10::ScalarType dtype = c10::kBFloat16;  ///< a 16-bit type
  bool cache = true;  ///< whether weights that were cast are kept until the outermost scope ends

  [[nodiscard]] static AutocastState of(c10::DeviceType device);  ///< this thread's
};

/// Returns what computing in that precision on a device sets; unset: nothing. Without the cache: a
/// forward seldom uses a weight twice, a cast one is freed as soon as nobody needs it, and the
/// order of allocations does not depend on addresses, so that a plan can probe it.
[[nodiscard]] std::optional<AutocastState> autocast_for(Precision precision,
                                                        c10::DeviceType device);

/// Sets autocast on this thread and restores what was set before; the end of the outermost scope
/// frees the weights that were cast. Backward passes need no scope: the backward of an operator
/// runs in the type of its forward. LibTorch has the functions, not the guard.
class AutocastScope {
 public:
  /// Sets autocast; unset: does nothing.
  explicit AutocastScope(const std::optional<AutocastState>& state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  std::optional<AutocastState> before_;
};

}  // namespace tare
