// malloc and its kin with the same cost at every call, for programs whose instructions are counted:
// the C library's own takes other paths after another history. Blocks of a power of two from lists
// by size, never given back to the system. Thread-safe.
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace {

constexpr size_t kClasses = 48;  // blocks of 2^0 to 2^47 bytes
constexpr size_t kChunk = size_t{64} << 20;
constexpr size_t kHeader = 64;  // in front of the data, which is aligned to as much

struct Block {
  size_t size_class;
  Block* next;
};
static_assert(sizeof(Block) <= kHeader / 2);

constinit Block* free_blocks[kClasses] = {};
constinit std::byte* chunk = nullptr;
constinit size_t chunk_left = 0;
constinit std::atomic_flag busy = ATOMIC_FLAG_INIT;

struct Lock {
  Lock() {
    while (busy.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Lock() { busy.clear(std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

std::byte* from_system(size_t size) {
  if (size > chunk_left) {
    chunk_left = size > kChunk ? size : kChunk;
    void* const mapped =
        ::mmap(nullptr, chunk_left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      chunk_left = 0;
      return nullptr;
    }
    chunk = static_cast<std::byte*>(mapped);
  }
  chunk_left -= size;
  return std::exchange(chunk, chunk + size);
}

// Behind the block's own start, or, where more alignment was asked for, right in front of the data.
Block*& start_of(void* data) {
  return *reinterpret_cast<Block**>(static_cast<std::byte*>(data) - kHeader / 2);
}

size_t capacity_of(void* data) {
  Block* const block = start_of(data);
  const auto used = static_cast<std::byte*>(data) - reinterpret_cast<std::byte*>(block);
  return (size_t{1} << block->size_class) - static_cast<size_t>(used);
}

Block* take(size_t size_class) {
  const Lock lock;
  if (Block* const block = free_blocks[size_class]) {
    free_blocks[size_class] = block->next;
    return block;
  }
  auto* const block = reinterpret_cast<Block*>(from_system(size_t{1} << size_class));
  if (block != nullptr) block->size_class = size_class;
  return block;
}

void* allocate(size_t size, size_t alignment) {
  const size_t extra = alignment > kHeader ? alignment : 0;
  const auto size_class = static_cast<size_t>(std::bit_width(size + extra + kHeader - 1));
  Block* const block = size < (size_t{1} << (kClasses - 2)) ? take(size_class) : nullptr;
  if (block == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  auto address = reinterpret_cast<uintptr_t>(block) + kHeader;
  if (extra != 0) address = (address + alignment - 1) & ~(alignment - 1);
  void* const data = reinterpret_cast<void*>(address);
  start_of(data) = block;
  return data;
}

}  // namespace

extern "C" {

void* malloc(size_t size) { return allocate(size, 0); }

void free(void* data) {
  if (data == nullptr) return;
  Block* const block = start_of(data);
  const Lock lock;
  block->next = free_blocks[block->size_class];
  free_blocks[block->size_class] = block;
}

void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void* const data = malloc(bytes);
  return data == nullptr ? nullptr : std::memset(data, 0, bytes);
}

void* realloc(void* data, size_t size) {
  if (data == nullptr) return malloc(size);
  const size_t capacity = capacity_of(data);
  if (size <= capacity) return data;
  void* const larger = malloc(size);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, data, capacity);
  free(data);
  return larger;
}

void* memalign(size_t alignment, size_t size) { return allocate(size, alignment); }
void* aligned_alloc(size_t alignment, size_t size) { return allocate(size, alignment); }
int posix_memalign(void** data, size_t alignment, size_t size) {
  *data = allocate(size, alignment);
  return *data == nullptr ? ENOMEM : 0;
}
size_t malloc_usable_size(void* data) { return data == nullptr ? 0 : capacity_of(data); }
}
