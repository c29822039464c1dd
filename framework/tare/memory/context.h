// Says what a process takes on a GPU beside its tensors, and keeps what has been measured.
#pragma once

#include <cstdint>
#include <string>

namespace tare::memory {

/// Estimates what a process holds on a card beside its tensors, where nothing has been measured:
/// the context, and the kernels of LibTorch, cuBLAS and cuDNN. In no allocator's figures.
inline constexpr int64_t kContextBytes = int64_t{600} << 20;

/// Returns the most bytes that note_context() was given for cards of this name ("NVIDIA H200") in
/// this version of LibTorch, by any process; kContextBytes for a card without any.
[[nodiscard]] int64_t context_bytes(const std::string& card);

/// Keeps what a process holds on a card beside its tensors, in plan/contexts.tsv of
/// io::cache_home(), if it is more than what is kept. Where the file cannot be written a message at
/// debug level follows; of two processes that write at once one may be lost until it measures
/// again.
void note_context(const std::string& card, int64_t bytes);

}  // namespace tare::memory
