// Estimates the memory that a process takes on a GPU beside its tensors.
#pragma once

#include <cstdint>

namespace tare::memory {

/// Bytes that a process is taken to hold on a card beside its tensors: the context, and the kernels
/// of LibTorch, cuBLAS and cuDNN. In no allocator's figures; an estimate, which has not been
/// measured.
inline constexpr int64_t kContextBytes = int64_t{600} << 20;

}  // namespace tare::memory
