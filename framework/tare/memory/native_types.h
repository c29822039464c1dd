// Which 16-bit types this processor computes in, and what the others cost.
#pragma once

#include <c10/core/ScalarType.h>

namespace tare::memory {

/// Whether this processor multiplies matrices of `type` by instructions of its own: float32 and
/// float64 everywhere, bfloat16 with AVX512_BF16 or AMX, float16 with AVX512_FP16 or AMX. A type
/// without instructions is converted to float32 element by element, which costs more than it saves.
/// So is one whose instructions the environment variable ONEDNN_MAX_CPU_ISA forbids to oneDNN.
[[nodiscard]] bool processor_computes(c10::ScalarType type);

/// Returns how many times longer a product of two matrices of 256 x 256 takes in `type` than in
/// float32 on this processor. Compares the fastest of three each, once per process, in some
/// milliseconds. It keeps no tensor memory; a library may take some meanwhile. Thread-safe.
[[nodiscard]] double product_time_ratio(c10::ScalarType type);

}  // namespace tare::memory
