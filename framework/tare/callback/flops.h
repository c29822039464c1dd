// Flops: numbers of floating-point operations, by type.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace tare {

/// Holds numbers of floating-point operations by the type in which a device computes them.
struct Flops {
  int64_t fp32 = 0;    ///< in float32
  int64_t tf32 = 0;    ///< of float32 on a card, with KernelOptions::tf32
  int64_t fp16 = 0;    ///< in float16
  int64_t bf16 = 0;    ///< in bfloat16
  int64_t others = 0;  ///< in any other type

  /// Returns the number of all.
  [[nodiscard]] int64_t total() const { return fp32 + tf32 + fp16 + bf16 + others; }
  /// Adds those of another count, type by type.
  Flops& operator+=(const Flops& more) {
    for (const auto type : {&Flops::fp32, &Flops::tf32, &Flops::fp16, &Flops::bf16, &Flops::others})
      this->*type += more.*type;
    return *this;
  }
  bool operator==(const Flops&) const = default;
};

}  // namespace tare
