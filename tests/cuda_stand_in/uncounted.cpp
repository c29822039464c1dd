// Serves host tensors from the C library or from the allocator that it is put over.
#include "uncounted.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/alignment.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_set>

namespace stand_in {
namespace {

thread_local int depth = 0;

/// Knows the blocks that it took from the C library, because raw_deleter() is one function for all.
class Temporaries final : public c10::Allocator {
 public:
  explicit Temporaries(c10::Allocator& counted) : counted_(counted) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (depth == 0 || bytes == 0) return counted_.allocate(bytes);
    const size_t rounded = (bytes + c10::gAlignment - 1) / c10::gAlignment * c10::gAlignment;
    void* const block = std::aligned_alloc(c10::gAlignment, rounded);
    if (!block) throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    own_.insert(block);
    return {block, block, raw_deleter(), c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  void release(void* block) {
    {
      const std::lock_guard lock(mutex_);
      if (own_.erase(block) == 0) return counted_.raw_deleter()(block);
    }
    std::free(block);
  }

 private:
  c10::Allocator& counted_;
  std::mutex mutex_;
  std::unordered_set<void*> own_;
};

Temporaries* temporaries = nullptr;  // never destroyed: tensors may be freed after everything else

c10::DeleterFnPtr Temporaries::raw_deleter() const {
  return [](void* block) { temporaries->release(block); };
}

}  // namespace

Uncounted::Uncounted() { ++depth; }
Uncounted::~Uncounted() { --depth; }

void hide_temporaries() {
  temporaries = new Temporaries(*c10::GetCPUAllocator());
  c10::SetCPUAllocator(temporaries);
}

}  // namespace stand_in
