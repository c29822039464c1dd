// The memory of the stand-in's cards: blocks at low addresses of one range, backed by the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace stand_in {

/// Distinguishes a card's memory from the host's memory that is pinned or registered.
enum class Kind { device, pinned, registered };

/// A block that was allocated.
struct Block {
  size_t bytes = 0;
  size_t counted = 0;  // of the card's memory
  Kind kind = Kind::device;
  int device = 0;
};

/// The card that the calling thread has chosen.
int& current_device();
/// Remembers the error for cudaGetLastError() and returns it.
cudaError_t fail(cudaError_t error);
/// The error that cudaGetLastError() would return.
cudaError_t& last_error();
/// Whether this process was forked after the first call: it has no CUDA, as with the driver.
[[nodiscard]] bool is_forked();
/// Whether the current card has been lost; every call fails from then on.
[[nodiscard]] bool is_lost();
/// Makes the context on the current card, or says why there is none.
[[nodiscard]] cudaError_t with_context();

/// Allocates at the lowest free address, as cards do: LibTorch's allocator prefers low ones.
cudaError_t allocate(void** result, size_t bytes, Kind kind);
/// Frees what allocate() gave; its pages fault from then on.
cudaError_t release(void* memory, Kind kind);
/// Notes memory of the host that the program pins.
cudaError_t pin(void* memory, size_t bytes);
/// Copies at once. Fails for a range that runs over the end of a block.
cudaError_t copy(void* to, const void* from, size_t bytes);
/// Fills at once. Whole pages of zeros take no memory of the host.
cudaError_t fill(void* memory, int value, size_t bytes);
/// The block that holds the address; null: none does.
[[nodiscard]] const Block* block_at(const void* address);

/// Reserves addresses without memory, for expandable segments; 0: there are none left.
[[nodiscard]] uintptr_t reserve(size_t bytes, int device);
/// Gives reserved addresses back.
void give_back(uintptr_t address);
/// Opens or closes pages of a reserved range.
[[nodiscard]] bool open_pages(uintptr_t address, size_t bytes);
void close_pages(uintptr_t address, size_t bytes);

}  // namespace stand_in
