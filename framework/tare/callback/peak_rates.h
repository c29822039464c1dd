// PeakRates: how many operations of matrix products a card can do by the second.
#pragma once

#include <optional>
#include <string>

#include "tare/callback/flops.h"

namespace tare {

/// Holds the rates of a device by the type of the operands, in 1e12 operations by the second, for
/// matrices without a structure of zeros and with sums in float32; 0: it does not compute in the
/// type, or the rate is not known.
struct PeakRates {
  double fp32 = 0;  ///< of float32
  double tf32 = 0;  ///< of float32 in TF32
  double fp16 = 0;  ///< of float16
  double bf16 = 0;  ///< of bfloat16

  /// Returns the seconds that the operations take at these rates; unset where one of them is not
  /// known. A card without TF32 computes its operations as float32.
  [[nodiscard]] std::optional<double> seconds(const Flops& flops) const;
};

/// Returns the rates of a card by the name that its driver gives it, such as "NVIDIA H100 PCIe";
/// unset for another card, for a part of one (MIG) and for a host. They are those of NVIDIA's data
/// sheets, and for GeForce of its papers on the architectures "GA102" and "Ada".
[[nodiscard]] std::optional<PeakRates> peak_rates(const std::string& card);

}  // namespace tare
