// Allocates, copies and fills memory of the stand-in's cards.
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "cards.h"
#include "exported.h"

namespace stand_in {
namespace {

std::mutex mutex;
std::map<uintptr_t, Block> blocks;  // by address
std::atomic<size_t> allocations{0}, refused{setting("STAND_IN_REFUSE", 0)};
std::atomic<bool> refuses_on{false};  // also what comes behind

/// The block that holds all of [address, address + bytes). The lock must be held.
const Block* find(const void* address, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto found = blocks.upper_bound(at);
  if (found == blocks.begin()) return nullptr;
  --found;
  const uintptr_t end = found->first + found->second.bytes;
  return at < end && bytes <= end - at ? &found->second : nullptr;
}

/// The lowest free addresses for so many bytes; 0: there are none. The lock must be held.
uintptr_t hole(size_t bytes) {
  // Set: no address comes again, so that a later block is never before an earlier one.
  static const bool rises = setting("STAND_IN_RISING_ADDRESSES", 0) != 0;
  static const size_t space = size_t{1} << (rises ? 46 : 40);
  static const auto begin = reinterpret_cast<uintptr_t>(
      mmap(nullptr, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  static uintptr_t highest = round_up(begin);
  if (rises) {
    const uintptr_t free = highest;
    highest = round_up(free + bytes);
    return highest <= begin + space ? free : 0;
  }
  uintptr_t at = round_up(begin);
  for (auto block = blocks.lower_bound(at); block != blocks.end() && block->first < begin + space;
       ++block) {
    if (block->first - at >= bytes) break;
    at = round_up(block->first + block->second.bytes);
  }
  return at + bytes <= begin + space ? at : 0;
}

/// Whether `bytes` at `memory` do not run over the end of a block that is known here.
bool in_bounds(const void* memory, size_t bytes) {
  const std::lock_guard lock(mutex);
  return !find(memory, 1) || find(memory, bytes);
}

bool is_refused() {
  const size_t number = ++allocations;
  return refused != 0 && (number == refused || (refuses_on && number > refused));
}

}  // namespace

int& current_device() {
  thread_local int device = 0;
  return device;
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

cudaError_t fail(cudaError_t error) { return last_error() = error; }

bool is_forked() {
  static const pid_t first = getpid();
  return getpid() != first;
}

bool is_lost() { return is_lost(current_device()); }

cudaError_t with_context() {
  if (is_forked()) return fail(cudaErrorInitializationError);
  if (is_lost()) return fail(cudaErrorLaunchFailure);
  return make_context(current_device()) ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}

cudaError_t allocate(void** result, size_t bytes, Kind kind) {
  *result = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = with_context()) return error;
  const bool on_card = kind == Kind::device;
  const size_t counted = on_card ? round_up(bytes) : 0;
  if (on_card && is_refused()) return fail(cudaErrorMemoryAllocation);
  if (!take(current_device(), counted)) return fail(cudaErrorMemoryAllocation);
  const std::lock_guard lock(mutex);
  const uintptr_t address = hole(round_up(bytes));
  if (address == 0 || !open_pages(address, bytes)) {
    give(current_device(), counted);
    return fail(cudaErrorMemoryAllocation);
  }
  blocks[address] = {bytes, counted, kind, current_device()};
  *result = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t release(void* memory, Kind kind) {
  if (!memory) return cudaSuccess;
  const std::lock_guard lock(mutex);
  const auto found = blocks.find(reinterpret_cast<uintptr_t>(memory));
  if (found == blocks.end() || found->second.kind != kind) return fail(cudaErrorInvalidValue);
  give(found->second.device, found->second.counted);
  if (kind != Kind::registered) close_pages(found->first, found->second.bytes);
  blocks.erase(found);
  return cudaSuccess;
}

cudaError_t pin(void* memory, size_t bytes) {
  const std::lock_guard lock(mutex);
  blocks[reinterpret_cast<uintptr_t>(memory)] = {bytes, 0, Kind::registered, current_device()};
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, size_t bytes) {
  if (is_lost()) return fail(cudaErrorLaunchFailure);
  if (bytes == 0) return cudaSuccess;
  if (!in_bounds(to, bytes) || !in_bounds(from, bytes)) return fail(cudaErrorInvalidValue);
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t fill(void* memory, int value, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  if (is_lost()) return fail(cudaErrorLaunchFailure);
  if (!in_bounds(memory, bytes)) return fail(cudaErrorInvalidValue);
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (begin + kPage - 1) & ~(kPage - 1), end = (begin + bytes) & ~(kPage - 1);
  if (value != 0 || first >= end ||
      madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED) != 0) {
    std::memset(memory, value, bytes);
    return cudaSuccess;
  }
  std::memset(memory, 0, first - begin);
  std::memset(reinterpret_cast<void*>(end), 0, begin + bytes - end);
  return cudaSuccess;
}

const Block* block_at(const void* address) {
  const std::lock_guard lock(mutex);
  return find(address, 1);
}

uintptr_t reserve(size_t bytes, int device) {
  const std::lock_guard lock(mutex);
  const uintptr_t address = hole(bytes);
  if (address != 0) blocks[address] = {bytes, 0, Kind::device, device};
  return address;
}

void give_back(uintptr_t address) {
  const std::lock_guard lock(mutex);
  blocks.erase(address);
}

bool open_pages(uintptr_t address, size_t bytes) {
  return mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) == 0;
}

void close_pages(uintptr_t address, size_t bytes) {
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

}  // namespace stand_in

// ---- for tests in this process

/// Refuses the k-th allocation of device memory from now on, once; 0: none.
EXPORTED void stand_in_refuse(size_t k) {
  using namespace stand_in;
  refuses_on = false;
  refused = k == 0 ? 0 : allocations + k;
}
/// Refuses the k-th allocation of device memory from now on and all that follow, until
/// stand_in_refuse(0).
EXPORTED void stand_in_refuse_from(size_t k) {
  stand_in_refuse(k);
  stand_in::refuses_on = true;
}
/// The card is lost with the k-th kernel that is launched on it from now on.
EXPORTED void stand_in_lose(int device, size_t k) { stand_in::lose(device, k); }
