// Which 16-bit types this processor computes in, and what the others cost.
#pragma once

#include <c10/core/ScalarType.h>

namespace tare::memory {

/// Whether this processor multiplies matrices of `type` by instructions of its own: float32 and
/// float64 everywhere, bfloat16 with AVX512_BF16 or AMX, float16 with AVX512_FP16 or AMX. A type
/// without instructions is converted to float32 element by element, which costs more than it saves.
[[nodiscard]] bool processor_computes(c10::ScalarType type);

/// How many times as long as in float32 a product of two matrices of 256 x 256 takes in `type` on
/// this processor: the fastest of three each, measured once per process in some milliseconds. It
/// keeps no tensor memory; a library may take some meanwhile. Thread-safe.
[[nodiscard]] double product_time_ratio(c10::ScalarType type);

}  // namespace tare::memory
